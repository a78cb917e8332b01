"""ResNet-18 on images of CIFAR-10's shape: a story in three fixes, each a run.

`on_cpu` trains on the CPU; then the model moves to the GPU (`on_gpu`), gets workers
(`on_gpu_workers`), and a batch of 2,048 instead of 32 (`on_gpu_workers_batch`). A CPU shows the
last two fixes only with a model so thin that loading and dispatch are visible next to its
arithmetic: `thin`, `thin_workers` and `thin_workers_batch` have an eighth of ResNet-18's width,
images that are stored twice as large and shrunk, and end with a batch of 256.
"""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

import zlib
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset
from typing_extensions import override

from cifar_models import CLASSES, IMAGE_SHAPE
from dataloader import Pixels, augmented, one_thread
from recording import SEED, Plan, Target, recorded, seeded, target
from resnet import WIDTH, ResNet18

DISTINCT_IMAGES = 128
# The wait is long enough for the workers to be ahead when the profiler begins.
PLAN = Plan(wait=10, warmup=2, active=6)
CPU = torch.device("cpu")
MEAN = np.array([0.49, 0.48, 0.45], np.float32).reshape(3, 1, 1)
DEVIATION = np.array([0.25, 0.24, 0.26], np.float32).reshape(3, 1, 1)


@dataclass(frozen=True, kw_only=True)
class Job:
    """Settings that the fixes change, one at a time."""

    device: torch.device
    width: int = WIDTH
    side: int = IMAGE_SHAPE[1]
    """Side length of the stored images, which are shrunk to the model's."""
    batch: int = 32
    workers: int = 0


class CifarImages(Dataset[tuple[Tensor, int]]):
    """Compressed images from a seed, unpacked when the loader requests them.

    They then have CIFAR-10's shape; the stored side is a multiple of its 32.
    """

    def __init__(self, count: int, side: int = IMAGE_SHAPE[1]) -> None:
        shape = (DISTINCT_IMAGES, IMAGE_SHAPE[0], side, side)
        pixels = np.random.default_rng(SEED).integers(0, 64, shape, np.uint8)
        self._packed = [zlib.compress(image.tobytes()) for image in pixels]
        self._count = count
        self._side = side

    def __len__(self) -> int:
        return self._count

    @override
    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """Unpacks, shrinks, crops, flips, jitters and normalises, as a tutorial's transforms do."""
        image = unpacked(self._packed[index % DISTINCT_IMAGES], self._side)
        changed = augmented(image, np.random.default_rng(index))
        return torch.from_numpy((changed - MEAN) / DEVIATION), index % CLASSES


def unpacked(packed: bytes, side: int) -> Pixels:
    """Decompresses an image of a given side, and shrinks it to CIFAR-10's by averaging."""
    channels, height, width = IMAGE_SHAPE
    pixels = np.frombuffer(zlib.decompress(packed), np.uint8)
    tiles = pixels.reshape(channels, height, side // height, width, side // width)
    image: Pixels = tiles.mean(axis=(2, 4), dtype=np.float32) / 255
    return image


def record(where: Target, run: str, job: Job) -> None:
    """Trains for as many batches as the plan has steps, and records on `where`'s device.

    The profiler looks at the GPU though the job may not use it: that is the story's first step.
    """
    seeded()
    loader = DataLoader(
        CifarImages(job.batch * PLAN.steps, job.side),
        batch_size=job.batch,
        shuffle=True,
        num_workers=job.workers,
        worker_init_fn=one_thread if job.workers else None,
        pin_memory=job.device.type == "cuda" and job.workers > 0,
    )
    model = ResNet18(CLASSES, job.width).to(job.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    with recorded(where.run(run), where.device, PLAN) as profiler:
        for images, labels in loader:
            logits = model(images.to(job.device, non_blocking=True))
            loss = functional.cross_entropy(logits, labels.to(job.device, non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            profiler.step()


def record_on_cpu(where: Target) -> None:
    """Records the runs for a CPU: the full model, and the series of a thin one."""
    record(where, "on_cpu", Job(device=CPU))
    thin = Job(device=CPU, width=WIDTH // 8, side=2 * IMAGE_SHAPE[1])
    record(where, "thin", thin)
    record(where, "thin_workers", replace(thin, workers=2))
    record(where, "thin_workers_batch", replace(thin, workers=2, batch=256))


def record_on_gpu(where: Target) -> None:
    """Records the story as it was told."""
    record(where, "on_cpu", Job(device=CPU))
    job = Job(device=where.device)
    record(where, "on_gpu", job)
    record(where, "on_gpu_workers", replace(job, workers=8))
    record(where, "on_gpu_workers_batch", replace(job, workers=8, batch=2048))


def main(where: Target) -> None:
    """Records the chain that the device can tell."""
    if where.device.type == "cpu":
        record_on_cpu(where)
    else:
        record_on_gpu(where)


if __name__ == "__main__":
    main(target("cifar_resnet18", __doc__))
