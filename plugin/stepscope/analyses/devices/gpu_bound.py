"""How much of a device's busy time decides the step: making a kernel faster helps only there."""

import numpy as np

from stepscope.analyses.devices.activity import DeviceActivity
from stepscope.analyses.links import links
from stepscope.trace import Trace


def gpu_bound_share(trace: Trace, activity: DeviceActivity) -> float | None:
    """Return the share of busy time whose successor was already launched when it ended.

    Where the host is later than that, a faster kernel only lengthens the gap behind it. None where
    no event's launch was recorded.
    """
    rows = activity.rows
    end = trace.device_events["end_ns"].to_numpy()[rows]
    duration = trace.device_events["duration_ns"].to_numpy()[rows]
    call = links(trace).call_of_device_event[rows]
    if len(rows) < 2 or not (call >= 0).any():
        return None
    launched = np.append(trace.runtime_calls["end_ns"].to_numpy(), 0)[call]
    has_successor = call[1:] >= 0
    waits = has_successor & (launched[1:] <= end[:-1])
    total = float(duration[:-1][has_successor].sum())
    return float(duration[:-1][waits].sum()) / total if total else None
