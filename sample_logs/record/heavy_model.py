"""A heavy model without a fault: convolutions take most of the step.

`in_memory` trains on one batch in memory; `loaded` gets each batch from two workers, which have it
ready in time. The correct advice is that computing is the limit, and nothing else.
"""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from collections.abc import Iterator
from itertools import repeat

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader

from cifar_models import CLASSES, made_images
from cifar_resnet18 import CifarImages
from dataloader import one_thread
from recording import Plan, Target, recorded, seeded, target
from resnet import ResNet18

BATCH = 8
BATCH_ON_CUDA = 1024
# Long enough a wait that workers, once started, are ahead when the profiler begins.
PLAN = Plan(wait=3, warmup=2, active=6)

Batches = Iterator[tuple[Tensor, Tensor]]


def in_memory(device: torch.device, batch: int) -> Batches:
    """Yields the same batch again and again."""
    return repeat(made_images(batch, device), PLAN.steps)


def loaded(device: torch.device, batch: int) -> Batches:
    """Yields batches that two workers (on CUDA: eight) prepare in advance."""
    is_cuda = device.type == "cuda"
    loader = DataLoader(
        CifarImages(batch * PLAN.steps),
        batch_size=batch,
        num_workers=8 if is_cuda else 2,
        worker_init_fn=one_thread,
        pin_memory=is_cuda,
    )
    for images, labels in loader:
        yield images.to(device, non_blocking=True), labels.to(device, non_blocking=True)


def record(where: Target, run: str, batches: Batches) -> None:
    """Trains ResNet-18; on CUDA in bfloat16 and channels_last, as recommended."""
    device = where.device
    seeded()
    is_cuda = device.type == "cuda"
    model = ResNet18(CLASSES, keeps_size=True).to(device)
    if is_cuda:
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # not annotated
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=is_cuda)
    with recorded(where.run(run), device, PLAN) as profiler:
        for images, labels in batches:
            with torch.autocast(device.type, torch.bfloat16, enabled=is_cuda):
                if is_cuda:
                    images = images.to(memory_format=torch.channels_last)  # noqa: PLW2901
                loss = functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            profiler.step()


def main(where: Target) -> None:
    """Records the model with and without a DataLoader."""
    seeded()
    batch = BATCH_ON_CUDA if where.device.type == "cuda" else BATCH
    record(where, "in_memory", in_memory(where.device, batch))
    record(where, "loaded", loaded(where.device, batch))


if __name__ == "__main__":
    main(target("heavy_model", __doc__))
