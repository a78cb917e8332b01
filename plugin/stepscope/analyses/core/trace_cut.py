"""Parts of a trace: slices of time for analyses, and cuts for exports.

Device work belongs to the slice of the call that launched it, else to that of its start. So every
event belongs to exactly one of the slices that divide a trace, and sums over the slices are sums of
the trace (for operators, where no slice begins inside one). Events keep their index in the file.

Host events that run in the span belong to a cut, at full length, and device events that run in the
span or are launched in it. Metadata rows stay, and arrows with both ends inside.

Exported slices must nest: Perfetto drops a slice that outlives the slice around it, or nests later
ones wrongly. Slices cross where an annotation ends after the Python function that opens it, or
where kernels of one stream overlap (programmatic dependent launch). Of a crossing, either the later
slice ends with those around it, or those end at its start: whichever removes less time.
"""

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from threading import Lock
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.links import links
from stepscope.base.errors import MissingDataError, UsageError
from stepscope.dialects import Kind
from stepscope.ingest import EventColumns
from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.model import call_tree
from stepscope.model.arrays import Ints, Mask
from stepscope.model.frames.source import COMPLETE_PHASE, METADATA_PHASE
from stepscope.model.trace import Trace

FLOW_PHASES = ("s", "t", "f")
RECORD_STEPS = "profiler.step()  # at the end of each iteration"


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """Events of a part of a trace, by their index in the file."""

    start_ns: int
    end_ns: int
    events: Ints
    """Ascending."""
    shortened: Ints
    """Slices that crossed others on their track."""
    duration_ns: Ints
    """Their durations, shortened so that they nest."""


def time_of_steps(trace: Trace, first: int, last: int) -> tuple[int, int]:
    """Return the host's start and end of the steps of these numbers, in ns.

    Raises:
        MissingDataError: the trace has no steps.
        UsageError: it has none of these.
    """
    steps = trace.steps
    if not len(steps):
        msg = "The trace has no steps."
        raise MissingDataError(msg, RECORD_STEPS)
    number = steps["number"].to_numpy()
    selected = steps[(first <= number) & (number <= last)]
    if not len(selected):
        msg = f"there is no such step; there are {number.min()} to {number.max()}"
        raise UsageError(msg)
    return int(selected["start_ns"].min()), int(selected["end_ns"].max())


def cut(trace: Trace, start_ns: int, end_ns: int, *, is_repaired: bool = True) -> Cut:
    """Return the events of `[start_ns, end_ns)`, and the durations of slices that cross."""
    columns = trace.columns
    timed = columns.start_ns != NO_TIME
    slices = timed & _is_phase(columns, COMPLETE_PHASE) & ~trace.source.is_lost
    until_ns = columns.start_ns + np.maximum(columns.duration_ns, 0)
    begins = timed & (columns.start_ns >= start_ns) & (columns.start_ns < end_ns)
    is_slice_inside = slices & (begins | ((columns.start_ns < start_ns) & (until_ns > start_ns)))
    is_slice_inside[_launched(trace, is_slice_inside)] = True
    flows = timed & _is_phase(columns, *FLOW_PHASES)
    is_metadata = _is_phase(columns, METADATA_PHASE)
    is_inside = is_slice_inside | is_metadata | (begins & ~slices & ~flows)
    rows = np.flatnonzero(is_slice_inside)
    outer = rows, until_ns[rows]
    is_inside[_whole_flows(trace, np.flatnonzero(flows), outer, begins)] = True
    shortened, duration_ns = _repairs(trace, *outer)
    count = len(shortened) if is_repaired else 0
    return Cut(
        start_ns=start_ns,
        end_ns=end_ns,
        events=np.flatnonzero(is_inside),
        shortened=shortened[:count],
        duration_ns=duration_ns[:count],
    )


def whole(trace: Trace) -> Cut:
    """Return every event of the trace, as recorded."""
    columns = trace.columns
    timed = columns.start_ns != NO_TIME
    end_ns = columns.start_ns + np.maximum(columns.duration_ns, 0)
    nothing = np.empty(0, dtype=np.int64)
    return Cut(
        start_ns=int(columns.start_ns.min(where=timed, initial=0)),
        end_ns=int(end_ns.max(where=timed, initial=0)) + 1,
        events=np.arange(len(trace)),
        shortened=nothing,
        duration_ns=nothing,
    )


def _is_phase(columns: EventColumns, *phases: str) -> Mask:
    codes = [code for code, text in enumerate(columns.strings) if text in phases]
    return np.isin(columns.phase, codes)


def _launched(trace: Trace, is_inside: Mask) -> Ints:
    call = links(trace).call_of_device_event
    events = trace.runtime_calls["event"].to_numpy()
    linked = np.flatnonzero(call >= 0)
    linked = linked[is_inside[events[call[linked]]]]
    return np.asarray(trace.device_events["event"].to_numpy()[linked])


