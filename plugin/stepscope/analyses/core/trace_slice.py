"""A recording narrowed to a time: all its frames hold what began in it, and nothing else.

Of the host that is what begins in the time; of the device what those calls launched, whenever it
runs, since a step reaches to the end of its device work, and what begins in the time where no call
is known. So every event belongs to exactly one of the parts that a recording is divided into, and
sums over the parts are sums of the whole: also those of operators, where no part begins within
one (steps do not). Events keep their place in the file (`event`).
"""

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.links import links
from stepscope.base.errors import UsageError
from stepscope.dialects import Kind
from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.model.trace import Trace

MOST_KEPT = 2
"""Of the parts that were looked at last, how many are kept with all that was computed of them."""


@dataclass(frozen=True, eq=False)
class _Parts:
    """A recording's parts by their times, the latest last; one thread at a time makes one."""

    by_time: OrderedDict[tuple[int, int], Trace] = field(default_factory=OrderedDict)
    lock: Lock = field(default_factory=Lock)


_parts: WeakKeyDictionary[Trace, _Parts] = WeakKeyDictionary()
"""A recording's parts go when it goes."""
_lock = Lock()


def slice_trace(trace: Trace, start_ns: int | None, end_ns: int | None) -> Trace:
    """Return the recording of `[start_ns, end_ns)`; of all of it where neither is said.

    Raises:
        UsageError: the time is empty, or only one bound of it is given.
    """
    if start_ns is None and end_ns is None:
        return trace
    if start_ns is None or end_ns is None or start_ns >= end_ns:
        msg = "start_ns and end_ns are given together, and the end lies behind the start"
        raise UsageError(msg)
    time = start_ns, end_ns
    with _lock:
        parts = _parts.setdefault(trace, _Parts())
    with parts.lock:
        slices = parts.by_time
        part = slices[time] if time in slices else _part(trace, *time)
        with _lock:  # not while a part is made: who asks what is kept must not wait for that
            slices[time] = part
            slices.move_to_end(time)
            while len(slices) > MOST_KEPT:
                slices.popitem(last=False)
        return part


def cached_slices(trace: Trace) -> tuple[Trace, ...]:
    """Return the parts of a recording that are kept, with all that was computed of them."""
    with _lock:
        parts = _parts.get(trace)
        return tuple(parts.by_time.values()) if parts is not None else ()


def drop_slices(trace: Trace) -> None:
    """Let go of a recording's parts."""
    with _lock:
        _parts.pop(trace, None)


def _part(trace: Trace, start_ns: int, end_ns: int) -> Trace:
    source = trace.source
    kinds = np.where(_begins(trace, start_ns, end_ns), source.kinds, np.int8(Kind.OTHER))
    return replace(trace, source=replace(source, kinds=kinds), results={})


def _begins(trace: Trace, start_ns: int, end_ns: int) -> NDArray[np.bool_]:
    began_ns = trace.columns.start_ns
    begins = (began_ns != NO_TIME) & (began_ns >= start_ns) & (began_ns < end_ns)
    call = links(trace).call_of_device_event
    linked = np.flatnonzero(call >= 0)
    launches = trace.runtime_calls["event"].to_numpy()[call[linked]]
    begins[trace.device_events["event"].to_numpy()[linked]] = begins[launches]
    return np.asarray(begins)
