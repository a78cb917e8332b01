"""A compiled model that is compiled again for every new length, then twice mended.

`every_length` gets sequences of another length in each step and `dynamic=False`: each length is
compiled while the loop runs. `padded` fills the sequences up to one length, `dynamic` tells the
compiler which dimension changes: both are compiled once, before the profiler starts.
"""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from recording import Plan, Target, recorded, seeded, target

BATCH = 16
WIDTH = 128
CLASSES = 10
LONGEST = 72
# With two for warm-up and one to wait, no more than the eight that torch compiles of one frame
# before it gives up and runs it uncompiled.
PLAN = Plan(active=5)
LENGTHS = tuple(LONGEST - 8 * step for step in range(PLAN.steps))


def model() -> nn.Module:
    """Builds a classifier of sequences, token by token."""
    return nn.Sequential(
        nn.Linear(WIDTH, 2 * WIDTH),
        nn.GELU(),
        nn.LayerNorm(2 * WIDTH),
        nn.Linear(2 * WIDTH, CLASSES),
    )


def unchanged(sequences: Tensor) -> Tensor:
    """Leaves every length as it is."""
    return sequences


def padded(sequences: Tensor) -> Tensor:
    """Fills sequences up with zeros to the longest."""
    return functional.pad(sequences, (0, 0, 0, LONGEST - sequences.shape[1]))


def marked(sequences: Tensor) -> Tensor:
    """Tells the compiler that the length changes."""
    torch._dynamo.mark_dynamic(sequences, 1)  # noqa: SLF001 (torch's documented name for it)
    return sequences


def record(
    run: Path, device: torch.device, made: Callable[[Tensor], Tensor], *, dynamic: bool | None
) -> None:
    """Trains the compiled model on sequences of changing length."""
    seeded()
    torch.compiler.reset()
    net = model().to(device)
    forward = torch.compile(net, dynamic=dynamic)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    data = [torch.rand(BATCH, length, WIDTH, device=device) for length in LENGTHS]
    forward(made(data[0])).square().mean().backward()
    with recorded(run, device, PLAN) as profiler:
        for sequences in data:
            optimizer.zero_grad()
            forward(made(sequences)).square().mean().backward()
            optimizer.step()
            profiler.step()


def main(where: Target) -> None:
    """Records the fault and both fixes."""
    record(where.run("every_length"), where.device, unchanged, dynamic=False)
    record(where.run("padded"), where.device, padded, dynamic=False)
    record(where.run("dynamic"), where.device, marked, dynamic=None)


if __name__ == "__main__":
    main(target("changing_shapes", __doc__))
