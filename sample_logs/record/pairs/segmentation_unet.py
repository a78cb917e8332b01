"""A U-Net segments images; the overlap of each class is measured in every step."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from collections.abc import Set

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import record_function
from torch.utils.checkpoint import checkpoint
from typing_extensions import override

from pairs.job import Fault, Steps

FAULTS = {
    "double": Fault("float64-compute"),
    "checkpointing": Fault(kind="checkpointing without need"),
    "numpy_overlap": Fault("numpy-in-step"),
    "pixel_weights": Fault("loop-invariant-work", kind="loop-invariant work in the step"),
}
PAIRS = (
    ("double",),
    ("checkpointing",),
    ("numpy_overlap",),
    ("pixel_weights",),
    ("double", "checkpointing"),
    ("checkpointing", "pixel_weights"),
)
SEED = 20_273
BATCH = 4
SIDE = 64
CLASSES = 6
WIDTH = 12


def convolutions(channels_in: int, channels: int) -> nn.Sequential:
    """Returns two convolutions, each with GroupNorm and ReLU."""
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, 3, padding=1),
        nn.GroupNorm(4, channels),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.GroupNorm(4, channels),
        nn.ReLU(),
    )


class UNet(nn.Module):
    """Three levels with skip connections."""

    def __init__(self, *, checkpointing: bool) -> None:
        super().__init__()
        self.checkpointing = checkpointing
        widths = (WIDTH, 2 * WIDTH, 4 * WIDTH)
        self.down = nn.ModuleList(map(convolutions, (3, *widths), widths))
        self.up = nn.ModuleList(
            (convolutions(6 * WIDTH, 2 * WIDTH), convolutions(3 * WIDTH, WIDTH))
        )
        self.classes = nn.Conv2d(WIDTH, CLASSES, 1)

    def stage(self, layers: nn.Module, images: Tensor) -> Tensor:
        """Runs one stage, and again in the backward pass where activations are not retained."""
        if self.checkpointing:
            recomputed: Tensor = checkpoint(layers, images, use_reentrant=False)
            return recomputed
        result: Tensor = layers(images)
        return result

    @override
    def forward(self, images: Tensor) -> Tensor:
        skipped = []
        for layers in self.down:
            images = self.stage(layers, images)
            skipped.append(images)
            images = functional.max_pool2d(images, 2)
        images = skipped.pop()
        for layers in self.up:
            images = functional.interpolate(images, scale_factor=2.0)
            images = self.stage(layers, torch.cat((images, skipped.pop()), dim=1))
        logits: Tensor = self.classes(images)
        return logits


def overlap_in_numpy(logits: Tensor, masks: Tensor) -> list[float]:
    """Returns the intersection over union of each class, image by image as in a notebook."""
    predicted, expected = logits.detach().numpy().argmax(axis=1), masks.numpy()
    scores = np.zeros((len(masks), CLASSES))
    for image in range(len(masks)):
        for label in range(CLASSES):
            is_predicted, is_expected = predicted[image] == label, expected[image] == label
            union = np.logical_or(is_predicted, is_expected).sum()
            both = np.logical_and(is_predicted, is_expected).sum()
            scores[image, label] = both / max(1, union)
    return [float(score) for score in scores.mean(axis=0)]


def overlap(logits: Tensor, masks: Tensor) -> Tensor:
    """Returns the intersection over union of each class."""
    cells = torch.bincount((logits.argmax(dim=1) * CLASSES + masks).flatten(), minlength=CLASSES**2)
    confusion = cells.view(CLASSES, CLASSES)
    union = confusion.sum(dim=0) + confusion.sum(dim=1) - confusion.diagonal()
    return confusion.diagonal() / union.clamp(min=1)


def distance_weights() -> Tensor:
    """Returns the weight of each pixel: it falls with the distance from the nearest grid point."""
    axis = torch.arange(SIDE, dtype=torch.float32)
    rows, columns = torch.meshgrid(axis, axis, indexing="ij")
    pixels = torch.stack((rows, columns), dim=-1).view(-1, 2)
    distances = torch.cdist(pixels, pixels[:: SIDE // 4]).min(dim=1).values
    return torch.exp(-distances / SIDE).view(SIDE, SIDE)


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    dtype = torch.float64 if "double" in faults else torch.float32
    model = UNet(checkpointing="checkpointing" in faults).to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.rand(16, BATCH, 3, SIDE, SIDE, dtype=dtype)
    masks = torch.randint(CLASSES, (16, BATCH, SIDE, SIDE))
    measure = overlap_in_numpy if "numpy_overlap" in faults else overlap
    weights = distance_weights()
    number = 0
    while steps.remain:
        row = number % len(images)
        if "pixel_weights" in faults:
            weights = distance_weights()
        logits = model(images[row])
        losses = functional.cross_entropy(logits, masks[row], reduction="none")
        optimizer.zero_grad()
        (losses * weights).mean().backward()
        optimizer.step()
        with record_function("overlap"):
            measure(logits, masks[row])
        number += 1
        steps.step()
