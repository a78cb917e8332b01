"""A model that is recompiled for every new length, and two fixes.

`every_length` gets sequences of a different length in each step and `dynamic=False`: each length
is compiled while the loop runs. `padded` pads the sequences to one length, `dynamic` marks the
dimension that changes: both are compiled once, before the profiler starts.
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
# With two warm-up steps and one to wait, these are the eight versions of a frame that torch
# compiles before it runs the frame uncompiled.
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
    """Pads sequences with zeros to the longest."""
    return functional.pad(sequences, (0, 0, 0, LONGEST - sequences.shape[1]))


def marked(sequences: Tensor) -> Tensor:
    """Marks the length as dynamic for the compiler."""
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
