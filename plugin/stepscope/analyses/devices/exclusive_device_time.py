"""Device work that could become faster: the times in which the device does nothing else."""

import numpy as np

from stepscope.analyses.core.device_activity import main_device
from stepscope.model import intervals
from stepscope.model.arrays import Ints, Mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed


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
