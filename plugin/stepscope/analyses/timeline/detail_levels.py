"""Slices at coarser and coarser grain, so that a tile is made from few of them.

At level L a pixel is 2^L ns wide. Slices that begin in one pixel of a row and are shorter than a
pixel follow each other, so they are one *item*: from its first slice to the next item's, with the
longest of them. A slice of a pixel or more is an item of its own. So items at every level are all
slices, none lost and none twice; and items of a level are made from those of any finer one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

IntT = TypeVar("IntT", bound=np.integer)
Places = NDArray[np.int32]
"""Places among the slices."""
COARSEST = 44
"""2^44 ns are five hours a pixel."""
LEAST_MERGED = 0.3
"""A level is kept if so many of the last one's items are merged: a tile then reads hardly more
items than it shows, and all levels together are at most 2.3 times the slices."""
PROMISING = 0.25
"""As `LEAST_MERGED`, of a sample."""
SAMPLE = 200_000
STEP = 2
"""Levels that are looked at are so far apart."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """The items at one level, in the slices' order."""

    level: int
    first: Places
    """Each item's first slice; behind them the number of slices."""
    longest: Places
    """Each item's longest slice, the first of equal ones."""

    def __len__(self) -> int:
        """Return how many items there are."""
        return len(self.longest)


@dataclass(frozen=True, kw_only=True, eq=False)
class Times:
    """Slices by row, then time: those of a row follow each other and do not overlap."""

    start_ns: NDArray[np.int64]
    busy_before_ns: NDArray[np.int64]
    """Durations of all slices before each, and behind them of all."""
    row_first: NDArray[np.int64]
    """Each row's first slice; behind them the number of slices."""

    def duration_ns(self, places: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return how long these slices are."""
        found: NDArray[np.int64] = self.busy_before_ns[places + 1] - self.busy_before_ns[places]
        return found


def levels(times: Times) -> tuple[Level, ...]:
    """Return the levels that are worth keeping, finest first."""
    kept: list[Level] = []
    finer = last = _every_slice(len(times.start_ns))
    for level in _promising(times):
        last = merged(times, last, level)
        if len(last) <= (1 - LEAST_MERGED) * len(finer):
            kept.append(last)
            finer = last
        if len(last) <= len(times.row_first):
            break
    return tuple(kept)


def _every_slice(count: int) -> Level:
    every = np.arange(count + 1, dtype=np.int32)
    return Level(level=0, first=every, longest=every[:-1])


def _promising(times: Times) -> Iterator[int]:
    """Yield levels from the first that may be worth keeping, judged by some of the slices.

    A slice that begins less than a pixel behind another is in its pixel with some probability.
    """
    count = len(times.start_ns)
    if count <= 1:
        return
    places = np.arange(0, count - 1, max(1, count // SAMPLE))
    apart_ns = np.abs(times.start_ns[places + 1] - times.start_ns[places])
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
    place = np.flatnonzero(begins)
    return Level(
        level=level,
        first=np.append(first[place], finer.first[-1:]),
        longest=longest_of(finer.longest, longest_ns, place),
    )


def _beginnings(
    times: Times, finer: Level, level: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    first = finer.first[:-1]
    duration_ns = times.duration_ns(finer.longest)
    is_wide = duration_ns >> level > 0
    begins = new_items(times.start_ns[first] >> level, is_wide)
    begins[first.searchsorted(times.row_first[:-1].astype(np.int32))] = True
    return begins, duration_ns


def new_items(pixel: NDArray[np.int64], is_wide: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell which items of a row begin an item of a coarser level."""
    begins = is_wide.copy()
    begins[:1] = True
    begins[1:] |= is_wide[:-1]
    begins[1:] |= pixel[1:] != pixel[:-1]
    return begins


def longest_of(
    longest: NDArray[IntT], duration_ns: NDArray[np.int64], first: NDArray[np.int64]
) -> NDArray[IntT]:
    """Return the longest slice of each run of items that begins at `first`; of equal the first."""
    if len(first) == len(longest):
        return longest
    most_ns = np.maximum.reduceat(duration_ns, first)
    counts = np.diff(first, append=len(longest))
    is_most = np.flatnonzero(duration_ns == np.repeat(most_ns, counts))
    at = is_most[np.searchsorted(is_most, first)]
    return longest[at]


def finest_above(kept: Sequence[Level], level: int) -> Level | None:
    """Return the coarsest of the levels that is no coarser than this; None: the slices are."""
    return next((each for each in reversed(kept) if each.level <= level), None)
