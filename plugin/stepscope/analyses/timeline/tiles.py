"""A tile of the timeline at a level of detail: wide slices themselves, short ones merged by pixel.

A tile is `TILE_PIXELS` pixels of 2^level ns wide. A slice of a pixel or more is shown itself, in
every tile that it overlaps. Shorter slices are shown in the pixel where they begin, merged with the
others there: with their count, their busy time, and the name of the longest. So the counts of all
tiles sum to the number of slices, except for wide ones that cross an edge.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.timeline.detail_levels import COARSEST, finest_above, longest_of, new_items
from stepscope.analyses.timeline.slices import LATEST_NS, Slices
from stepscope.base.errors import UsageError
from stepscope.model.arrays import Ints

TILE_PIXELS = 1024
MOST_ITEMS = 250_000
"""Limit of items per response. Rows beyond it are left out, and counted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tile:
    """Some rows of a tile; arrays are parallel, in the order of the rows, then of time."""

    level: int
    number: int
    rows: tuple[tuple[int, int, int], ...]
    """Track, row in it, and number of items; rows without any are left out."""
    left_out_row_count: int
    start_ns: Ints
    end_ns: Ints
    """The last one's end for merged slices."""
    busy_ns: Ints
    """Time in which any of them ran."""
    count: Ints
    longest: Ints
    """The longest slice."""

    @property
    def first_ns(self) -> int:
        """Start of the tile."""
        return min(self.number * TILE_PIXELS << self.level, LATEST_NS + 1)


def tile(slices: Slices, tracks: Iterable[int], level: int, number: int) -> Tile:
    """Return a tile of some tracks, in their order.

    Raises:
        UsageError: there is no such level, or the tile's number is negative.
    """
    start_ns, end_ns = require(level, number)
    rows = [row for track in tracks for row in slices.rows_of(track)]
    ranges = _ranges(slices, rows, level, (start_ns, end_ns))
    return _of_items(slices, rows, ranges, (level, number))


def require(level: int, number: int) -> tuple[int, int]:
    """Return start and end of a tile; one after `LATEST_NS` is empty.

    Raises:
        UsageError: there is no such level, or the tile's number is negative.
    """
    if not 0 <= level <= COARSEST:
        msg = f"level is 0 to {COARSEST}: a pixel is 2^level ns wide"
        raise UsageError(msg)
    if number < 0:
        msg = "tile is 0 or more: nothing is before the trace's first event"
        raise UsageError(msg)
    beyond = LATEST_NS + 1
    return (
        min(number * TILE_PIXELS << level, beyond),
        min((number + 1) * TILE_PIXELS << level, beyond),
    )


def _ranges(
    slices: Slices, rows: Sequence[int], level: int, time: tuple[int, int]
) -> tuple[Ints, Ints]:
    """Return the first slice of each row in the tile, and the end of its range."""
    times = slices.times
    first = times.row_first.tolist()
    bounds = np.array(time, dtype=np.int64)
    ranges = np.empty((len(rows), 2), dtype=np.int64)
    for number, row in enumerate(rows):
        begin = first[row]
        ranges[number] = np.searchsorted(times.start_ns[begin : first[row + 1]], bounds) + begin
    low, high = ranges[:, 0], ranges[:, 1]
    before = np.flatnonzero(low > times.row_first[rows]) if len(rows) else low
    last = low[before] - 1
    duration_ns = times.duration_ns(last)
    reaches = (duration_ns >> level > 0) & (times.start_ns[last] + duration_ns > time[0])
    low[before[reaches]] -= 1
    return low, high


def _of_items(
    slices: Slices,
    rows: Sequence[int],
    ranges: tuple[Ints, Ints],
    level_and_number: tuple[int, int],
) -> Tile:
    (low, high), (level, number) = ranges, level_and_number
    times, coarse = slices.times, finest_above(slices.levels, level)
    if coarse is not None:
        # of their type: all items would be converted
        low, high = (coarse.first.searchsorted(bound.astype(np.int32)) for bound in (low, high))
    items, counts = _concatenated(low, high)
    first = items if coarse is None else coarse.first[items]
    behind = items + 1 if coarse is None else coarse.first[items + 1]
    longest = items if coarse is None else coarse.longest[items]
    duration_ns = times.duration_ns(longest)
    begins = new_items(times.start_ns[first] >> level, duration_ns >> level > 0)
    row_begins = np.cumsum(counts) - counts
    begins[row_begins[counts > 0]] = True
    at = np.flatnonzero(begins)
    in_row = np.add.reduceat(begins, row_begins[counts > 0]) if len(at) else counts[:0]
    last = np.append(at[1:] - 1, len(begins) - 1)[: len(at)]
    head, tail = first[at], behind[last]
    nonempty = [rows[number] for number in np.flatnonzero(counts).tolist()]
    return _bounded(
        Tile(
            level=level,
            number=number,
            rows=tuple(_named(slices, nonempty, in_row)),
            left_out_row_count=0,
            start_ns=times.start_ns[head],
            end_ns=times.start_ns[tail - 1] + times.duration_ns(tail - 1),
            busy_ns=times.busy_before_ns[tail] - times.busy_before_ns[head],
            count=(tail - head).astype(np.int64),
            longest=longest_of(longest.astype(np.int64), duration_ns, at),
        )
    )


def _concatenated(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return all indices of the ranges, and the number in each."""
    counts = np.maximum(high - low, 0)
    before = np.cumsum(counts) - counts
    places: Ints = np.arange(counts.sum(), dtype=np.int64) + np.repeat(low - before, counts)
    return places, counts


def _named(
    slices: Slices, rows: Sequence[int], counts: NDArray[np.integer]
) -> Iterable[tuple[int, int, int]]:
    tracks, numbers = slices.row_track[rows], slices.row_number[rows]
    return zip(tracks.tolist(), numbers.tolist(), counts.tolist(), strict=True)


def _bounded(whole: Tile) -> Tile:
    """Return the tile without its last rows if it holds too many items."""
    if len(whole.start_ns) <= MOST_ITEMS:
        return whole
    behind = np.cumsum([count for _, _, count in whole.rows])
    row_limit = int(np.searchsorted(behind, MOST_ITEMS, side="right"))
    count = int(behind[row_limit - 1]) if row_limit else 0
    return Tile(
        level=whole.level,
        number=whole.number,
        rows=whole.rows[:row_limit],
        left_out_row_count=len(whole.rows) - row_limit,
        start_ns=whole.start_ns[:count],
        end_ns=whole.end_ns[:count],
        busy_ns=whole.busy_ns[:count],
        count=whole.count[:count],
        longest=whole.longest[:count],
    )
