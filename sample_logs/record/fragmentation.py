"""Batches of changing sizes with fixed allocator segments, then with growing ones: for a GPU.

Segments that torch reserved for one size do not fit the next, so unused reserved memory grows until
the allocator releases it and requests it again during the step. With expandable segments, one
segment grows and is split as needed. The allocator reads its settings once, so each run has its own
process.
"""

# torch annotates neither Tensor.backward() nor spawn().
# mypy: allow-untyped-calls

import os
import random
from pathlib import Path

import torch
from torch.multiprocessing.spawn import spawn

from feed_forward import feed_forward
from recording import SEED, Plan, Target, recorded, seeded, target

SETTING = "PYTORCH_ALLOC_CONF"
FIXED, GROWING = "expandable_segments:False", "expandable_segments:True"
WIDTH = {"cpu": 32, "cuda": 1_024}
LARGEST = {"cpu": 64, "cuda": 131_072}
DEPTH = 4
DEVICE_SHARE = 0.25
"""Fraction of the device's memory that this process may use, to simulate a smaller device."""
PLAN = Plan(wait=12, active=8, memory=True)


def train(_process: int, run: Path, device_type: str) -> None:
    """Trains on batches whose sizes rise and fall at random."""
    seeded()
    device = torch.device(device_type)
    if device_type == "cuda":
        torch.cuda.set_per_process_memory_fraction(DEVICE_SHARE)
    width, largest = WIDTH[device_type], LARGEST[device_type]
    model = feed_forward(DEPTH, width).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    drawn = random.Random(SEED)  # noqa: S311 (sizes, no secrets)
    with recorded(run, device, PLAN) as profiler:
        for _ in range(PLAN.steps):
            rows = torch.rand(drawn.randint(largest // 3, largest), width, device=device)
            optimizer.zero_grad()
            model(rows).square().mean().backward()
            optimizer.step()
            profiler.step()


def record(run: Path, device: torch.device, segments: str) -> None:
    """Runs the training under one setting of the allocator."""
    os.environ[SETTING] = segments
    spawn(train, args=(run, device.type))


def main(where: Target) -> None:
    """Records the fault and the fix."""
    record(where.run("fixed_segments"), where.device, FIXED)
    record(where.run("growing_segments"), where.device, GROWING)


if __name__ == "__main__":
    main(target("fragmentation", __doc__))
