"""DataLoader in the training process, then with two workers.

Each sample is decompressed, shrunk, cropped, flipped and jittered in NumPy, as image pipelines do.
Without workers this happens inside the step; two workers do it while the model trains.
"""

# torch annotates neither Tensor.backward() nor spawn().
# mypy: allow-untyped-calls

import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset
from typing_extensions import override

from cifar_models import CLASSES, IMAGE_SHAPE, CifarResNet
from recording import SEED, Plan, Target, recorded, seeded, target

Pixels = npt.NDArray[np.float32]

BATCH = 32
# The side of a packed image determines the cost of a sample: less than the model's time per sample,
# so that workers on a spare core keep up, and enough to be visible without workers.
PACKED_SIDE = 192
DISTINCT_IMAGES = 64
PADDING = 4
PLAN = Plan(active=6, stacks=True)


class PackedImages(Dataset[tuple[Tensor, int]]):
    """Compressed images in memory, unpacked and augmented at each access."""

    def __init__(self, count: int) -> None:
        shape = (DISTINCT_IMAGES, IMAGE_SHAPE[0], PACKED_SIDE, PACKED_SIDE)
        pixels = np.random.default_rng(SEED).integers(0, 64, shape, np.uint8)
        self._packed = [zlib.compress(image.tobytes()) for image in pixels]
        self._count = count

    def __len__(self) -> int:
        return self._count

    @override
    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = unpacked(self._packed[index % DISTINCT_IMAGES])
        return torch.from_numpy(augmented(image, np.random.default_rng(index))), index % CLASSES


def unpacked(packed: bytes) -> Pixels:
    """Decompresses an image and shrinks it to the model's size by averaging."""
    channels, height, width = IMAGE_SHAPE
    down, across = PACKED_SIDE // height, PACKED_SIDE // width
    pixels = np.frombuffer(zlib.decompress(packed), np.uint8)
    tiles = pixels.reshape(channels, height, down, width, across)
    image: Pixels = tiles.mean(axis=(2, 4), dtype=np.float32) / 255
    return image


def augmented(image: Pixels, random: np.random.Generator) -> Pixels:
    """Crops, flips and jitters one image."""
    _, height, width = image.shape
    top, left = random.integers(0, 2 * PADDING, 2)
    edges = ((0, 0), (PADDING, PADDING), (PADDING, PADDING))
    crop = np.pad(image, edges, mode="reflect")[:, top : top + height, left : left + width]
    if random.random() < 0.5:
        crop = crop[:, :, ::-1]
    jittered = (crop - crop.mean()) * random.uniform(0.8, 1.2) + random.uniform(0.4, 0.6)
    return np.ascontiguousarray(jittered, np.float32)


def one_thread(_worker: int) -> None:
    """Keeps a worker to one core."""
    torch.set_num_threads(1)


def record(run: Path, workers: int, device: torch.device) -> None:
    """Trains for as many batches as the plan has steps."""
    seeded()
    loader = DataLoader(
        PackedImages(BATCH * PLAN.steps),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        worker_init_fn=one_thread if workers else None,
    )
    model = CifarResNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    with recorded(run, device, PLAN) as profiler:
        for images, labels in loader:
            loss = functional.cross_entropy(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            profiler.step()


def main(where: Target) -> None:
    """Records the fault and the fix."""
    record(where.run("no_workers"), 0, where.device)
    record(where.run("two_workers"), 2, where.device)


if __name__ == "__main__":
    main(target("dataloader", __doc__))
