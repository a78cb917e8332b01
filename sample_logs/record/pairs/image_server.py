"""A server classifies the images of a queue, one request of several images after the other."""

from collections.abc import Iterator, Set
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import record_function
from typing_extensions import override

from pairs.job import Fault, Steps

FAULTS = {
    "gradients": Fault("inference-mode-off"),
    "float32": Fault("cpu-bfloat16"),
    "one_by_one": Fault("model-called-per-sample", kind="loop over samples"),
    "numpy_resize": Fault("numpy-in-step"),
}
PAIRS = (
    ("gradients",),
    ("float32",),
    ("one_by_one",),
    ("numpy_resize",),
    ("gradients", "one_by_one"),
    ("gradients", "float32", "numpy_resize"),
)
SEED = 20_276
REQUEST = 4
UPLOADED_SIDE = 96
SIDE = 64
PATCH = 8
WIDTH = 192
HEADS = 6
DEPTH = 3
CLASSES = 100
PATCHES = (SIDE // PATCH) ** 2
Pixels = npt.NDArray[np.uint8]


class Block(nn.Module):
    """Attention and a perceptron, each with a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.projections = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.perceptron = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    @override
    def forward(self, tokens: Tensor) -> Tensor:
        heads = self.projections(self.norms[0](tokens)).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        tokens = tokens + self.output(mixed.transpose(1, 2).flatten(2))
        result: Tensor = tokens + self.perceptron(self.norms[1](tokens))
        return result


class VisionTransformer(nn.Module):
    """Patches of an image, mixed by attention, and their mean classified."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.positions = nn.Parameter(torch.zeros(PATCHES, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(DEPTH)))
        self.classes = nn.Linear(WIDTH, CLASSES)

    @override
    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.positions
        logits: Tensor = self.classes(self.blocks(tokens).mean(dim=1))
        return logits


def requests() -> Iterator[Pixels]:
    """Yields the images of one request after the other."""
    random = np.random.default_rng(SEED)
    shape = (16, REQUEST, UPLOADED_SIDE, UPLOADED_SIDE, 3)
    uploaded = random.integers(0, 255, shape, np.uint8)
    while True:
        yield from uploaded


def resized_in_numpy(images: Pixels) -> Tensor:
    """Returns images for the model: bilinear, one after the other."""
    scale = np.linspace(0, UPLOADED_SIDE - 1.001, SIDE)
    low, part = scale.astype(np.int64), (scale % 1)[:, None]
    resized = []
    for image in images:
        pixels = image / 255.0
        rows = pixels[low] * (1 - part[..., None]) + pixels[low + 1] * part[..., None]
        columns = rows[:, low] * (1 - part) + rows[:, low + 1] * part
        resized.append((columns - 0.5).transpose(2, 0, 1))
    return torch.from_numpy(np.stack(resized).astype(np.float32))


def resized(images: Pixels) -> Tensor:
    """Returns images for the model: bilinear, all at once."""
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float()
    shape = (SIDE, SIDE)
    return functional.interpolate(pixels, shape, mode="bilinear", align_corners=True) / 255 - 0.5


def scores(model: nn.Module, images: Tensor, *, one_by_one: bool) -> Tensor:
    """Returns the probability of each class for each image."""
    if one_by_one:
        return torch.cat([model(image.unsqueeze(0)).softmax(dim=1) for image in images])
    probabilities: Tensor = model(images).softmax(dim=1)
    return probabilities


def train(faults: Set[str], steps: Steps) -> None:
    """Serve; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    dtype = torch.float32 if "float32" in faults else torch.bfloat16
    model = VisionTransformer().eval().to(dtype)
    queue = requests()
    prepare = resized_in_numpy if "numpy_resize" in faults else resized
    mode: AbstractContextManager[object] = (
        nullcontext() if "gradients" in faults else torch.inference_mode()
    )
    with mode:
        while steps.remain:
            with record_function("prepare"):
                images = prepare(next(queue)).to(dtype)
            probabilities = scores(model, images, one_by_one="one_by_one" in faults)
            probabilities.topk(5, dim=1).indices.tolist()
            steps.step()
