"""Host activity in stretches, with the predecessor of each stretch.

A thread's *activity* is the time of an outermost operator or runtime call; annotations do not
count. A return of a call that waited for a device splits an activity into *stretches*. A stretch
begins

- after device work, where such a call returns (`SYNC`),
- else after the activity that ended last before it (`BETWEEN`): the one before it on its thread, or
  one of another thread that ran while this thread was idle. So the backward pass, which runs on a
  separate thread, follows the forward pass, and the optimizer follows the backward pass.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.links import links, rows_of_keys
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.devices.queue_length import launch_order
from stepscope.analyses.idle.ledger import SYNC_SLACK_NS
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.call_tree import Grouped, last_not_after
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.synchronization_events import EVENT_SYNC, STREAM_SYNC
from stepscope.model.trace import Trace, computed

NOTHING, BETWEEN, SYNC = range(3)


@dataclass(frozen=True, kw_only=True, eq=False)
class Activities:
    """Times of outermost operators and runtime calls, by thread, then start."""

    thread: Ints
    """Codes of the frames' `thread`."""
    start_ns: Ints
    end_ns: Ints
    event: Ints
    """The event that began it."""
    on_operator_thread: Mask
    """Whether its thread runs operators; others (watchdogs) are no predecessors."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HostWaits:
    """Stretches, by thread, then start; all arrays but `activities` are parallel."""

    activities: Activities
    activity: Ints
    """Index in `activities`."""
    start_ns: Ints
    end_ns: Ints
    edge: NDArray[np.int8]
    """`NOTHING`, `BETWEEN` or `SYNC`."""
    awaited: Ints
    """A stretch for `BETWEEN`, a `device_events` row for `SYNC`, else -1."""
    call: Ints
    """For `SYNC`, the `runtime_calls` row that waited; else -1."""

    @property
    def thread(self) -> Ints:
        """Each stretch's thread."""
        return self.activities.thread[self.activity]

    def at(self, moments: Grouped) -> Ints:
        """Return, for each thread and moment, the last stretch begun, or -1."""
        return last_not_after((self.thread, self.start_ns), moments)


@computed
def host_waits(trace: Trace) -> HostWaits:
    """Return the host's stretches with their predecessors."""
    active = _activities(trace)
    count = len(active.start_ns)
    waits, device = _returns(trace)
    ends = trace.runtime_calls["end_ns"].to_numpy()[waits]
    thread = trace.runtime_calls["thread"].cat.codes.to_numpy()[waits]
    begins = trace.runtime_calls["start_ns"].to_numpy()[waits]
    of_wait = last_not_after((active.thread, active.start_ns), (thread, begins))
    activity = np.concatenate((np.arange(count), of_wait))
    start = np.concatenate((active.start_ns, ends))
    order = np.lexsort((start, activity))
    activity, start = activity[order], start[order]
    is_last = np.append(activity[1:] != activity[:-1], True)[: len(activity)]
    end = np.where(is_last, active.end_ns[activity], np.append(start[1:], 0)[: len(start)])
    last_stretch = np.flatnonzero(is_last)
    before = _activity_before(active)
    handed = np.where(before >= 0, np.append(last_stretch, NONE)[before], NONE)
    awaited = np.concatenate((handed, device))[order]
    is_return = order >= count
    edge = np.where(is_return, SYNC, np.where(awaited >= 0, BETWEEN, NOTHING))
    return HostWaits(
        activities=active,
        activity=activity,
        start_ns=start,
        end_ns=end,
        edge=edge.astype(np.int8),
        awaited=awaited,
        call=np.concatenate((np.full(count, NONE), waits))[order],
    )


def _returns(trace: Trace) -> tuple[Ints, Ints]:
    awaited = awaited_work(trace)
    waited = np.flatnonzero(awaited >= 0)
    return synchronizations(trace).calls[waited], awaited[waited]


def _activities(trace: Trace) -> Activities:
    """Merge operators and runtime calls that overlap on a thread, but not those that touch."""
    operators, calls = trace.host_calls["is_operator"].to_numpy(), trace.runtime_calls
    on_thread = trace.host_calls["thread"].cat.codes.to_numpy()[operators]
    thread = np.concatenate((on_thread, calls["thread"].cat.codes.to_numpy()))
    start, end, event = (
        np.concatenate((trace.host_calls[name].to_numpy()[operators], calls[name].to_numpy()))
        for name in ("start_ns", "end_ns", "event")
    )
    order = np.argsort(start, kind="stable")
    order = order[np.argsort(thread[order], kind="stable")]
    thread, start, end = thread[order].astype(np.int64), start[order], end[order]
    reached = pd.Series(end).groupby(thread).cummax().to_numpy()
    is_first = np.append(True, (thread[1:] != thread[:-1]) | (start[1:] >= reached[:-1]))
    first = np.flatnonzero(is_first[: len(thread)])
    last = np.append(first[1:], len(thread))[: len(first)] - 1
    has_operators = pd.unique(on_thread)
    return Activities(
        thread=thread[first],
        start_ns=start[first],
        end_ns=reached[last],
        event=event[order][first],
        on_operator_thread=np.isin(thread[first], has_operators) | (not len(has_operators)),
    )


def _activity_before(active: Activities) -> Ints:
    """Return, for each activity, its predecessor, or -1.

    That is the one that ended last, if it ran while this thread was idle; else this thread's last.
    """
    count = len(active.start_ns)
    previous = np.arange(-1, count - 1, dtype=np.int64)
    previous[1:][active.thread[1:] != active.thread[:-1]] = NONE
    shared = np.flatnonzero(active.on_operator_thread)
    if not len(shared):
        return previous
    by_end = shared[np.argsort(active.end_ns[shared], kind="stable")]
    index = np.searchsorted(active.end_ns[by_end], active.start_ns, side="left") - 1
    other = np.where(index >= 0, by_end[np.maximum(index, 0)], NONE)
    least = np.iinfo(np.int64).min
    previous_end_ns = np.append(active.end_ns, least)[previous]
    is_handed = (other >= 0) & (np.append(active.start_ns, least)[other] >= previous_end_ns)
    is_handed &= np.append(active.end_ns, least)[other] > previous_end_ns
    return np.where(is_handed, other, previous)


UNTOLD = -2


@computed
def awaited_work(trace: Trace) -> Ints:
    """Return, for each row of `synchronizations`, the `device_events` row that it waited for.

    A blocking copy waits for itself. Synchronization records name the awaited work of other calls;
    without a record it is the work that ended last, on any device, before the call returned. -1
    where that had ended before the call began.
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


def _launched_work(trace: Trace, calls: Ints) -> Ints:
    call = links(trace).call_of_device_event
    launched = np.flatnonzero(call >= 0)
    launched_by = np.full(len(trace.runtime_calls), NONE, dtype=np.int64)
    launched_by[call[launched]] = launched  # what is set last stays
    return launched_by[calls]


def _by_record(trace: Trace, calls: Ints, start_ns: Ints) -> Ints:
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


def _ended_last(trace: Trace, end_ns: Ints) -> Ints:
    """Return the work that ended last when each call returned, up to clock differences."""
    end = trace.device_events["end_ns"].to_numpy()
    by_end = np.argsort(end, kind="stable")
    index = np.searchsorted(end[by_end], end_ns + SYNC_SLACK_NS, side="right") - 1
    return np.where(index >= 0, by_end[np.maximum(index, 0)], NONE)
