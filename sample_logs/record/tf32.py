"""Large matrix products in full float32, then in TF32: for a GPU.

The matrix units take float32 only as TF32, with 10 bits of mantissa instead of 23. Unless TF32 is
allowed, matrix products run on the general-purpose units.
"""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from pathlib import Path
from typing import Literal

import torch

from feed_forward import feed_forward
from recording import Plan, Target, recorded, seeded, target

ROWS = {"cpu": 64, "cuda": 16_384}
WIDTH = {"cpu": 64, "cuda": 2_048}
DEPTH = 3
PLAN = Plan(active=6)


def record(run: Path, device: torch.device, precision: Literal["highest", "high"]) -> None:
    """Trains with matrix products in one precision."""
    seeded()
    torch.set_float32_matmul_precision(precision)
    width = WIDTH[device.type]
    model = feed_forward(DEPTH, width).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows = torch.rand(ROWS[device.type], width, device=device)
    with recorded(run, device, PLAN) as profiler:
        for _ in range(PLAN.steps):
            optimizer.zero_grad()
            model(rows).square().mean().backward()
            optimizer.step()
            profiler.step()


def main(where: Target) -> None:
    """Records the fault and the fix."""
    record(where.run("float32"), where.device, "highest")
    record(where.run("tf32"), where.device, "high")


if __name__ == "__main__":
    main(target("tf32", __doc__))
