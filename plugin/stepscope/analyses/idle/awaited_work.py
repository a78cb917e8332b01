"""Device work that each blocking host call waited for: the last of it to end.

A blocking copy waits for itself. Synchronization records name the work of other calls: that of a
stream, of a device, or all before an event was recorded. Without a record it is the work that ended
last, on any device, before the call returned.
"""

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.links import links, rows_of_keys
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.devices.launch_order import launch_order
from stepscope.analyses.idle.ledger import SYNC_SLACK_NS
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.synchronization_events import EVENT_SYNC, STREAM_SYNC
from stepscope.model.trace import Trace, computed

NONE, UNTOLD = -1, -2
Rows = NDArray[np.int64]


@computed
def awaited_work(trace: Trace) -> Rows:
    """Return, for each row of `synchronizations`, the `device_events` row that it waited for.

    -1 where that had ended before the call began.
    """
    syncs, events = synchronizations(trace), trace.device_events
    if not len(syncs.calls) or not len(events):
        return np.full(len(syncs.calls), NONE, dtype=np.int64)
    awaited = _launched_work(trace, syncs.calls)
    by_record = _by_record(trace, syncs.calls, syncs.start_ns)
    awaited = np.where(awaited >= 0, awaited, by_record)
    awaited = np.where(awaited == UNTOLD, _ended_last(trace, syncs.end_ns), awaited)
    start = np.append(events["start_ns"].to_numpy(), 0)[awaited]
    end = np.append(events["end_ns"].to_numpy(), 0)[awaited]
    waited = (awaited >= 0) & (end > syncs.start_ns) & (start < syncs.end_ns)
    return np.where(waited & (end <= syncs.end_ns + SYNC_SLACK_NS), awaited, NONE)


def _launched_work(trace: Trace, calls: Rows) -> Rows:
    """Return the last device work that each call launched."""
    call = links(trace).call_of_device_event
    launched = np.flatnonzero(call >= 0)
    launched_by = np.full(len(trace.runtime_calls), NONE, dtype=np.int64)
    launched_by[call[launched]] = launched  # what is set last stays
    return launched_by[calls]


def _by_record(trace: Trace, calls: Rows, start_ns: Rows) -> Rows:
    """Return the awaited work by each call's record, -1: none; `UNTOLD` without a record."""
    records = trace.synchronization_events
    result = np.full(len(calls), UNTOLD, dtype=np.int64)
    if not len(records):
        return result
    runtime = trace.runtime_calls
    keys = runtime["correlation"].to_numpy()
    record = rows_of_keys(keys[calls], records["correlation"].to_numpy())
    of_stream = np.append(name_mask(records["name"], STREAM_SYNC.__eq__), False)[record]
    of_event = np.append(name_mask(records["name"], EVENT_SYNC.__eq__), False)[record]
    recorded_rows = np.flatnonzero(of_stream | of_event)
    row, by_event = record[recorded_rows], of_event[recorded_rows]
    stream, awaited, device, recorded = (
        records[name].to_numpy()[row]
        for name in ("stream", "awaited_stream", "device", "record_correlation")
    )
    recording = rows_of_keys(recorded, keys)
    until_ns = np.where(
        by_event, np.append(runtime["start_ns"].to_numpy(), 0)[recording], start_ns[recorded_rows]
    )
    order = launch_order(trace)
    number = order.streams(device, np.where(by_event, awaited, stream))
    last = order.last_before(number, until_ns)
    result[recorded_rows] = np.where(by_event & (recording < 0), UNTOLD, last)
    return result


def _ended_last(trace: Trace, end_ns: Rows) -> Rows:
    """Return the work that ended last when each call returned, up to clock differences."""
    end = trace.device_events["end_ns"].to_numpy()
    by_end = np.argsort(end, kind="stable")
    index = np.searchsorted(end[by_end], end_ns + SYNC_SLACK_NS, side="right") - 1
    return np.where(index >= 0, by_end[np.maximum(index, 0)], NONE)
