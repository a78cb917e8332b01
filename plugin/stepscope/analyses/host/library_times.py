"""Time of the program in NumPy, pandas or PIL instead of torch, by its Python functions.

NumPy's operators (`a > b`) leave no function. So two more kinds of time without operators and
runtime calls count: gaps that functions of these libraries mostly fill, and the time between
`tensor.numpy()` and `torch.from_numpy(array)` in one call of a function.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.call_paths import python_nesting
from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.host_activity import main_thread
from stepscope.analyses.core.window import window
from stepscope.analyses.host.library_detection import NAMED, library_of
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

TO_NUMPY = re.compile(r"^<built-in (?:method|function) numpy of Tensor")
FROM_NUMPY = re.compile(r"^<built-in (?:method|function) from_numpy\b")


@dataclass(frozen=True, kw_only=True, eq=False)
class LibraryTimes:
    """Times of the main thread in the window, without data loading."""

    calls: Ints
    """Rows of `python_calls`: outermost functions of these libraries."""
    inside: Intervals
    """In such a call, and in no operator called from it."""
    with_gaps: Intervals
    """The same, with the gaps without operators that belong to these libraries."""


@computed
def library_times(trace: Trace) -> LibraryTimes:
    """Return the main thread's times in NumPy, pandas or PIL; empty without Python functions."""
    span, loading = window(trace), data_loading(trace).times
    calls = _outermost(trace)
    theirs = frame_times.times(trace.python_calls, calls)
    theirs = intervals.difference(theirs, _operators_called_in(trace, theirs))
    inside = intervals.difference(intervals.clip(theirs, span.start_ns, span.end_ns), loading)
    free = without_operators(trace)
    mostly = free[2 * intervals.covered_ns(inside, *free.T) >= free[:, 1] - free[:, 0]]
    between = intervals.intersection(free, _between_hand_overs(trace))
    return LibraryTimes(
        calls=calls, inside=inside, with_gaps=intervals.merged(inside, mostly, between)
    )


@computed
def without_operators(trace: Trace) -> Intervals:
    """Return the times with no thread in an operator, runtime call, or data loading."""
    span, calls = window(trace), trace.host_calls
    operators = frame_times.times(calls, calls["is_operator"].to_numpy())
    runtime = frame_times.times(trace.runtime_calls, frame_times.ALL)
    at_work = intervals.merged(operators, runtime, data_loading(trace).times)
    return intervals.complement(at_work, span.start_ns, span.end_ns)


def _outermost(trace: Trace) -> Ints:
    functions = trace.python_calls
    is_theirs = name_mask(functions["name"], lambda name: library_of(name) in NAMED)
    is_theirs &= (functions["thread"] == main_thread(trace)).to_numpy()
    rows = np.flatnonzero(is_theirs)
    start, end = (functions[name].to_numpy()[rows] for name in ("start_ns", "end_ns"))
    order = np.lexsort((-end, start))
    reached = np.maximum.accumulate(end[order])
    is_first = np.append(True, start[order][1:] >= reached[:-1])[: len(rows)]
    outermost: Ints = rows[order[is_first]]
    return outermost


def _between_hand_overs(trace: Trace) -> Intervals:
    """Return the times between a tensor's `numpy()` and the next `from_numpy()` of a function."""
    functions = trace.python_calls
    on_main = (functions["thread"] == main_thread(trace)).to_numpy()
    got = np.flatnonzero(on_main & name_mask(functions["name"], TO_NUMPY.search))
    made = np.flatnonzero(on_main & name_mask(functions["name"], FROM_NUMPY.search))
    if not len(got) or not len(made):
        return intervals.EMPTY
    start, parent = functions["start_ns"].to_numpy(), python_nesting(trace).parent
    got, made = got[np.argsort(start[got])], made[np.argsort(start[made])]
    last = np.searchsorted(start[got], start[made]) - 1
    before = got[last]
    is_pair = (last >= 0) & (parent[before] == parent[made]) & (parent[made] >= 0)
    end = functions["end_ns"].to_numpy()
    return intervals.union(end[before[is_pair]], start[made[is_pair]])


def _operators_called_in(trace: Trace, theirs: Intervals) -> Intervals:
    """Return the times of the operators called during some times."""
    calls = trace.host_calls
    is_operator = (
        calls["is_operator"].to_numpy() & (calls["thread"] == main_thread(trace)).to_numpy()
    )
    rows = np.flatnonzero(is_operator)
    start = calls["start_ns"].to_numpy()[rows]
    rows = rows[intervals.covered_ns(theirs, start, start + 1) > 0]
    return frame_times.times(calls, rows)
