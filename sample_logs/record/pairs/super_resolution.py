"""A network doubles the resolution of image patches; pairs are made as they are loaded."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from collections.abc import Set

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset
from typing_extensions import override

from pairs.job import Fault, Steps, endless, one_thread

FAULTS = {
    "no_workers": Fault("dataloader-no-workers"),
    "double": Fault("float64-compute"),
    "casts": Fault("dtype-cast-overhead"),
    "read_one_by_one": Fault("python-loop-indexing"),
}
PAIRS = (
    ("no_workers",),
    ("double",),
    ("casts",),
    ("read_one_by_one",),
    ("no_workers", "double"),
    ("no_workers", "casts", "read_one_by_one"),
)
SEED = 20_277
BATCH = 16
SIDE = 32
WIDTH = 16
DEPTH = 4
PATCHES = 64_000
PHOTO_SIDE = 256
KERNEL = np.outer((1, 4, 6, 4, 1), (1, 4, 6, 4, 1)) / 256


class Patches(Dataset[tuple[Tensor, Tensor]]):
    """Random patches of photos, with a blurred and smaller copy of each."""

    def __init__(self, dtype: type[np.floating]) -> None:
        shape = (8, 3, PHOTO_SIDE, PHOTO_SIDE)
        self._photos = np.random.default_rng(SEED).integers(0, 255, shape, np.uint8)
        self._dtype = dtype

    def __len__(self) -> int:
        return PATCHES

    @override
    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        random = np.random.default_rng(index)
        top, left = random.integers(0, PHOTO_SIDE - SIDE, 2)
        photo = self._photos[index % len(self._photos)]
        patch = np.rot90(photo[:, top : top + SIDE, left : left + SIDE], index % 4, (1, 2)) / 255.0
        padded = np.pad(patch, ((0, 0), (2, 2), (2, 2)), mode="reflect")
        blurred = sum(
            KERNEL[row, column] * padded[:, row : row + SIDE : 2, column : column + SIDE : 2]
            for row in range(5)
            for column in range(5)
        )
        noisy = np.clip(blurred + random.normal(0, 0.01, (3, SIDE // 2, SIDE // 2)), 0, 1)
        small, large = noisy.astype(self._dtype), patch.astype(self._dtype)
        return torch.from_numpy(small), torch.from_numpy(np.ascontiguousarray(large))


class Residual(nn.Module):
    """Two convolutions with a shortcut, whose sum may be formed in another type."""

    def __init__(self, sum_type: torch.dtype | None) -> None:
        super().__init__()
        self.first = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.second = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.sum_type = sum_type

    @override
    def forward(self, images: Tensor) -> Tensor:
        change: Tensor = self.second(functional.relu(self.first(images)))
        if self.sum_type is None:
            return images + 0.1 * change
        exact = images.to(self.sum_type) + 0.1 * change.to(self.sum_type)
        return exact.type_as(change)


def network(sum_type: torch.dtype | None) -> nn.Sequential:
    """Returns residual blocks, and pixels from channels."""
    return nn.Sequential(
        nn.Conv2d(3, WIDTH, 3, padding=1),
        *(Residual(sum_type) for _ in range(DEPTH)),
        nn.Conv2d(WIDTH, 12, 3, padding=1),
        nn.PixelShuffle(2),
    )


def quality(made: Tensor, large: Tensor) -> float:
    """Returns the mean peak signal-to-noise ratio in dB."""
    errors = (made - large).square().mean(dim=(1, 2, 3))
    return float((-10 * torch.log10(errors)).mean())


def quality_one_by_one(made: Tensor, large: Tensor) -> float:
    """Returns the mean peak signal-to-noise ratio in dB, channel by channel of each image."""
    total = 0.0
    for row in range(len(made)):
        for channel in range(3):
            error = (made[row, channel] - large[row, channel]).square().mean()
            total += -10 * torch.log10(error).item() / 3
    return total / len(made)


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    workers = 0 if "no_workers" in faults else 1
    loader = DataLoader(
        Patches(np.float64 if "double" in faults else np.float32),
        batch_size=BATCH,
        num_workers=workers,
        worker_init_fn=one_thread if workers else None,
        persistent_workers=workers > 0,
    )
    model = network(torch.float64 if "casts" in faults else None)
    model = model.double() if "double" in faults else model
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    measure = quality_one_by_one if "read_one_by_one" in faults else quality
    batches = endless(loader)
    while steps.remain:
        small, large = next(batches)
        made = model(small)
        optimizer.zero_grad()
        functional.l1_loss(made, large).backward()
        optimizer.step()
        measure(made.detach(), large)
        steps.step()
