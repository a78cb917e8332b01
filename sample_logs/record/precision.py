"""A ResNet with the default dtype float64, then the same in float32.

In double precision torch computes convolutions with its own slow kernel; in single precision it
calls oneDNN (on CUDA: cuDNN, whose tensor cores do not support float64 on most devices).
"""

# torch annotates neither Tensor.backward() nor spawn().
# mypy: allow-untyped-calls

from pathlib import Path

import torch
from torch.nn import functional

from cifar_models import CifarResNet, made_images
from recording import Plan, Target, recorded, seeded, target

BATCH = 64
PLAN = Plan(active=6, memory=True)


def record(run: Path, dtype: torch.dtype, device: torch.device) -> None:
    """Trains with `dtype` as torch's default dtype."""
    seeded()
    torch.set_default_dtype(dtype)
    model = CifarResNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    images, labels = made_images(BATCH, device)
    with recorded(run, device, PLAN) as profiler:
        for _ in range(PLAN.steps):
            loss = functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            profiler.step()


def main(where: Target) -> None:
    """Records the fault and the fix."""
    record(where.run("float64"), torch.float64, where.device)
    record(where.run("float32"), torch.float32, where.device)


if __name__ == "__main__":
    main(target("precision", __doc__))