def _whole_flows(trace: Trace, flows: Ints, slices: tuple[Ints, Ints], begins: Mask) -> Ints:
    """Return the events of arrows that begin and end at slices inside."""
    if not len(flows):
        return flows
    columns, (track, _) = trace.columns, trace.source.threads
    start_ns = columns.start_ns
    rows, end_ns = slices
    outer = track[rows], start_ns[rows], end_ns
    at = track[flows], start_ns[flows], start_ns[flows]
    inside = flows[begins[flows] | (call_tree.enclosing(outer, at) >= 0)]
    key = (columns.category[inside].astype(np.int64) << 32) + columns.identifier[inside]
    both = np.intersect1d(
        key[_is_phase(columns, "s")[inside]], key[_is_phase(columns, "f")[inside]]
    )
    return inside[np.isin(key, both)]


def _repairs(trace: Trace, slices: Ints, until_ns: Ints) -> tuple[Ints, Ints]:
    (track, _), start_ns = trace.source.threads, trace.columns.start_ns[slices]
    end_ns = repaired_end_ns(track[slices], start_ns, until_ns)
    shorter = np.flatnonzero(end_ns < until_ns)
    return slices[shorter], (end_ns - start_ns)[shorter]


MOST_WEIGHED = 1000
"""If more of the slices around a slice end inside it, that slice is shortened."""


def repaired_end_ns(track: NDArray[np.integer], start_ns: Ints, end_ns: Ints) -> Ints:
    """Return the ends of slices, shortened so that slices of a track nest."""
    duration_ns = end_ns - start_ns
    nesting = call_tree.nest(track, start_ns, duration_ns)
    cut, _ = call_tree.crossing(nesting, track, start_ns, duration_ns)
    ends = end_ns.copy()
    for number in np.unique(track[cut]).tolist():
        rows = nesting.order[track[nesting.order] == number]
        ends[rows] = _shortened(start_ns[rows].tolist(), end_ns[rows].tolist())
    return ends


def _shortened(starts: list[int], ends: list[int]) -> list[int]:
    running: list[int] = []
    for row, start in enumerate(starts):
        while running and ends[running[-1]] <= start:
            running.pop()
        around = _count_to_shorten(running, row, starts, ends)
        if around is None:
            ends[row] = ends[running[-1]]
        elif around:
            for open_row in running[-around:]:
                ends[open_row] = start
            del running[-around:]
        running.append(row)
    return ends


def _count_to_shorten(
    running: list[int], row: int, starts: list[int], ends: list[int]
) -> int | None:
    """Return the number of slices around one that end at its start; None: it is shortened."""
    count = loss = 0
    for open_row in reversed(running):
        if ends[open_row] >= ends[row]:
            break
        count += 1
        loss += ends[open_row] - starts[row]
        if loss >= ends[row] - ends[running[-1]] or count > MOST_WEIGHED:
            return None
    return count


MOST_SLICES = 2
"""Number of most recently used slices that stay cached, with their computed results."""


@dataclass(frozen=True, eq=False)
class _Parts:
    """A trace's slices by span, the most recently used last; one thread at a time makes one."""

    by_time: OrderedDict[tuple[int, int], Trace] = field(default_factory=OrderedDict)
    lock: Lock = field(default_factory=Lock)


_parts: WeakKeyDictionary[Trace, _Parts] = WeakKeyDictionary()
"""Slices are released with their trace."""
_lock = Lock()


def slice_trace(trace: Trace, start_ns: int | None, end_ns: int | None) -> Trace:
    """Return the trace of `[start_ns, end_ns)`; the whole trace without bounds.

    Raises:
        UsageError: the span is empty, or only one bound is given.
    """
    if start_ns is None and end_ns is None:
        return trace
    if start_ns is None or end_ns is None or start_ns >= end_ns:
        msg = "start_ns and end_ns must be given together, and the end must be after the start"
        raise UsageError(msg)
    time = start_ns, end_ns
    with _lock:
        parts = _parts.setdefault(trace, _Parts())
    with parts.lock:
        slices = parts.by_time
        part = slices[time] if time in slices else _part(trace, *time)
        with _lock:  # not while a slice is made: `cached_slices` must not wait for that
            slices[time] = part
            slices.move_to_end(time)
            while len(slices) > MOST_SLICES:
                slices.popitem(last=False)
        return part


def cached_slices(trace: Trace) -> tuple[Trace, ...]:
    """Return the cached slices of a trace."""
    with _lock:
        parts = _parts.get(trace)
        return tuple(parts.by_time.values()) if parts is not None else ()


def drop_slices(trace: Trace) -> None:
    """Release a trace's slices."""
    with _lock:
        _parts.pop(trace, None)


def _part(trace: Trace, start_ns: int, end_ns: int) -> Trace:
    source = trace.source
    kinds = np.where(_begins(trace, start_ns, end_ns), source.kinds, np.int8(Kind.OTHER))
    part = replace(source, kinds=kinds)
    return replace(trace, source=part, results={}, sliced_from=ref(trace.whole))


def _begins(trace: Trace, start_ns: int, end_ns: int) -> Mask:
    began_ns = trace.columns.start_ns
    begins = (began_ns != NO_TIME) & (began_ns >= start_ns) & (began_ns < end_ns)
    call = links(trace).call_of_device_event
    linked = np.flatnonzero(call >= 0)
    launches = trace.runtime_calls["event"].to_numpy()[call[linked]]
    begins[trace.device_events["event"].to_numpy()[linked]] = begins[launches]
    return np.asarray(begins)
