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
    "gradient_log": Fault(
        "parameter-statistics-in-step", kind="statistics of parameters in the step"
    ),
    "anomaly": Fault("debug-mode-on"),
}
PAIRS = (
    ("one_by_one",),
    ("gradient_log",),
    ("anomaly",),
    ("one_by_one", "gradient_log"),
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


def gradient_log(model: nn.Module) -> dict[str, float]:
    """Returns the mean absolute weight and gradient of each parameter."""
    log = {}
    for name, parameter in model.named_parameters():
        log[name] = parameter.detach().abs().mean().item()
        if parameter.grad is not None:
            log[f"{name}.grad"] = parameter.grad.abs().mean().item()
    return log


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    model = network()
    fused = "one_by_one" not in faults
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False, fused=fused)
    log: dict[str, float] = {}
    images = torch.rand(16, BATCH, 3, SIDE, SIDE)
    labels = torch.randint(CLASSES, (16, BATCH))
    number = 0
    while steps.remain:
        row = number % len(images)
        with torch.autograd.detect_anomaly() if "anomaly" in faults else nullcontext():
            loss = functional.cross_entropy(model(images[row]), labels[row])
            optimizer.zero_grad()
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), LARGEST_NORM)
        optimizer.step()
        if "gradient_log" in faults:
            log.update(gradient_log(model))
        number += 1
        steps.step()
