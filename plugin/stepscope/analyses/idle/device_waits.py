"""Predecessors of device events.

Of these, each event waits for the last one to finish:

- the work before it on its stream (`STREAM`),
- work of another stream, by an event (`EVENT`) in the synchronization records,
- the call that launched it (`LAUNCH`), from that call's start, as in HTA.

Without such records, waits between streams are inferred (`INFERRED`). Work is assumed to have
waited for the work that ended last on another stream of its device if it begins more than
`LAUNCH_OUTLIER_NS` after all predecessors, or more than `LATE_NS` after them and less than
`HANDOVER_NS` after the other work's end.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.links import links, rows_of_keys
from stepscope.analyses.devices.queue_length import launch_order, stream_numbers
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.synchronization_events import STREAM_WAIT
from stepscope.model.trace import Trace, computed

NOTHING, STREAM, EVENT, INFERRED, LAUNCH = range(5)
LAUNCH_OUTLIER_NS = 100_000
"""HTA's `get_cuda_kernel_launch_stats`: work that begins later was delayed."""
LATE_NS = 20_000
"""Ours: launches in the shared traces begin within 10 us (median); 20 us is twice that."""
HANDOVER_NS = 10_000
"""Ours: waits by event in the shared traces end 1 to 5 us before the waiting work begins."""
EARLIEST, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceWaits:
    """For each row of `device_events`; all arrays are parallel."""

    edge: NDArray[np.int8]
    """`NOTHING`, `STREAM`, `EVENT`, `INFERRED` or `LAUNCH`."""
    awaited: Ints
    """The `device_events` row waited for; for `LAUNCH`, the `runtime_calls` row; else -1."""
    ready_ns: Ints
    """Its end: no later than the work's start. For `NOTHING`, the work's start."""


@computed
def device_waits(trace: Trace) -> DeviceWaits:
    """Return the predecessor that each device event waited for."""
    start = trace.device_events["start_ns"].to_numpy()
    end = trace.device_events["end_ns"].to_numpy()
    call = links(trace).call_of_device_event
    launch_ns = np.append(trace.runtime_calls["start_ns"].to_numpy(), EARLIEST)[call]
    edge = np.where(call >= 0, LAUNCH, NOTHING).astype(np.int8)
    awaited, ready = call.copy(), np.minimum(launch_ns, start)
    before = stream_predecessors(trace)
    _prefer(edge, awaited, ready, (STREAM, before, _done(end, before, start)))
    by_event = _valid(event_predecessors(trace), start)
    _prefer(edge, awaited, ready, (EVENT, by_event, _done(end, by_event, start)))
    if not len(trace.synchronization_events):
        late = np.flatnonzero((ready > EARLIEST) & (start - ready > LATE_NS))
        inferred = _last_elsewhere(trace, late, ready)
        done = np.append(end, EARLIEST)[inferred]
        is_clear = (start - ready > LAUNCH_OUTLIER_NS) | (start - done < HANDOVER_NS)
        inferred = np.where(is_clear, inferred, NONE)
        _prefer(edge, awaited, ready, (INFERRED, inferred, _done(end, inferred, start)))
    return DeviceWaits(edge=edge, awaited=awaited, ready_ns=np.where(edge == NOTHING, start, ready))


Candidate = tuple[int, Ints, Ints]
"""An edge, and for each device event its predecessor and that one's end."""


def _prefer(
    edge: NDArray[np.int8],
    awaited: Ints,
    ready: Ints,
    candidate: Candidate,
) -> None:
    """Replace predecessors that ended before the candidate, or with it."""
    kind, rows, done = candidate
    better = (rows >= 0) & (done >= ready)
    edge[better], awaited[better], ready[better] = kind, rows[better], done[better]


def _done(end: Ints, rows: Ints, start: Ints) -> Ints:
    """Return the end of the awaited work, at most the start of the waiting work."""
    return np.asarray(np.minimum(np.append(end, EARLIEST)[rows], start))


def _valid(rows: Ints, start: Ints) -> Ints:
    is_earlier = np.append(start, LATEST)[rows] < start
    return np.where(is_earlier, rows, NONE)


@computed
def stream_predecessors(trace: Trace) -> Ints:
    """Return, for each device event, the event before it on its stream that ended last, or -1."""
    events = trace.device_events
    stream, _ = stream_numbers(events)
    end = events["end_ns"]
    is_last = (end == end.groupby(stream).cummax()).to_numpy()
    row = np.arange(len(events), dtype=np.int64)
    latest = pd.Series(np.where(is_last, row, NONE)).groupby(stream).cummax().to_numpy()
    order = np.argsort(stream, kind="stable")
    is_next = stream[order[1:]] == stream[order[:-1]]
    before = np.full(len(events), NONE, dtype=np.int64)
    before[order[1:][is_next]] = latest[order[:-1][is_next]]
    return before


@computed
def event_predecessors(trace: Trace) -> Ints:
    """Return, for each device event, the work of another stream that it waits for by an event.

    The first work launched into a stream after the wait call waits for the last work launched into
    the other stream before the event was recorded.
    """
    waits = trace.synchronization_events
    waits = waits[(waits["name"] == STREAM_WAIT).to_numpy()]
    awaited_rows = np.full(len(trace.device_events), NONE, dtype=np.int64)
    if not len(waits) or not len(awaited_rows):
        return awaited_rows
    order = launch_order(trace)
    device = waits["device"].to_numpy()
    ends = np.append(trace.device_events["end_ns"].to_numpy(), EARLIEST)
    waiting = order.first_after(
        order.streams(device, waits["stream"].to_numpy()),
        _call_ns(trace, waits["correlation"].to_numpy(), unknown_ns=LATEST),
    )
    awaited = order.last_before(
        order.streams(device, waits["awaited_stream"].to_numpy()),
        _call_ns(trace, waits["record_correlation"].to_numpy(), unknown_ns=EARLIEST),
    )
    pairs = np.flatnonzero((waiting >= 0) & (awaited >= 0))
    pairs = pairs[np.argsort(ends[awaited[pairs]], kind="stable")]
    awaited_rows[waiting[pairs]] = awaited[pairs]  # what is set last stays
    return awaited_rows


def _call_ns(trace: Trace, correlation: Ints, *, unknown_ns: int) -> Ints:
    calls = trace.runtime_calls
    row = rows_of_keys(correlation, calls["correlation"].to_numpy())
    return np.append(calls["start_ns"].to_numpy(), unknown_ns)[row]


def _last_elsewhere(trace: Trace, rows: Ints, ready: Ints) -> Ints:
    """Return, for some device events, the work that ended last on their device before them."""
    events = trace.device_events
    start, end = events["start_ns"].to_numpy(), events["end_ns"].to_numpy()
    device, _ = pd.factorize(events["device"].to_numpy())
    awaited = np.full(len(events), NONE, dtype=np.int64)
    for number in pd.unique(device[rows]):
        late = rows[device[rows] == number]
        device_rows = np.flatnonzero(device == number)
        by_end = device_rows[np.argsort(end[device_rows], kind="stable")]
        index = np.searchsorted(end[by_end], start[late], side="right") - 1
        last = by_end[np.maximum(index, 0)]
        is_waiting = (index >= 0) & (end[last] > ready[late]) & (start[last] < start[late])
        awaited[late[is_waiting]] = last[is_waiting]
    return awaited
