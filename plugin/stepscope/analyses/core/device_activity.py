"""Times at which each device computes, communicates and copies."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stepscope.analyses.core.frame_times import times
from stepscope.analyses.core.window import window
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceActivity:
    """One device's work in a time window, as time sets."""

    device: int
    rows: Ints
    """Its rows of `device_events`, inside the window or not, in the order they began."""
    busy: Intervals
    """Kernels, copies and memory sets."""
    kernels: Intervals
    computation: Intervals
    """Kernels other than collectives'."""
    communication: Intervals
    """Collectives' kernels."""
    copies: Intervals
    memory_sets: Intervals

    def clipped(self, start_ns: int, end_ns: int) -> "DeviceActivity":
        """Return the activity in `[start_ns, end_ns)`."""
        times: dict[str, Any] = {
            name: intervals.clip(getattr(self, name), start_ns, end_ns) for name in TIME_SETS
        }
        return replace(self, **times)


TIME_SETS = ("busy", "kernels", "computation", "communication", "copies", "memory_sets")


@computed
def device_activity(trace: Trace) -> tuple[DeviceActivity, ...]:
    """Return every device's work in the window (`Window.device_start_ns` to `device_end_ns`)."""
    span = window(trace)
    activities = whole_activity(trace)
    return tuple(
        activity.clipped(span.device_start_ns, span.device_end_ns) for activity in activities
    )


@computed
def whole_activity(trace: Trace) -> tuple[DeviceActivity, ...]:
    """Return every device's work in the whole trace, by the device's number."""
    device = trace.device_events["device"].to_numpy()
    return tuple(_activity(trace, int(number)) for number in np.unique(device))


def _activity(trace: Trace, device: int) -> DeviceActivity:
    events = trace.device_events
    rows = np.flatnonzero(events["device"].to_numpy() == device)
    kind = events["kind"].to_numpy()[rows]
    collective = events["is_collective"].to_numpy()[rows]
    is_kernel = kind == int(Kind.KERNEL)
    return DeviceActivity(
        device=device,
        rows=rows,
        busy=times(events, rows),
        kernels=times(events, rows[is_kernel]),
        computation=times(events, rows[is_kernel & ~collective]),
        communication=times(events, rows[collective]),
        copies=times(events, rows[kind == int(Kind.COPY)]),
        memory_sets=times(events, rows[kind == int(Kind.MEMORY_SET)]),
    )


@computed
def all_busy(trace: Trace) -> Intervals:
    """Return the times at which any device is busy."""
    return intervals.merged(*(activity.busy for activity in device_activity(trace)))


@computed
def main_device(trace: Trace) -> DeviceActivity | None:
    """Return the device that is busy longest; None without device work."""
    activities = device_activity(trace)
    if not activities:
        return None
    return max(activities, key=lambda activity: intervals.duration_ns(activity.busy))
