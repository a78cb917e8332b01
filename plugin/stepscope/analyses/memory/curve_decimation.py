"""Decimation of curves that keeps each pixel's first, lowest, highest and last event.

Nothing is averaged: a peak of one event keeps its height. (Jugel et al., M4, VLDB 2014.)
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def decimated_indices(
    time_ns: NDArray[np.int64], levels: Sequence[Values], start_ns: int, end_ns: int, pixels: int
) -> NDArray[np.int64]:
    """Return the indices of the events to draw, in order, for curves over the same times.

    Times ascend; `[start_ns, end_ns]` is the range that the pixels show.
    """
    low = int(np.searchsorted(time_ns, start_ns, side="left"))
    high = int(np.searchsorted(time_ns, end_ns, side="right"))
    if high - low <= (2 + 2 * len(levels)) * pixels:
        return np.arange(low, high)
    pixel = (time_ns[low:high] - start_ns) * pixels // max(1, end_ns - start_ns + 1)
    first = np.flatnonzero(np.append(True, pixel[1:] != pixel[:-1]))
    last = np.append(first[1:], len(pixel)) - 1
    group = np.repeat(np.arange(len(first)), last - first + 1)
    parts = [first, last]
    for level in levels:
        for extreme in (np.fmin, np.fmax):
            values = level[low:high]
            parts.append(_first_of(group, values == extreme.reduceat(values, first)[group]))
    indices: NDArray[np.int64] = low + np.unique(np.concatenate(parts))
    return indices


def _first_of(group: NDArray[np.int64], is_one: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the first index of each group where the mask is true; groups ascend."""
    places = np.flatnonzero(is_one)
    is_first = np.append(True, np.diff(group[places]) != 0)[: len(places)]
    first: NDArray[np.int64] = places[is_first]
    return first
