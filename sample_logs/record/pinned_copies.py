"""Batches copied from pageable memory, then from pinned memory without blocking: for a GPU.

The driver first copies pageable memory into its own pinned buffer, while the program waits. From
pinned memory the device copies the batch itself, while the host continues.
"""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from pathlib import Path

import torch
from torch.nn import functional

from cifar_models import CifarResNet, made_images
from recording import Plan, Target, recorded, seeded, target

BATCH = {"cpu": 16, "cuda": 8_192}
DISTINCT_BATCHES = 2
PLAN = Plan(active=8)


def record(run: Path, device: torch.device, *, pinned: bool) -> None:
    """Trains on batches in the host's memory."""
    seeded()
    model = CifarResNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    host = torch.device("cpu")
    batches = [made_images(BATCH[device.type], host) for _ in range(DISTINCT_BATCHES)]
    if pinned and device.type == "cuda":  # without a device torch has nothing to pin memory for
        batches = [(images.pin_memory(), labels.pin_memory()) for images, labels in batches]
    with recorded(run, device, PLAN) as profiler:
        for step in range(PLAN.steps):
            images, labels = batches[step % DISTINCT_BATCHES]
            logits = model(images.to(device, non_blocking=pinned))
            loss = functional.cross_entropy(logits, labels.to(device, non_blocking=pinned))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            profiler.step()


def main(where: Target) -> None:
    """Records the fault and the fix."""
    record(where.run("pageable"), where.device, pinned=False)
    record(where.run("pinned"), where.device, pinned=True)


if __name__ == "__main__":
    main(target("pinned_copies", __doc__))
