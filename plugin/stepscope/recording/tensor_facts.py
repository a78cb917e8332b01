"""Facts of one tensor's values: a digest, zeros, padding. They change no tensor."""

import math
from collections.abc import Iterable, Iterator
from hashlib import blake2b

import torch

LEAST_ELEMENTS = 16
"""Smaller results are not compared."""
MOST_BYTES = 1 << 20
"""Of a larger result, elements at regular distances are compared."""
SAMPLED = 4096
"""Number of these elements."""
LEAST_RUN = 2
LEAST_IDS = 8
"""Different token ids of a batch: with fewer they may be types or classes."""


def is_plain(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has values in memory that can be read."""
    return tensor.layout is torch.strided and tensor.device.type != "meta"


def digest_of(tensor: torch.Tensor) -> bytes | None:
    """Return a digest of a tensor's values; None for few or equal ones."""
    if tensor.numel() < LEAST_ELEMENTS or not is_plain(tensor) or tensor.dim() == 0:
        return None
    if tensor.numel() * tensor.element_size() > MOST_BYTES:
        tensor = tensor[tuple(_slices(tensor.shape))]
    values = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    elements = values.reshape(-1).view(torch.uint8).numpy().reshape(values.numel(), -1)
    if (elements == elements[0]).all():
        return None
    return blake2b(elements.tobytes(), digest_size=8).digest()


def _slices(shape: Iterable[int]) -> Iterator[slice]:
    """Yield slices that take some `SAMPLED` elements, as many of each dimension."""
    sizes = list(shape)
    room = most = float(SAMPLED)
    for left, size in zip(range(len(sizes), 0, -1), sorted(sizes), strict=True):
        most = room ** (1 / left)
        room /= min(size, most)
    for size in sizes:
        yield slice(None, None, max(1, int(size // max(1.0, most))))


def zeros_in(tensor: torch.Tensor, *, is_convolved: bool = False) -> tuple[float, float]:
    """Return the fraction of zeros, and of rows (of a signal: positions) of nothing else."""
    nonzero = tensor != 0
    zero = 1.0 - float(torch.count_nonzero(nonzero)) / tensor.numel()
    if is_convolved and (tensor.dim() != 3 or tensor.shape[1] < LEAST_IDS):
        return zero, 0.0
    rows = nonzero.any(1 if is_convolved else -1)
    return zero, 1.0 - float(torch.count_nonzero(rows)) / rows.numel()


def padding_in(ids: torch.Tensor) -> tuple[int, int] | None:
    """Return the padding of token ids (samples, positions), and that of whole columns.

    Padding is the number that ends (or begins) rows most often, where it occurs twice or more. None
    for ids of few kinds, and for ids that are the same in each row.
    """
    values = ids.detach().cpu()
    if len(torch.unique(values)) < LEAST_IDS or bool((values == values[0]).all()):
        return None
    flipped = values.flip(1)
    after, before = _runs(flipped), _runs(values)
    runs = after if int(after.sum()) >= int(before.sum()) else before
    return int(runs.sum()), int(runs.min()) * len(runs)


def _runs(values: torch.Tensor) -> torch.Tensor:
    """Return how many numbers at the start of each row are the most frequent first number."""
    number = torch.mode(values[:, 0]).values
    runs = (values == number).int().cumprod(1).sum(1)
    return torch.where(runs >= LEAST_RUN, runs, torch.zeros_like(runs))


def elements_in_memory(tensor: torch.Tensor) -> int:
    """Return the number of elements, those of expanded dimensions (stride 0) once."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    return math.prod(size for size, stride in sizes if stride or not size)
