"""A deep and narrow network: many small parameters, with little arithmetic each."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from typing_extensions import override

from recording import Plan, recorded

CLASSES = 10
WIDTH = 64
BATCH = 64


class NarrowBlock(nn.Module):
    """A normalized linear layer with a shortcut: four small parameters."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    @override
    def forward(self, rows: Tensor) -> Tensor:
        return rows + functional.gelu(self.linear(self.norm(rows)))


def narrow_network(depth: int, width: int) -> nn.Sequential:
    """Builds `depth` blocks and a classifier."""
    return nn.Sequential(*(NarrowBlock(width) for _ in range(depth)), nn.Linear(width, CLASSES))


def made_rows(count: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Returns random rows and labels from the current seed."""
    rows = torch.rand(count, width, device=device)
    return rows, torch.randint(CLASSES, (count,), device=device)


def train_a_rank(
    rank: int,
    device: torch.device,
    *,
    run: Path,
    plan: Plan,
    depth: int,
    **options: Any,  # noqa: ANN401 (whatever DistributedDataParallel takes)
) -> None:
    """Runs one rank of DistributedDataParallel, which takes `options`."""
    model = DistributedDataParallel(narrow_network(depth, WIDTH).to(device), **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    rows, labels = made_rows(BATCH, WIDTH, device)
    with recorded(run, device, plan, worker=f"rank{rank}") as profiler:
        for _ in range(plan.steps):
            optimizer.zero_grad()
            functional.cross_entropy(model(rows), labels).backward()
            optimizer.step()
            profiler.step()
