"""Slices beside, around and within a slice."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.timeline.slices import Slices

Direction = Literal["left", "right", "up", "down"]
NONE = -1


def end_ns(slices: Slices, place: int) -> int:
    """Return when a slice ends."""
    return int(slices.times.start_ns[place]) + duration_ns(slices, place)


def duration_ns(slices: Slices, place: int) -> int:
    """Return how long a slice is."""
    before = slices.times.busy_before_ns
    return int(before[place + 1] - before[place])


def around(slices: Slices, place: int) -> list[int]:
    """Return the slices of its track that contain a slice, the outermost first."""
    found = []
    above = int(slices.parent[place])
    while above != NONE:
        found.append(above)
        above = int(slices.parent[above])
    return found[::-1]


def last_begun(slices: Slices, row: int, at_ns: int) -> int:
    """Return the last slice of a row that has begun by then, or -1."""
    first, behind = slices.times.row_first[row : row + 2].tolist()
    found = int(np.searchsorted(slices.times.start_ns[first:behind], at_ns, side="right"))
    return first + found - 1 if found else NONE


def children(slices: Slices, place: int) -> NDArray[np.int64]:
    """Return the slices that a slice contains, not within another of them, by start."""
    start, end = int(slices.times.start_ns[place]), end_ns(slices, place)
    track = int(slices.row_track[int(slices.row_of(np.array([place]))[0])])
    found = [np.zeros(0, dtype=np.int64)]
    for row in slices.rows_of(track):
        within = in_time(slices, row, (start, end + 1))
        own = slices.parent[within.start : within.stop]
        found.append(within.start + np.flatnonzero(own == place))
    together = np.concatenate(found)
    return together[np.argsort(slices.times.start_ns[together], kind="stable")]


def neighbour(slices: Slices, place: int, direction: Direction) -> int:
    """Return the slice beside, above or below a slice, or -1.

    Above is what contains it, or else what runs on the next row up when it begins; below is the
    first that it contains, or else what runs on the next row down.
    """
    row = int(slices.row_of(np.array([place]))[0])
    first, behind = slices.times.row_first[row : row + 2].tolist()
    if direction == "left":
        return place - 1 if place > first else NONE
    if direction == "right":
        return place + 1 if place + 1 < behind else NONE
    if direction == "up":
        over = around(slices, place)
        return over[-1] if over else _beside(slices, row - 1, place)
    within = children(slices, place)
    return int(within[0]) if len(within) else _beside(slices, row + 1, place)


def _beside(slices: Slices, row: int, place: int) -> int:
    """Return the slice of a row, of whatever track, that is nearest to a slice's start."""
    if not 0 <= row < len(slices.row_track):
        return NONE
    return nearest(slices, row, int(slices.times.start_ns[place]))


def nearest(slices: Slices, row: int, at_ns: int) -> int:
    """Return the slice of a row that runs then, or else the nearest; -1 where there is none."""
    first, behind = slices.times.row_first[row : row + 2].tolist()
    if first == behind:
        return NONE
    before = last_begun(slices, row, at_ns)
    if before == NONE:
        return int(first)
    if before + 1 == behind or end_ns(slices, before) > at_ns:
        return before
    until_ns = int(slices.times.start_ns[before + 1]) - at_ns
    return before if at_ns - end_ns(slices, before) <= until_ns else before + 1


def overlapping(
    slices: Slices, rows: range, time: tuple[int, int], limit: int
) -> tuple[NDArray[np.int64], int]:
    """Return the first slices of some rows that are in a time, by start, and how many there are."""
    within = [in_time(slices, row, time) for row in rows]
    chosen = [np.arange(each.start, min(each.stop, each.start + limit)) for each in within]
    first = np.concatenate([np.zeros(0, dtype=np.int64), *chosen])
    order = np.argsort(slices.times.start_ns[first], kind="stable")[:limit]
    return first[order], sum(map(len, within))


def in_time(slices: Slices, row: int, time: tuple[int, int]) -> range:
    """Return the slices of a row that are in a time, wholly or in part."""
    first, behind = slices.times.row_first[row : row + 2].tolist()
    low, high = (first + np.searchsorted(slices.times.start_ns[first:behind], time)).tolist()
    if low > first and end_ns(slices, low - 1) > time[0]:
        low -= 1
    return range(low, high)
