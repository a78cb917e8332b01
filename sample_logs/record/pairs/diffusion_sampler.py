"""Images of requested classes are sampled from a diffusion; a step is one of its times."""

from collections.abc import Iterator, Set
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from pairs.diffusion_denoiser import EMBEDDED, SIDE, TIMES, Denoiser, schedule
from pairs.job import Fault, Steps

FAULTS = {
    "float32": Fault(kind="float32 where bfloat16 would do"),
    "gradients": Fault("inference-mode-off"),
    "schedule": Fault("loop-invariant-work", kind="loop-invariant work in the step"),
    "image_by_image": Fault("model-called-per-sample", kind="loop over samples"),
}
PAIRS = (
    ("float32",),
    ("gradients",),
    ("schedule",),
    ("image_by_image",),
    ("gradients", "schedule"),
    ("float32", "gradients", "image_by_image"),
)
SEED = 20_308
BATCH = 6
WIDTHS = (32, 64)
CLASSES = 10
GUIDANCE = 3.0
TIME_STRIDE = 40


def times() -> Iterator[int]:
    """Yields the times of one diffusion after the other, from noise to images."""
    while True:
        yield from range(TIMES - 1, 0, -TIME_STRIDE)


class Guided(nn.Module):
    """The noise of images of a class: that of any image, and more of the difference."""

    def __init__(self) -> None:
        super().__init__()
        self.classes = nn.Embedding(CLASSES, EMBEDDED)
        self.denoiser = Denoiser(*WIDTHS)

    def forward(self, images: Tensor, waves: Tensor, classes: Tensor) -> Tensor:
        """Returns the noise of each image."""
        conditions = torch.cat((waves.expand(len(images), -1), waves + self.classes(classes)))
        noise: Tensor = self.denoiser(torch.cat((images, images)), conditions)
        of_any, of_class = noise.chunk(2)
        return of_any + GUIDANCE * (of_class - of_any)


def predicted(
    model: nn.Module, images: Tensor, waves: Tensor, classes: Tensor, *, image_by_image: bool
) -> Tensor:
    """Returns the noise of all images."""
    if image_by_image:
        parts = [slice(index, index + 1) for index in range(len(images))]
        return torch.cat([model(images[part], waves, classes[part]) for part in parts])
    noise: Tensor = model(images, waves, classes)
    return noise


def less_noisy(images: Tensor, noise: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """Returns images of an earlier time (DDIM): `before` and `after` are the rests of the image."""
    clean = (images - (1 - before).sqrt() * noise) / before.sqrt().clamp(min=0.05)
    return after.sqrt() * clean.clamp(-1, 1) + (1 - after).sqrt() * noise


def train(faults: Set[str], steps: Steps) -> None:
    """Sample; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    dtype = torch.float32 if "float32" in faults else torch.bfloat16
    model = Guided().eval().to(dtype)
    noising = schedule()
    mode: AbstractContextManager[object] = (
        nullcontext() if "gradients" in faults else torch.inference_mode()
    )
    images = torch.randn(BATCH, 3, SIDE, SIDE)
    classes = torch.randint(CLASSES, (BATCH,))
    with mode:
        for time in times():
            if not steps.remain:
                break
            if time == TIMES - 1:
                images = torch.randn(BATCH, 3, SIDE, SIDE)
                classes = torch.randint(CLASSES, (BATCH,))
            if "schedule" in faults:
                noising = schedule()
            waves = noising.waves[time].to(dtype)
            noise = predicted(
                model, images.to(dtype), waves, classes, image_by_image="image_by_image" in faults
            )
            before, after = noising.remaining[[time, max(time - TIME_STRIDE, 0)]]
            images = less_noisy(images, noise.float(), before, after).detach()
            steps.step()
