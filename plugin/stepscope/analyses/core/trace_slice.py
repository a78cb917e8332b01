"""Slices of a trace: traces whose frames hold only the events that begin in a span of time.

Device work belongs to the slice of the call that launched it, else to that of its start. So every
event belongs to exactly one of the slices that divide a trace, and sums over the slices are sums of
the trace (for operators, where no slice begins inside one). Events keep their index in the file
(`event`).
"""

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from stepscope.analyses.core.links import links
from stepscope.base.errors import UsageError
from stepscope.dialects import Kind
from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.model.arrays import Mask
from stepscope.model.trace import Trace

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
    return replace(trace, source=replace(source, kinds=kinds), results={})


def _begins(trace: Trace, start_ns: int, end_ns: int) -> Mask:
    began_ns = trace.columns.start_ns
    begins = (began_ns != NO_TIME) & (began_ns >= start_ns) & (began_ns < end_ns)
    call = links(trace).call_of_device_event
    linked = np.flatnonzero(call >= 0)
    launches = trace.runtime_calls["event"].to_numpy()[call[linked]]
    begins[trace.device_events["event"].to_numpy()[linked]] = begins[launches]
    return np.asarray(begins)
