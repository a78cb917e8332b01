"""A chain of pointwise operators in eager mode, then the same compiled by Inductor.

Eager mode writes each intermediate tensor to memory and reads it back; the compiled region does
the chain in one pass. It is compiled before the profiler starts. On CUDA, the run `graphs` replays
its launches as CUDA graphs.
"""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from typing_extensions import override

from recording import Plan, Target, recorded, seeded, target

BATCH = 512
WIDTH = 512
LAYERS = 4
GRAPH_WARM_UP = 3
"""Inductor compiles in the first call, warms up in the second and captures graphs in the third."""
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


def eager(model: nn.Module) -> nn.Module:
    """Leaves a model as it is."""
    return model


def compiled(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """Compiles a model as one graph."""
    return torch.compile(model, fullgraph=True)


def replayed(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """Compiles a model as one graph, and records its launches as a CUDA graph."""
    return torch.compile(model, fullgraph=True, mode="reduce-overhead")


def record(
    run: Path, device: torch.device, made: Callable[[nn.Module], Callable[[Tensor], Tensor]]
) -> None:
    """Trains the layers in one form."""
    seeded()
    model = nn.Sequential(*(GatedLayer() for _ in range(LAYERS))).to(device)
    forward = made(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows = torch.rand(BATCH, WIDTH, device=device)
    for _ in range(GRAPH_WARM_UP):
        torch.compiler.cudagraph_mark_step_begin()
        forward(rows).square().mean().backward()
    with recorded(run, device, PLAN) as profiler:
        for _ in range(PLAN.steps):
            optimizer.zero_grad()
            torch.compiler.cudagraph_mark_step_begin()
            forward(rows).square().mean().backward()
            optimizer.step()
            profiler.step()


def main(where: Target) -> None:
    """Records the eager run and the compiled ones."""
    record(where.run("eager"), where.device, eager)
    record(where.run("compiled"), where.device, compiled)
    if where.device.type == "cuda":
        record(where.run("graphs"), where.device, replayed)


if __name__ == "__main__":
    main(target("compiled", __doc__))
