"""Times at which collectives could have started, had their process groups been idle.

On the host, that is the begin of the call. On a device, the work must also have ended that it
waits for by an event; without records of events, the last work launched before its call: torch lets
a collective wait for the stream that it is called on. A collective that starts later waited for the
one before in its group, or for its launch.

gloo's threads record the end of a collective. Where they share cores with the thread that waits,
they often do so late, when that thread already works again.
"""

import numpy as np

from stepscope.analyses.core.exposed_communication import (
    HOST,
    communicating_times,
    computing_times,
)
from stepscope.analyses.core.links import links, rows_of_keys
from stepscope.analyses.idle.device_waits import event_predecessors
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.trace import Trace, computed

LATE_END_SHARE = 0.1
"""A collective's end is late, at most by this fraction of the exposed time that it ended."""


@computed
def ready_times(trace: Trace) -> Ints:
    """Return that time of each row of `collectives`, at most its start; unknown: its start."""
    frame, device = trace.collectives, trace.device_events
    start_ns, call_ns = frame["start_ns"].to_numpy(), frame["call_start_ns"].to_numpy()
    is_called = ~np.isnan(call_ns)
    call_ns = np.nan_to_num(call_ns).astype(np.int64)
    kernel = rows_of_keys(frame["event"].to_numpy(), device["event"].to_numpy())
    by_event = np.append(event_predecessors(trace), NONE)[kernel]
    awaited = np.where(by_event >= 0, by_event, _launched_before(trace, kernel, call_ns))
    data_ns = np.append(device["end_ns"].to_numpy(), 0)[awaited]
    is_certain = is_called & ((awaited >= 0) | (kernel < 0))
    ready_ns = np.maximum(call_ns, np.where(awaited >= 0, data_ns, 0))
    return np.where(is_certain, np.minimum(ready_ns, start_ns), start_ns)


@computed
def end_times(trace: Trace) -> Ints:
    """Return the end of each row of `collectives`, on the host without the delay of its record."""
    frame = trace.collectives
    start_ns, end_ns = frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy()
    exposed = intervals.difference(communicating_times(trace)[HOST], computing_times(trace)[HOST])
    if not len(exposed):
        return end_ns
    begin_ns, until_ns = exposed.T
    reach_ns = until_ns + np.rint(LATE_END_SHARE * (until_ns - begin_ns)).astype(np.int64)
    first = np.searchsorted(np.maximum.accumulate(reach_ns), end_ns)
    first = np.minimum(first, len(exposed) - 1)
    is_late = (frame["kernel_count"].to_numpy() == 0) & (end_ns <= reach_ns[first])
    is_late &= (start_ns < until_ns[first]) & (begin_ns[first] < end_ns)
    return np.where(is_late, np.minimum(end_ns, until_ns[first]), end_ns)


def _launched_before(trace: Trace, kernel: Ints, call_ns: Ints) -> Ints:
    """Return the last work that was launched on a collective's device before its call, or -1."""
    device = trace.device_events
    call = links(trace).call_of_device_event
    launched_ns = np.append(trace.runtime_calls["start_ns"].to_numpy(), 0)[call]
    is_work = (call >= 0) & ~device["is_collective"].to_numpy()
    number = device["device"].to_numpy()
    awaited = np.full(len(kernel), NONE, dtype=np.int64)
    for which in np.unique(number[kernel[kernel >= 0]]):
        work = np.flatnonzero(is_work & (number == which))
        work = work[np.argsort(launched_ns[work], kind="stable")]
        rows = np.flatnonzero((kernel >= 0) & (np.append(number, NONE)[kernel] == which))
        index = np.searchsorted(launched_ns[work], call_ns[rows]) - 1
        awaited[rows] = np.append(work, NONE)[index]
    return awaited
