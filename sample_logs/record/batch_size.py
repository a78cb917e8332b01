"""The same samples in batches of 8, then of 128.

A step of 8 samples costs nearly as much Python and dispatch as one of 128, so most of the time
goes to the loop and not to the arithmetic.
"""

# torch annotates neither Tensor.backward() nor spawn().
# mypy: allow-untyped-calls

from pathlib import Path

import torch
from torch.nn import functional

from cifar_models import made_images, small_conv_net
from recording import Plan, Target, recorded, seeded, target

TINY = 8
LARGE = 128
LARGE_STEPS = 6


def record(run: Path, batch: int, device: torch.device) -> None:
    """Trains on `LARGE * LARGE_STEPS` profiled samples, `batch` at a time."""
    seeded()
    plan = Plan(active=LARGE * LARGE_STEPS // batch)
    images, labels = made_images(batch * plan.steps, device)
    model = small_conv_net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with recorded(run, device, plan) as profiler:
        for inputs, targets in zip(images.split(batch), labels.split(batch), strict=True):
            loss = functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            profiler.step()


def main(where: Target) -> None:
    """Records the fault and the fix."""
    record(where.run("batch_8"), TINY, where.device)
    record(where.run("batch_128"), LARGE, where.device)


if __name__ == "__main__":
    main(target("batch_size", __doc__))
