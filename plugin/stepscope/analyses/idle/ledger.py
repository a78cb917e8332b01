"""Why each device stood still: every idle nanosecond has exactly one cause.

For each gap between a device's events, in this order: the part in which the host waited for data;
the part in which it was in the allocator; then the rest, by what the host was doing before the
event that ended the gap was launched.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.device_activity import DeviceActivity, device_activity
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.core.window import window
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

CAUSES: dict[str, tuple[str, str]] = {
    "dataloader": ("Data loading", "The host was waiting for the next batch."),
    "alloc": ("Allocator", "The host was in a device allocation or release."),
    "post-sync": ("After a sync", "The host had waited for the device, so nothing was queued."),
    "dispatch": ("Dispatch", "The host was late by less than 1 ms: Python, operators, launches."),
    "host-stall": ("Host stall", "The host was late by 1 ms or more: it did something else."),
    "queued": ("Queued", "The work was launched, but the device did not start it."),
    "no-record": ("Launch not recorded", "What ended the gap has no recorded launch."),
    "tail": ("Tail", "After the device's last event."),
}
"""Cause id to label and meaning."""
STALL_NS = 1_000_000
"""Dispatch of one operator takes some 10 µs; CUDA graphs and compile help below, not above."""
SYNC_SLACK_NS = 5_000
"""A wait may end this long before the gap begins, by the two clocks' difference."""
_LATE, _QUEUED, _MISSING, _TAIL = range(4)


@dataclass(frozen=True, kw_only=True, eq=False)
class Ledger:
    """One device's idle time within the window."""

    device: int
    gaps: Intervals
    """The gaps, in order."""
    next_event: NDArray[np.int64]
    """For each gap, the `device_events` row that ended it; -1 for the tail."""
    sync: NDArray[np.int64]
    """For each gap, the `synchronizations` row that emptied the queue; -1 where none."""
    times: dict[str, Intervals]
    """Cause to its idle times; together they are the gaps."""

    @property
    def idle_ns(self) -> dict[str, int]:
        """Nanoseconds of each cause; they sum to the device's idle time."""
        return {cause: intervals.duration_ns(times) for cause, times in self.times.items()}


@computed
def idle_ledger(trace: Trace) -> dict[int, Ledger]:
    """Return every device's ledger by its number."""
    return {
        activity.device: ledger_of(trace, activity.device, activity.rows, activity.busy)
        for activity in device_activity(trace)
    }


def ledger_of(trace: Trace, device: int, rows: NDArray[np.int64], busy: Intervals) -> Ledger:
    """Return the ledger of some events of a device: of all, or of a stream's.

    `rows` are of `device_events`, in the order they began; `busy` is when any of them ran.
    """
    span = window(trace)
    gaps = intervals.complement(busy, span.start_ns, span.device_end_ns)
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


def _next_events(trace: Trace, rows: NDArray[np.int64], gaps: Intervals) -> NDArray[np.int64]:
    """Return the event that begins where each gap ends, or -1."""
    start = trace.device_events["start_ns"].to_numpy()[rows]
    index = np.searchsorted(start, gaps[:, 1], side="left")
    return np.append(rows, -1)[np.minimum(index, len(rows))]


@computed
def allocator_times(trace: Trace) -> Intervals:
    """Return when the host was in a device allocation or release."""
    calls = trace.runtime_calls
    is_allocation = name_mask(calls["name"], trace.dialect.allocator_call.search)
    return frame_times.times(calls, is_allocation)


def _emptying_syncs(trace: Trace, gaps: Intervals) -> NDArray[np.int64]:
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


def _emptied_times(trace: Trace, gaps: Intervals, sync: NDArray[np.int64]) -> Intervals:
    """Return the part of the gaps that a wait is to blame for.

    Without it the host would have been earlier by the time that it waited, and no more. In a gap of
    less than `STALL_NS` all is charged to the wait; in a longer one the rest is the host's own.
    """
    syncs = synchronizations(trace)
    emptied = np.flatnonzero(sync >= 0)
    start, end = gaps[emptied, 0], gaps[emptied, 1]
    waited = (syncs.end_ns - syncs.start_ns)[sync[emptied]]
    return intervals.union(
        start, np.where(end - start < STALL_NS, end, np.minimum(end, start + waited))
    )


def _gap_states(trace: Trace, gaps: Intervals, next_event: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what kept each gap from ending, waits apart."""
    calls = trace.runtime_calls
    call = np.append(links(trace).call_of_device_event, -1)[next_event]
    launch_end_ns = np.append(calls["end_ns"].to_numpy(), 0)[call]
    # launched, or still being launched, after the gap began: the host was late
    state = np.where(launch_end_ns > gaps[:, 0], _LATE, _QUEUED)
    state[call < 0] = _MISSING
    state[next_event < 0] = _TAIL
    return state


@dataclass(frozen=True, kw_only=True, eq=False)
class LongGaps:
    """Gaps that hold much stalled time."""

    times: Intervals
    """All stalled time in them."""
    longest: Intervals
    """The longest of it in each gap, the longest gap's first."""
    idle_ns: NDArray[np.int64]
    """How much stalled time each gap holds."""


def late_times(trace: Trace, device: DeviceActivity) -> Intervals:
    """Return when the host was late by 1 ms or more, and the time behind the last work.

    What data loading, the allocator or a wait for the device took is none of it.
    """
    ledger = idle_ledger(trace)[device.device]
    return intervals.merged(ledger.times["host-stall"], ledger.times["tail"])


def long_gaps(trace: Trace, device: DeviceActivity, late: Intervals, least_ns: int) -> LongGaps:
    """Return the gaps that hold at least so much of some of the device's idle time."""
    ledger = idle_ledger(trace)[device.device]
    idle_ns = intervals.covered_ns(late, ledger.gaps[:, 0], ledger.gaps[:, 1])
    is_long = idle_ns >= least_ns
    times = intervals.intersection(ledger.gaps[is_long], late)
    gap = np.searchsorted(ledger.gaps[:, 0], times[:, 0], side="right") - 1
    order = np.lexsort((times[:, 0], times[:, 0] - times[:, 1]))  # longest first
    _, first = np.unique(gap[order], return_index=True)
    return LongGaps(times=times, longest=times[order[np.sort(first)]], idle_ns=idle_ns[is_long])
