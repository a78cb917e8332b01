"""Arithmetic on sets of time intervals.

A set is an int64 array of shape (n, 2): half-open `[start_ns, end_ns)`, sorted, disjoint, not
touching, none empty. `union` makes a set from any intervals; the other functions take and return
sets.
"""

import numpy as np
from numpy.typing import NDArray

Intervals = NDArray[np.int64]
EMPTY: Intervals = np.empty((0, 2), dtype=np.int64)
EMPTY.flags.writeable = False


def union(start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]) -> Intervals:
    """Return the set of all times covered by any of the intervals."""
    full = end_ns > start_ns
    start, end = start_ns[full], end_ns[full]
    if not len(start):
        return EMPTY
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    first = np.flatnonzero(np.concatenate(([True], start[1:] > end[:-1])))
    last = np.concatenate((first[1:] - 1, [len(end) - 1]))
    return np.stack((start[first], end[last]), axis=1)


def merged(*sets: Intervals) -> Intervals:
    """Return the set of all times in any of the sets."""
    together = np.concatenate(sets) if sets else EMPTY
    return union(together[:, 0], together[:, 1])


def duration_ns(times: Intervals) -> int:
    """Return the total duration of the set."""
    return int((times[:, 1] - times[:, 0]).sum())


def complement(times: Intervals, start_ns: int, end_ns: int) -> Intervals:
    """Return the times of the window `[start_ns, end_ns)` that are not in the set."""
    inside = clip(times, start_ns, end_ns)
    between = np.concatenate(([start_ns], inside.ravel(), [end_ns])).reshape(-1, 2)
    return between[between[:, 1] > between[:, 0]]


def clip(times: Intervals, start_ns: int, end_ns: int) -> Intervals:
    """Return the part of the set inside the window."""
    bounded = np.clip(times, start_ns, end_ns)
    return bounded[bounded[:, 1] > bounded[:, 0]]


def intersection(left: Intervals, right: Intervals) -> Intervals:
    """Return the times in both sets."""
    if not len(left) or not len(right):
        return EMPTY
    low = np.searchsorted(right[:, 1], left[:, 0], side="right")
    high = np.searchsorted(right[:, 0], left[:, 1], side="left")
    counts = np.maximum(high - low, 0)
    owner = np.repeat(np.arange(len(left)), counts)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    partner = np.repeat(low, counts) + offset
    # In order, and one of the sets has a gap between any two of them: no union is needed.
    start = np.maximum(left[owner, 0], right[partner, 0])
    end = np.minimum(left[owner, 1], right[partner, 1])
    return np.stack((start, end), axis=1)


def difference(left: Intervals, right: Intervals) -> Intervals:
    """Return the times in the left set but not in the right one."""
    if not len(left) or not len(right):
        return left
    return intersection(left, complement(right, int(left[0, 0]), int(left[-1, 1])))


def covered_ns(
    times: Intervals, start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return, for each query interval, the duration that the set covers."""
    covered = _covered_before(times, end_ns) - _covered_before(times, start_ns)
    return np.asarray(np.maximum(covered, 0))


def _covered_before(times: Intervals, at_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the duration of the set before each time."""
    if not len(times):
        return np.zeros(len(at_ns), dtype=np.int64)
    total = np.concatenate(([0], np.cumsum(times[:, 1] - times[:, 0])))
    index = np.searchsorted(times[:, 0], at_ns, side="right")
    beyond = np.where(index > 0, np.maximum(times[index - 1, 1] - at_ns, 0), 0)
    return total[index] - beyond
