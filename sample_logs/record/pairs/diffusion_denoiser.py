"""A U-Net learns to remove noise of a diffusion from small images."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

import math
from collections.abc import Set
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from typing_extensions import override

from pairs.job import Fault, Steps

FAULTS = {
    "schedule": Fault("loop-invariant-work", kind="loop-invariant work in the step"),
    "checkpointing": Fault(kind="checkpointing without need"),
    "one_by_one": Fault("cpu-optimizer-not-fused"),
    "averaged_one_by_one": Fault(
        "state-copied-each-step", kind="moving average of weights one by one"
    ),
}
PAIRS = (
    ("schedule",),
    ("checkpointing",),
    ("one_by_one",),
    ("averaged_one_by_one",),
    ("schedule", "checkpointing"),
    ("schedule", "one_by_one", "averaged_one_by_one"),
)
SEED = 20_307
BATCH = 4
SIDE = 16
WIDTHS = (24, 48)
EMBEDDED = 96
TIMES = 2_000
DECAY = 0.999


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The rest of the image at each time, and the sines and cosines of the times."""

    remaining: Tensor
    waves: Tensor


def schedule() -> Schedule:
    """Returns the schedule of a cosine."""

    def signal(part: float) -> float:
        return math.cos((part + 0.008) / 1.008 * math.pi / 2) ** 2

    betas = [
        min(1 - signal((time + 1) / TIMES) / signal(time / TIMES), 0.999) for time in range(TIMES)
    ]
    remaining = np.cumprod(1 - np.array(betas))
    rates = torch.exp(-math.log(10_000) * torch.arange(EMBEDDED // 2) / (EMBEDDED // 2))
    angles = torch.arange(TIMES)[:, None] * rates
    waves = torch.cat((angles.sin(), angles.cos()), dim=1)
    return Schedule(remaining=torch.from_numpy(remaining).float(), waves=waves)


class Block(nn.Module):
    """Two convolutions with a shortcut, shifted by the time."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.GroupNorm(8, before), nn.SiLU(), nn.Conv2d(before, after, 3, padding=1)
        )
        self.time = nn.Linear(EMBEDDED, after)
        self.second = nn.Sequential(
            nn.GroupNorm(8, after), nn.SiLU(), nn.Conv2d(after, after, 3, padding=1)
        )
        self.shortcut = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    @override
    def forward(self, images: Tensor, time: Tensor) -> Tensor:
        hidden = self.first(images) + self.time(time)[:, :, None, None]
        result: Tensor = self.shortcut(images) + self.second(hidden)
        return result


class Denoiser(nn.Module):
    """A U-Net with two sides of images; with `recomputes` blocks run again in the backward pass."""

    def __init__(self, narrow: int, wide: int, *, recomputes: bool = False) -> None:
        super().__init__()
        self.recomputes = recomputes
        self.time = nn.Sequential(
            nn.Linear(EMBEDDED, EMBEDDED), nn.SiLU(), nn.Linear(EMBEDDED, EMBEDDED), nn.SiLU()
        )
        self.first = nn.Conv2d(3, narrow, 3, padding=1)
        self.down = Block(narrow, narrow)
        self.downscale = nn.Conv2d(narrow, wide, 3, stride=2, padding=1)
        self.middle = nn.ModuleList(Block(wide, wide) for _ in range(2))
        self.upscale = nn.ConvTranspose2d(wide, narrow, 2, stride=2)
        self.up = Block(2 * narrow, narrow)
        self.last = nn.Conv2d(narrow, 3, 3, padding=1)

    def run(self, block: nn.Module, images: Tensor, time: Tensor) -> Tensor:
        """Returns a block's result."""
        if self.recomputes:
            return checkpoint(block, images, time, use_reentrant=False)  # type: ignore[no-any-return]
        result: Tensor = block(images, time)
        return result

    @override
    def forward(self, images: Tensor, waves: Tensor) -> Tensor:
        time = self.time(waves)
        shallow = self.run(self.down, self.first(images), time)
        hidden = self.downscale(shallow)
        for block in self.middle:
            hidden = self.run(block, hidden, time)
        joined = torch.cat((self.upscale(hidden), shallow), dim=1)
        result: Tensor = self.last(self.run(self.up, joined, time))
        return result


@torch.no_grad()
def average_one_by_one(averaged: nn.Module, model: nn.Module) -> None:
    """Moves the averages of the weights, from which images are sampled."""
    states = zip(averaged.state_dict().values(), model.state_dict().values(), strict=True)
    for moving, weight in states:
        moving.copy_(DECAY * moving + (1 - DECAY) * weight)


@torch.no_grad()
def average(averaged: nn.Module, model: nn.Module) -> None:
    """Moves all averages of the weights at once."""
    torch._foreach_lerp_(list(averaged.parameters()), list(model.parameters()), 1 - DECAY)


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    model = Denoiser(*WIDTHS, recomputes="checkpointing" in faults)
    averaged = deepcopy(model).requires_grad_(requires_grad=False)
    move = average_one_by_one if "averaged_one_by_one" in faults else average
    fused = None if "one_by_one" in faults else True
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=fused)
    data = torch.rand(64, BATCH, 3, SIDE, SIDE) * 2 - 1
    noising = schedule()
    number = 0
    while steps.remain:
        images = data[number % len(data)]
        if "schedule" in faults:
            noising = schedule()
        times = torch.randint(TIMES, (BATCH,))
        remaining = noising.remaining[times, None, None, None]
        noise = torch.randn_like(images)
        noisy = remaining.sqrt() * images + (1 - remaining).sqrt() * noise
        optimizer.zero_grad()
        functional.mse_loss(model(noisy, noising.waves[times]), noise).backward()
        optimizer.step()
        move(averaged, model)
        number += 1
        steps.step()
