"""Idle time of each device by cause: every idle nanosecond has exactly one cause.

In each gap between a device's events, data loading has precedence, then the allocator. The rest of
the gap has one cause, by the launch of the event that ended it.
"""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.device_activity import DeviceActivity, device_activity
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.core.window import window
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

CAUSES: dict[str, tuple[str, str]] = {
    "dataloader": ("Data loading", "The host waits for the next batch."),
    "alloc": ("Allocator", "The host allocates or releases device memory."),
    "post-sync": ("After a sync", "The host has waited for the device, so no work is queued."),
    "dispatch": ("Dispatch", "The host is late by less than 1 ms: Python, operators, launches."),
    "host-stall": ("Host stall", "The host is late by 1 ms or more: it does other work."),
    "queued": ("Queued", "The next work is launched, but the device has not started it."),
    "no-record": ("Launch not recorded", "The next work has no recorded launch."),
    "tail": ("Tail", "After the device's last event."),
}
"""Cause id to label and meaning."""
STALL_NS = 1_000_000
"""Dispatch of one operator takes some 10 µs; CUDA graphs and torch.compile help below 1 ms."""
SYNC_SLACK_NS = 5_000
"""A wait may end this long before its gap begins, by the clocks' difference."""
_LATE, _QUEUED, _MISSING, _TAIL = range(4)


@dataclass(frozen=True, kw_only=True, eq=False)
class Ledger:
    """One device's idle time in the window."""

    device: int
    gaps: Intervals
    """In order."""
    next_event: Ints
    """For each gap, the `device_events` row that ended it; -1: the tail."""
    sync: Ints
    """For each gap, the `synchronizations` row that emptied the queue; -1: none."""
    times: dict[str, Intervals]
    """Cause to its idle times; together they are the gaps."""

    @property
    def idle_ns(self) -> dict[str, int]:
        """Nanoseconds of each cause; they sum to the device's idle time."""
        return {cause: intervals.duration_ns(times) for cause, times in self.times.items()}

    @property
    def host_late(self) -> Intervals:
        """Idle times in which the host is late with the next work."""
        return intervals.merged(self.times["dispatch"], self.times["host-stall"])


@computed
def idle_ledger(trace: Trace) -> dict[int, Ledger]:
    """Return every device's ledger by its number."""
    return {
        activity.device: ledger_of(trace, activity.device, activity.rows, activity.busy)
        for activity in device_activity(trace)
    }


def ledger_of(trace: Trace, device: int, rows: Ints, busy: Intervals) -> Ledger:
    """Return the ledger of some of a device's events: all, or a stream's.

    `rows` are of `device_events`, in the order they began; `busy` are their times.
    """
    span = window(trace)
    gaps = intervals.complement(busy, span.device_start_ns, span.device_end_ns)
    next_event = _next_events(trace, rows, gaps)
    sync = np.where(next_event >= 0, _emptying_syncs(trace, gaps), -1)  # a tail has no successor
    waiting = intervals.intersection(gaps, data_loading(trace).times)
    rest = intervals.difference(gaps, waiting)
    allocating = intervals.intersection(rest, allocator_times(trace))
    rest = intervals.difference(rest, allocating)
    emptied = _emptied_times(trace, gaps, sync)
    behind_sync = intervals.intersection(rest, emptied)
    rest = intervals.difference(rest, emptied)
    gap_of = np.searchsorted(gaps[:, 0], rest[:, 0], side="right") - 1
    of_gap = _gap_states(trace, gaps, next_event)[gap_of]
    is_stall = (gaps[:, 1] - gaps[:, 0] >= STALL_NS)[gap_of]
    times = {
        "dataloader": waiting,
        "alloc": allocating,
        "post-sync": behind_sync,
        "dispatch": rest[(of_gap == _LATE) & ~is_stall],
        "host-stall": rest[(of_gap == _LATE) & is_stall],
        "queued": rest[of_gap == _QUEUED],
        "no-record": rest[of_gap == _MISSING],
        "tail": rest[of_gap == _TAIL],
    }
    return Ledger(device=device, gaps=gaps, next_event=next_event, sync=sync, times=times)


