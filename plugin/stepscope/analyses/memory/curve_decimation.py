"""Decimation of curves that keeps each pixel's first, lowest, highest and last event.

Nothing is averaged: a peak of one event keeps its height. (Jugel et al., M4, VLDB 2014.)
"""

from collections.abc import Sequence

import numpy as np

from stepscope.model.arrays import Floats, Ints, Mask


def decimated_indices(
    time_ns: Ints, levels: Sequence[Floats], start_ns: int, end_ns: int, pixels: int
) -> Ints:
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
    indices: Ints = low + np.unique(np.concatenate(parts))
    return indices


def _first_of(group: Ints, is_one: Mask) -> Ints:
    """Return the first index of each group where the mask is true; groups ascend."""
    places = np.flatnonzero(is_one)
    is_first = np.append(True, np.diff(group[places]) != 0)[: len(places)]
    first: Ints = places[is_first]
    return first
