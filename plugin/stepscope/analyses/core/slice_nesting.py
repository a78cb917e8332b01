"""Slices that cross on a track, shortened so that they nest: other viewers can draw no others.

Perfetto drops a slice that outlives the one around it, or nests what follows wrongly. Such are an
annotation and the Python function that opens it, or kernels of one stream that overlap
(programmatic dependent launch). Of a crossing, either the later slice ends with the ones around
it, or those end when it begins: whichever takes less time away.
"""

import numpy as np
from numpy.typing import NDArray

from stepscope.model import call_tree

MOST_WEIGHED = 1000
"""Slices around one that are weighed; if more end within it, it is the one that is shortened."""


def repaired_end_ns(
    track: NDArray[np.integer], start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the ends of slices, shortened where they crossed."""
    duration_ns = end_ns - start_ns
    nesting = call_tree.nest(track, start_ns, duration_ns)
    cut, _ = call_tree.crossing(nesting, track, start_ns, duration_ns)
    ends = end_ns.copy()
    for each in np.unique(track[cut]).tolist():
        rows = nesting.order[track[nesting.order] == each]
        ends[rows] = _shortened(start_ns[rows].tolist(), end_ns[rows].tolist())
    return ends


def _shortened(starts: list[int], ends: list[int]) -> list[int]:
    """Shorten the slices of one track, ordered by start, the longest first; return their ends."""
    running: list[int] = []
    for row, start in enumerate(starts):
        while running and ends[running[-1]] <= start:
            running.pop()
        around = _ending_within(running, row, starts, ends)
        if around is None:
            ends[row] = ends[running[-1]]
        elif around:
            for each in running[-around:]:
                ends[each] = start
            del running[-around:]
        running.append(row)
    return ends


def _ending_within(running: list[int], row: int, starts: list[int], ends: list[int]) -> int | None:
    """Return how many of the slices around one are to end when it begins; None: it is to end."""
    count = loss = 0
    for each in reversed(running):
        if ends[each] >= ends[row]:
            break
        count += 1
        loss += ends[each] - starts[row]
        if loss >= ends[row] - ends[running[-1]] or count > MOST_WEIGHED:
            return None
    return count