def _next_events(trace: Trace, rows: Ints, gaps: Intervals) -> Ints:
    start = trace.device_events["start_ns"].to_numpy()[rows]
    index = np.searchsorted(start, gaps[:, 1], side="left")
    return np.append(rows, -1)[np.minimum(index, len(rows))]


@computed
def allocator_times(trace: Trace) -> Intervals:
    """Return the times of device allocations and releases on the host."""
    calls = trace.runtime_calls
    is_allocation = name_mask(calls["name"], trace.dialect.allocator_call.search)
    return frame_times.times(calls, is_allocation)


def _emptying_syncs(trace: Trace, gaps: Intervals) -> Ints:
    """Return, for each gap, the last wait that began before it and ended in it, or -1."""
    syncs = synchronizations(trace)
    syncs_of_gaps = np.full(len(gaps), -1, dtype=np.int64)
    if not len(gaps) or not len(syncs.calls):
        return syncs_of_gaps
    gap = np.minimum(np.searchsorted(gaps[:, 1], syncs.end_ns, side="left"), len(gaps) - 1)
    begin, end = gaps[gap, 0], gaps[gap, 1]
    empties = (syncs.start_ns < begin) & (syncs.end_ns >= begin - SYNC_SLACK_NS)
    empties &= syncs.end_ns <= end
    which = np.flatnonzero(empties)
    np.maximum.at(syncs_of_gaps, gap[which], which)
    return syncs_of_gaps


def _emptied_times(trace: Trace, gaps: Intervals, sync: Ints) -> Intervals:
    """Return the part of the gaps that waits caused.

    A wait delays the host by its duration at most: in gaps of `STALL_NS` or more, only that much is
    the wait's; in shorter gaps, all of it.
    """
    syncs = synchronizations(trace)
    emptied = np.flatnonzero(sync >= 0)
    start, end = gaps[emptied, 0], gaps[emptied, 1]
    waited = (syncs.end_ns - syncs.start_ns)[sync[emptied]]
    return intervals.union(
        start, np.where(end - start < STALL_NS, end, np.minimum(end, start + waited))
    )


def _gap_states(trace: Trace, gaps: Intervals, next_event: Ints) -> Ints:
    """Return each gap's cause, other than waits."""
    calls = trace.runtime_calls
    call = np.append(links(trace).call_of_device_event, -1)[next_event]
    launch_end_ns = np.append(calls["end_ns"].to_numpy(), 0)[call]
    # launched after the gap began: the host was late
    state = np.where(launch_end_ns > gaps[:, 0], _LATE, _QUEUED)
    state[call < 0] = _MISSING
    state[next_event < 0] = _TAIL
    return state


@dataclass(frozen=True, kw_only=True, eq=False)
class LongGaps:
    """Gaps with much idle time of some causes."""

    times: Intervals
    """That idle time."""
    longest: Intervals
    """The longest interval of it in each gap, the longest first."""
    idle_ns: Ints
    """Duration of that idle time in each gap."""


def late_times(trace: Trace, device: DeviceActivity) -> Intervals:
    """Return the idle times of causes `host-stall` and `tail`."""
    ledger = idle_ledger(trace)[device.device]
    return intervals.merged(ledger.times["host-stall"], ledger.times["tail"])


def long_gaps(trace: Trace, device: DeviceActivity, late: Intervals, least_ns: int) -> LongGaps:
    """Return the gaps with at least `least_ns` of some idle time."""
    ledger = idle_ledger(trace)[device.device]
    idle_ns = intervals.covered_ns(late, ledger.gaps[:, 0], ledger.gaps[:, 1])
    is_long = idle_ns >= least_ns
    times = intervals.intersection(ledger.gaps[is_long], late)
    gap = np.searchsorted(ledger.gaps[:, 0], times[:, 0], side="right") - 1
    order = np.lexsort((times[:, 0], times[:, 0] - times[:, 1]))  # longest first
    _, first = np.unique(gap[order], return_index=True)
    return LongGaps(times=times, longest=times[order[np.sort(first)]], idle_ns=idle_ns[is_long])
