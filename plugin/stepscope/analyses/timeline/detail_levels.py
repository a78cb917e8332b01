"""Slices at coarser and coarser grain, so that a tile is made from few of them.

At level L a pixel is 2^L ns wide. Consecutive slices of a row that begin in one pixel and are
shorter than a pixel form one *item*: from its first slice to the next item's, with the longest of
them. A slice of a pixel or more is an item of its own. So the items of every level are all slices,
each once; and the items of a level are made from those of any finer one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from stepscope.model.arrays import Ints, Mask

IntT = TypeVar("IntT", bound=np.integer)
Indices = NDArray[np.int32]
"""Indices of slices."""
COARSEST = 44
"""2^44 ns are five hours a pixel."""
LEAST_MERGED = 0.3
"""Least fraction of the previous level's items that a stored level merges: a tile then reads hardly
more items than it shows, and all levels together are at most 2.3 times the slices."""
PROMISING = 0.25
"""As `LEAST_MERGED`, of a sample."""
SAMPLE = 200_000
STEP = 2
"""Distance between the levels that are tried."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """The items at one level, in the slices' order."""

    level: int
    first: Indices
    """Each item's first slice; then the number of slices."""
    longest: Indices
    """Each item's longest slice, the first of equal ones."""

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.longest)


@dataclass(frozen=True, kw_only=True, eq=False)
class Times:
    """Slices by row, then time: those of a row follow each other and do not overlap."""

    start_ns: Ints
    busy_before_ns: Ints
    """Total duration of all slices before each; then that of all."""
    row_first: Ints
    """Each row's first slice; then the number of slices."""

    def duration_ns(self, indices: NDArray[np.integer]) -> Ints:
        """Return the durations of these slices."""
        durations_ns: Ints = self.busy_before_ns[indices + 1] - self.busy_before_ns[indices]
        return durations_ns


def levels(times: Times) -> tuple[Level, ...]:
    """Return the levels worth storing, finest first."""
    useful: list[Level] = []
    finer = last = _every_slice(len(times.start_ns))
    for level in _promising(times):
        last = merged(times, last, level)
        if len(last) <= (1 - LEAST_MERGED) * len(finer):
            useful.append(last)
            finer = last
        if len(last) <= len(times.row_first):
            break
    return tuple(useful)


def _every_slice(count: int) -> Level:
    every = np.arange(count + 1, dtype=np.int32)
    return Level(level=0, first=every, longest=every[:-1])


def _promising(times: Times) -> Iterator[int]:
    """Yield levels from the first that may be worth storing, judged by a sample of slices.

    A slice that begins less than a pixel after another is in its pixel with some probability.
    """
    count = len(times.start_ns)
    if count <= 1:
        return
    indices = np.arange(0, count - 1, max(1, count // SAMPLE))
    apart_ns = np.abs(times.start_ns[indices + 1] - times.start_ns[indices])
    is_promising = False
    for level in range(0, COARSEST + 1, STEP):
        if not is_promising:
            merged_share = np.maximum(1 - apart_ns / (1 << level), 0).mean()
            is_promising = bool(merged_share >= PROMISING)
        if is_promising:
            yield level


def merged(times: Times, finer: Level, level: int) -> Level:
    """Return the items at a level from those at a finer one."""
    first = finer.first[:-1]
    begins, longest_ns = _beginnings(times, finer, level)
    begin = np.flatnonzero(begins)
    return Level(
        level=level,
        first=np.append(first[begin], finer.first[-1:]),
        longest=longest_of(finer.longest, longest_ns, begin),
    )


def _beginnings(times: Times, finer: Level, level: int) -> tuple[Mask, Ints]:
    first = finer.first[:-1]
    duration_ns = times.duration_ns(finer.longest)
    is_wide = duration_ns >> level > 0
    begins = new_items(times.start_ns[first] >> level, is_wide)
    begins[first.searchsorted(times.row_first[:-1].astype(np.int32))] = True
    return begins, duration_ns


def new_items(pixel: Ints, is_wide: Mask) -> Mask:
    """Return which items of a row begin an item of a coarser level."""
    begins = is_wide.copy()
    begins[:1] = True
    begins[1:] |= is_wide[:-1]
    begins[1:] |= pixel[1:] != pixel[:-1]
    return begins


def longest_of(longest: NDArray[IntT], duration_ns: Ints, first: Ints) -> NDArray[IntT]:
    """Return the longest slice, the first of equal ones, of each run of items from `first` on."""
    if len(first) == len(longest):
        return longest
    most_ns = np.maximum.reduceat(duration_ns, first)
    counts = np.diff(first, append=len(longest))
    is_most = np.flatnonzero(duration_ns == np.repeat(most_ns, counts))
    at = is_most[np.searchsorted(is_most, first)]
    return longest[at]


def finest_above(useful: Sequence[Level], level: int) -> Level | None:
    """Return the coarsest of the levels that is no coarser than this; None: the slices are."""
    return next((candidate for candidate in reversed(useful) if candidate.level <= level), None)
