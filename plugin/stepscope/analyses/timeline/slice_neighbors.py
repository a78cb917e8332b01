"""Neighbours, parents and children of a slice."""

from typing import Literal

import numpy as np

from stepscope.analyses.timeline.slices import Slices
from stepscope.model.arrays import NONE, Ints

Direction = Literal["left", "right", "up", "down"]


def end_ns(slices: Slices, index: int) -> int:
    """Return the end of a slice."""
    return int(slices.times.start_ns[index]) + duration_ns(slices, index)


def duration_ns(slices: Slices, index: int) -> int:
    """Return the duration of a slice."""
    before = slices.times.busy_before_ns
    return int(before[index + 1] - before[index])


def around(slices: Slices, index: int) -> list[int]:
    """Return the slices of its track that contain a slice, the outermost first."""
    outer = []
    above = int(slices.parent[index])
    while above != NONE:
        outer.append(above)
        above = int(slices.parent[above])
    return outer[::-1]


def last_begun(slices: Slices, row: int, at_ns: int) -> int:
    """Return the last slice of a row that begins by then, or -1."""
    first, end = slices.times.row_first[row : row + 2].tolist()
    begun = int(np.searchsorted(slices.times.start_ns[first:end], at_ns, side="right"))
    return first + begun - 1 if begun else NONE


def children(slices: Slices, index: int) -> Ints:
    """Return the direct children of a slice, by start."""
    start, end = int(slices.times.start_ns[index]), end_ns(slices, index)
    track = int(slices.row_track[int(slices.row_of(np.array([index]))[0])])
    inner = [np.zeros(0, dtype=np.int64)]
    for row in slices.rows_of(track):
        span = in_time(slices, row, (start, end + 1))
        parents = slices.parent[span.start : span.stop]
        inner.append(span.start + np.flatnonzero(parents == index))
    together = np.concatenate(inner)
    return together[np.argsort(slices.times.start_ns[together], kind="stable")]


def neighbour(slices: Slices, index: int, direction: Direction) -> int:
    """Return the slice to the left, right, above or below a slice, or -1.

    Above is its parent, or else the slice of the next row up at its start; below is its first
    child, or else the slice of the next row down.
    """
    row = int(slices.row_of(np.array([index]))[0])
    first, end = slices.times.row_first[row : row + 2].tolist()
    if direction == "left":
        return index - 1 if index > first else NONE
    if direction == "right":
        return index + 1 if index + 1 < end else NONE
    if direction == "up":
        over = around(slices, index)
        return over[-1] if over else _nearest_in(slices, row - 1, index)
    inner = children(slices, index)
    return int(inner[0]) if len(inner) else _nearest_in(slices, row + 1, index)


def _nearest_in(slices: Slices, row: int, index: int) -> int:
    """Return the slice of a row, of any track, that is nearest to a slice's start."""
    if not 0 <= row < len(slices.row_track):
        return NONE
    return nearest(slices, row, int(slices.times.start_ns[index]))


def nearest(slices: Slices, row: int, at_ns: int) -> int:
    """Return the slice of a row that runs then, or else the nearest; -1 if there is none."""
    first, end = slices.times.row_first[row : row + 2].tolist()
    if first == end:
        return NONE
    before = last_begun(slices, row, at_ns)
    if before == NONE:
        return int(first)
    if before + 1 == end or end_ns(slices, before) > at_ns:
        return before
    until_ns = int(slices.times.start_ns[before + 1]) - at_ns
    return before if at_ns - end_ns(slices, before) <= until_ns else before + 1


def overlapping(slices: Slices, rows: range, time: tuple[int, int], limit: int) -> tuple[Ints, int]:
    """Return the first slices of some rows in a time range, by start, and their total count."""
    ranges = [in_time(slices, row, time) for row in rows]
    starts = [np.arange(span.start, min(span.stop, span.start + limit)) for span in ranges]
    first = np.concatenate([np.zeros(0, dtype=np.int64), *starts])
    order = np.argsort(slices.times.start_ns[first], kind="stable")[:limit]
    return first[order], sum(map(len, ranges))


def in_time(slices: Slices, row: int, time: tuple[int, int]) -> range:
    """Return the slices of a row that overlap a time range."""
    first, end = slices.times.row_first[row : row + 2].tolist()
    low, high = (first + np.searchsorted(slices.times.start_ns[first:end], time)).tolist()
    if low > first and end_ns(slices, low - 1) > time[0]:
        low -= 1
    return range(low, high)
