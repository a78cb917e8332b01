"""A small convolutional network learns to classify images that are augmented as they are loaded."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

import zlib
from collections.abc import Set
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset
from typing_extensions import override

from pairs.job import Fault, Steps, endless, one_thread

FAULTS = {
    "no_workers": Fault("dataloader-no-workers"),
    "tiny_batch": Fault("tiny-batch-size"),
    "validation": Fault("validation-in-step", kind="validation in the step"),
    "counted_in_loop": Fault("python-loop-indexing"),
}
PAIRS = (
    ("no_workers",),
    ("tiny_batch",),
    ("validation",),
    ("counted_in_loop",),
    ("no_workers", "counted_in_loop"),
    ("no_workers", "validation", "counted_in_loop"),
)
SEED = 20_271
BATCH = 64
TINY_BATCH = 4
CLASSES = 10
SIDE = 32
PHOTO_SIDE = 48
IMAGES = 128_000
WORKERS = 2


class Photos(Dataset[tuple[Tensor, int]]):
    """Compressed photos; each access unpacks one, crops it, flips it and changes its contrast."""

    def __init__(self) -> None:
        shape = (256, 3, PHOTO_SIDE, PHOTO_SIDE)
        pixels = np.random.default_rng(SEED).integers(0, 64, shape, np.uint8)
        self._packed = [zlib.compress(photo.tobytes()) for photo in pixels]

    def __len__(self) -> int:
        return IMAGES

    @override
    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        random = np.random.default_rng(index)
        packed = zlib.decompress(self._packed[index % len(self._packed)])
        photo = np.frombuffer(packed, np.uint8).reshape(3, PHOTO_SIDE, PHOTO_SIDE)
        top, left = random.integers(0, PHOTO_SIDE - SIDE, 2)
        image = photo[:, top : top + SIDE, left : left + SIDE].astype(np.float32) / 64
        if random.random() < 0.5:
            image = image[:, :, ::-1]
        contrast = (image - image.mean()) * random.uniform(0.8, 1.2)
        return torch.from_numpy(np.ascontiguousarray(contrast, np.float32)), index % CLASSES


def network() -> nn.Sequential:
    """Returns three stages of convolutions and a linear classifier."""
    widths = (3, 16, 32, 64)
    stages: list[nn.Module] = []
    for channels_in, channels in pairwise(widths):
        convolution = nn.Conv2d(channels_in, channels, 3, padding=1)
        stages += [convolution, nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*stages, nn.Flatten(), nn.Linear(64 * 4 * 4, CLASSES))


def count_in_loop(confusion: Tensor, labels: Tensor, logits: Tensor) -> int:
    """Counts a batch image by image; returns the images whose class is among the best three."""
    classes, best = logits.argmax(dim=1), logits.topk(3, dim=1).indices
    hits = 0
    for row in range(len(labels)):
        confusion[labels[row], classes[row]] += 1
        if labels[row] in best[row]:
            hits += 1
    return hits


def count(confusion: Tensor, labels: Tensor, logits: Tensor) -> int:
    """Counts a batch; returns the images whose class is among the best three."""
    cells = torch.bincount(labels * CLASSES + logits.argmax(dim=1), minlength=CLASSES**2)
    confusion += cells.view(CLASSES, CLASSES)
    best = logits.topk(3, dim=1).indices
    return int((best == labels[:, None]).sum())


def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Returns the fraction of images that are classified correctly."""
    with torch.inference_mode():
        is_correct: Tensor = model(images).argmax(dim=1) == labels
        return is_correct.float().mean().item()


def samples(faults: Set[str]) -> int:
    """Returns the images of a step."""
    return TINY_BATCH if "tiny_batch" in faults else BATCH


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    workers = 0 if "no_workers" in faults else WORKERS
    loader = DataLoader(
        Photos(),
        batch_size=samples(faults),
        shuffle=True,
        num_workers=workers,
        worker_init_fn=one_thread if workers else None,
        persistent_workers=workers > 0,
    )
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    validation = torch.rand(BATCH, 3, SIDE, SIDE), torch.randint(CLASSES, (BATCH,))
    confusion = torch.zeros(CLASSES, CLASSES, dtype=torch.int64)
    counts = count_in_loop if "counted_in_loop" in faults else count
    best, hits = 0.0, 0
    batches = endless(loader)
    while steps.remain:
        images, labels = next(batches)
        optimizer.zero_grad()
        logits = model(images)
        functional.cross_entropy(logits, labels).backward()
        optimizer.step()
        hits += counts(confusion, labels, logits.detach())
        if "validation" in faults:
            best = max(best, accuracy(model, *validation))
        steps.step()
