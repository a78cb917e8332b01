"""How far the times of calls spread in each group: quantiles, and the longest.

Many calls launch nothing on a device: a time of 0 is not kept, but counts. Times are sorted once,
and then for each grouping by group alone, which numbers of 16 bits make one pass.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

QUANTILES: Mapping[str, float] = MappingProxyType({"p50": 0.5, "p95": 0.95})
BITS = 63
"""Of a number in int64, without its sign."""
Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Ascending:
    """Times of calls, the shortest first; of calls that are not here, 0."""

    place: Rows
    values: NDArray[np.int64]

    def without(self, is_left_out: NDArray[np.bool_]) -> "Ascending":
        """Return the other calls' times."""
        kept = ~is_left_out[self.place]
        return Ascending(place=self.place[kept], values=self.values[kept])


def ascending(values: NDArray[np.int64]) -> Ascending:
    """Return the times that are above 0, in order; `values` is one a call."""
    place = np.flatnonzero(values > 0)
    times = values if len(place) == len(values) else values[place]
    bits = len(times).bit_length()
    if len(times) and int(times.max()).bit_length() + bits > BITS:
        order = np.argsort(times, kind="stable")
        return Ascending(place=place[order], values=times[order])
    # a time and its place as one number are sorted faster than places by time
    key = times << bits
    key |= np.arange(len(times))
    key.sort()
    times = key >> bits
    key &= (1 << bits) - 1
    return Ascending(place=place[key], values=times)


def spread(times: Ascending, group: Rows, calls: Rows) -> dict[str, NDArray[Any]]:
    """Return each group's `QUANTILES`, with numpy's method `linear`, and its longest: `max`.

    `group` is one a call, `calls` how many there are in each group: one at least.
    """
    small = group.astype(np.uint16) if len(calls) <= 2**16 else group
    of_times = small[times.place]
    size = np.bincount(of_times, minlength=len(calls))
    by_group = np.append(times.values[np.argsort(of_times, kind="stable")], 0)
    first, zeros = np.cumsum(size) - size, calls - size

    def at(place: Rows) -> NDArray[np.int64]:
        return np.where(place < zeros, 0, by_group[first + np.maximum(place - zeros, 0)])

    found: dict[str, NDArray[Any]] = {"max": at(calls - 1)}
    for name, share in QUANTILES.items():
        place = (calls - 1) * share
        below = np.floor(place).astype(np.int64)
        low, high = at(below), at(np.minimum(below + 1, calls - 1))
        found[name] = low + (high - low) * (place - below)
    return found
