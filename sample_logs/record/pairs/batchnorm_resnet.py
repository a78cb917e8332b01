"""A narrow and deep ResNet with BatchNorm trains with AdamW and clipped gradients."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from collections.abc import Set
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

from pairs.job import Fault, Steps

FAULTS = {
    "one_by_one": Fault("cpu-optimizer-not-fused"),
    "clip_one_by_one": Fault("unfused-grad-clip"),
    "zero_fill": Fault("zero-grad-memset"),
    "anomaly": Fault("debug-mode-on"),
}
PAIRS = (
    ("one_by_one",),
    ("clip_one_by_one",),
    ("zero_fill",),
    ("anomaly",),
    ("one_by_one", "clip_one_by_one", "zero_fill"),
    ("one_by_one", "anomaly"),
)
SEED = 20_272
BATCH = 8
CLASSES = 10
WIDTH = 64
DEPTH = 12
SIDE = 16
LARGEST_NORM = 1.0


class Block(nn.Module):
    """A bottleneck: to a quarter of the channels, a 3x3 convolution, and back."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = channels // 4
        self.layers = nn.Sequential(
            nn.Conv2d(channels, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Conv2d(inner, inner, 3, padding=1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Conv2d(inner, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
        )

    @override
    def forward(self, images: Tensor) -> Tensor:
        return functional.relu(images + self.layers(images))


def network() -> nn.Sequential:
    """Returns the ResNet."""
    return nn.Sequential(
        nn.Conv2d(3, WIDTH, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(WIDTH),
        nn.ReLU(),
        *(Block(WIDTH) for _ in range(DEPTH)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(WIDTH, CLASSES),
    )


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    model = network()
    fused = "one_by_one" not in faults
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False, fused=fused)
    clips_at_once = "clip_one_by_one" not in faults
    images = torch.rand(16, BATCH, 3, SIDE, SIDE)
    labels = torch.randint(CLASSES, (16, BATCH))
    number = 0
    while steps.remain:
        row = number % len(images)
        with torch.autograd.detect_anomaly() if "anomaly" in faults else nullcontext():
            loss = functional.cross_entropy(model(images[row]), labels[row])
            optimizer.zero_grad(set_to_none="zero_fill" not in faults)
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), LARGEST_NORM, foreach=clips_at_once)
        optimizer.step()
        number += 1
        steps.step()
