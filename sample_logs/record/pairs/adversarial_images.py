"""A generator and a discriminator of images train against each other."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

import gc
from collections.abc import Set

import torch
from torch import Tensor, nn
from torch.nn import functional

from pairs.job import Fault, Steps

FAULTS = {
    "one_by_one": Fault("cpu-optimizer-not-fused"),
    "not_detached": Fault(kind="unused gradients"),
    "collected": Fault("python-gc-pauses"),
    "preview": Fault("validation-in-step", kind="validation in the step"),
}
PAIRS = (
    ("one_by_one",),
    ("not_detached",),
    ("collected",),
    ("preview",),
    ("one_by_one", "not_detached"),
    ("one_by_one", "not_detached", "preview"),
)
SEED = 20_275
BATCH = 4
NOISE = 64
WIDTH = 24
SIDE = 32
MOMENTS = (0.5, 0.999)


def generator() -> nn.Sequential:
    """Returns images from noise, by transposed convolutions."""
    return nn.Sequential(
        nn.ConvTranspose2d(NOISE, 4 * WIDTH, 4, bias=False),
        nn.BatchNorm2d(4 * WIDTH),
        nn.ReLU(),
        nn.ConvTranspose2d(4 * WIDTH, 2 * WIDTH, 4, 2, 1, bias=False),
        nn.BatchNorm2d(2 * WIDTH),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * WIDTH, WIDTH, 4, 2, 1, bias=False),
        nn.BatchNorm2d(WIDTH),
        nn.ReLU(),
        nn.ConvTranspose2d(WIDTH, 3, 4, 2, 1, bias=False),
        nn.Tanh(),
    )


def discriminator() -> nn.Sequential:
    """Returns a score per image, by strided convolutions."""
    return nn.Sequential(
        nn.Conv2d(3, WIDTH, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(WIDTH, 2 * WIDTH, 4, 2, 1, bias=False),
        nn.BatchNorm2d(2 * WIDTH),
        nn.LeakyReLU(0.2),
        nn.Conv2d(2 * WIDTH, 4 * WIDTH, 4, 2, 1, bias=False),
        nn.BatchNorm2d(4 * WIDTH),
        nn.LeakyReLU(0.2),
        nn.Conv2d(4 * WIDTH, 1, 4),
        nn.Flatten(),
    )


def hinge(scores: Tensor, sign: float) -> Tensor:
    """Returns the discriminator's loss for real (1) or generated (-1) images."""
    return functional.relu(1 - sign * scores).mean()


def preview(make: nn.Module, noise: Tensor) -> Tensor:
    """Returns images of fixed noise as one sheet of bytes, to watch the training."""
    with torch.no_grad():
        images: Tensor = (make(noise) * 127.5 + 127.5).to(torch.uint8)
    return images.permute(1, 2, 0, 3).reshape(3, SIDE, -1)


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    make, judge = generator(), discriminator()
    fused = "one_by_one" not in faults
    makers = torch.optim.Adam(make.parameters(), 2e-4, MOMENTS, foreach=False, fused=fused)
    judges = torch.optim.Adam(judge.parameters(), 2e-4, MOMENTS, foreach=False, fused=fused)
    real = torch.rand(32, BATCH, 3, SIDE, SIDE) * 2 - 1
    fixed = torch.randn(2 * BATCH, NOISE, 1, 1)
    number = 0
    while steps.remain:
        images = make(torch.randn(BATCH, NOISE, 1, 1))
        shown = images if "not_detached" in faults else images.detach()
        judges.zero_grad()
        loss = hinge(judge(real[number % len(real)]), 1) + hinge(judge(shown), -1)
        loss.backward(retain_graph="not_detached" in faults)
        judges.step()
        makers.zero_grad()
        (-judge(images).mean()).backward()
        makers.step()
        if "preview" in faults:
            preview(make, fixed)
        if "collected" in faults:  # "frees the graph"
            gc.collect()
        number += 1
        steps.step()
