"""Device time that faster work would save: where the device limits the step, and exclusive time.

A faster event saves time if its successor was already launched when it ended. Where the host is
later, a faster kernel only lengthens the gap behind it.
"""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.device_activity import DeviceActivity, main_device
from stepscope.analyses.core.links import links
from stepscope.model import intervals
from stepscope.model.arrays import Ints, Mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True, eq=False)
class GpuBound:
    """Times in which the main device limits the step; the two sets are disjoint."""

    sure: Intervals
    """Its events whose successor was launched before they ended, or that have no successor."""
    unknown: Intervals
    """Its events whose successor's launch was not recorded."""
    possible: Intervals
    """Both together."""


@computed
def gpu_bound_times(trace: Trace) -> GpuBound:
    """Return when the main device, not the host, is the limit; nothing where there is no device."""
    device = main_device(trace)
    if device is None:
        return GpuBound(sure=intervals.EMPTY, unknown=intervals.EMPTY, possible=intervals.EMPTY)
    rows = device.rows
    start = trace.device_events["start_ns"].to_numpy()[rows]
    end = trace.device_events["end_ns"].to_numpy()[rows]
    waits, has_call = _successors(trace, rows, end)
    sure = intervals.union(start[waits], end[waits])
    unknown = intervals.union(start[~has_call], end[~has_call])
    return GpuBound(
        sure=sure,
        unknown=intervals.difference(unknown, sure),
        possible=intervals.merged(sure, unknown),
    )


def gpu_bound_share(trace: Trace, activity: DeviceActivity) -> float | None:
    """Return the fraction of busy time whose successor was already launched when it ended.

    None where no event's launch was recorded.
    """
    rows = activity.rows
    end = trace.device_events["end_ns"].to_numpy()[rows]
    duration = trace.device_events["duration_ns"].to_numpy()[rows][:-1]
    waits, has_call = _successors(trace, rows, end)
    total = float(duration[has_call[:-1]].sum())
    return float(duration[(waits & has_call)[:-1]].sum()) / total if total else None


def _successors(trace: Trace, rows: Ints, end_ns: Ints) -> tuple[Mask, Mask]:
    """Return for each event whether its successor was launched in time, and has a launch.

    The last event has no successor that could be late.
    """
    call = links(trace).call_of_device_event[rows]
    launched = np.append(trace.runtime_calls["end_ns"].to_numpy(), 0)[call]
    has_call = np.append(call[1:] >= 0, True)[: len(rows)]
    waits = has_call & np.append(launched[1:] <= end_ns[:-1], True)[: len(rows)]
    return waits, has_call


def exclusive_device_time(trace: Trace, rows: Ints) -> Intervals:
    """Return the times in which the main device runs only these rows of `device_events`.

    Where other work runs at the same time, the device would be busy without them. Rows of other
    devices are ignored.
    """
    device = main_device(trace)
    if device is None:
        return intervals.EMPTY
    is_selected = np.isin(device.rows, rows)
    start = trace.device_events["start_ns"].to_numpy()[device.rows]
    end = trace.device_events["end_ns"].to_numpy()[device.rows]
    selected_time = intervals.union(start[is_selected], end[is_selected])
    is_overlapped = ~is_selected & _overlaps(trace)
    return intervals.difference(
        selected_time, intervals.union(start[is_overlapped], end[is_overlapped])
    )


@computed
def _overlaps(trace: Trace) -> Mask:
    """Return a mask of the main device's rows, in start order, that overlap another."""
    device = main_device(trace)
    rows = np.zeros(0, dtype=np.int64) if device is None else device.rows
    start = trace.device_events["start_ns"].to_numpy()[rows]
    end = trace.device_events["end_ns"].to_numpy()[rows]
    overlaps = np.zeros(len(rows), dtype=bool)
    overlaps[:-1] = end[:-1] > start[1:]
    overlaps[1:] |= start[1:] < np.maximum.accumulate(end)[:-1]
    return overlaps
