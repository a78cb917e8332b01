"""Curves with fewer points that look the same: each pixel keeps its first, least, most and last.

What is kept are events of the curve, nothing is averaged: a peak of one event stays as high as it
was. (Jugel et al., M4, VLDB 2014.)
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def decimated_indices(
    time_ns: NDArray[np.int64], levels: Sequence[Values], start_ns: int, end_ns: int, pixels: int
) -> NDArray[np.int64]:
    """Return which places of curves over the same times are drawn on so many pixels, in order.

    Times ascend; `[start_ns, end_ns]` is what the pixels show.
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
    """Return the first place of each group that is one; groups ascend."""
    places = np.flatnonzero(is_one)
    is_first = np.append(True, np.diff(group[places]) != 0)[: len(places)]
    first: NDArray[np.int64] = places[is_first]
    return first
