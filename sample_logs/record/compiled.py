"""A chain of pointwise operators in eager mode, then the same compiled by Inductor.

Eager mode writes each intermediate tensor to memory and reads it back; the compiled region does
the chain in one pass. It is compiled before the profiler starts.
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from typing_extensions import override

from recording import Plan, Target, recorded, seeded, target

BATCH = 512
WIDTH = 512
LAYERS = 4
PLAN = Plan(active=6)


class GatedLayer(nn.Module):
    """A linear layer, then a normalisation and a gate written out by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, 2 * WIDTH)
        self.scale = nn.Parameter(torch.ones(WIDTH))

    @override
    def forward(self, rows: Tensor) -> Tensor:
        value, gate = self.linear(rows).chunk(2, dim=-1)
        smooth = 0.5 * gate * (1 + torch.tanh(0.7978845608 * (gate + 0.044715 * gate**3)))
        mixed = value * smooth
        size = (mixed.square().mean(dim=-1, keepdim=True) + 1e-6).rsqrt()
        return rows + torch.clamp(mixed * size * self.scale, -4, 4)


def record(run: Path, device: torch.device, *, compiled: bool) -> None:
    """Trains the layers, eager or compiled."""
    seeded()
    model = nn.Sequential(*(GatedLayer() for _ in range(LAYERS))).to(device)
    forward = torch.compile(model, fullgraph=True) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows = torch.rand(BATCH, WIDTH, device=device)
    forward(rows).square().mean().backward()
    with recorded(run, device, PLAN) as profiler:
        for _ in range(PLAN.steps):
            optimizer.zero_grad()
            forward(rows).square().mean().backward()
            optimizer.step()
            profiler.step()


def main(where: Target) -> None:
    """Records the eager run and the compiled one."""
    record(where.run("eager"), where.device, compiled=False)
    record(where.run("compiled"), where.device, compiled=True)


if __name__ == "__main__":
    main(target("compiled", __doc__))
