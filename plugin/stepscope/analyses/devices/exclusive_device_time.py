"""Device work that could become faster: the times in which the device does nothing else."""

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.device_activity import main_device
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed


def alone(trace: Trace, rows: NDArray[np.int64]) -> Intervals:
    """Return when the main device does what these rows of `device_events` are, and nothing else.

    Where something else runs beside them, the device would be busy without them too. Rows of other
    devices are left out.
    """
    device = main_device(trace)
    if device is None:
        return intervals.EMPTY
    chosen = np.isin(device.rows, rows)
    start = trace.device_events["start_ns"].to_numpy()[device.rows]
    end = trace.device_events["end_ns"].to_numpy()[device.rows]
    mine = intervals.union(start[chosen], end[chosen])
    beside = ~chosen & _overlaps(trace)
    return intervals.difference(mine, intervals.union(start[beside], end[beside]))


@computed
def _overlaps(trace: Trace) -> NDArray[np.bool_]:
    """Tell which of the main device's rows, in the order they began, run while another does."""
    device = main_device(trace)
    rows = np.zeros(0, dtype=np.int64) if device is None else device.rows
    start = trace.device_events["start_ns"].to_numpy()[rows]
    end = trace.device_events["end_ns"].to_numpy()[rows]
    found = np.zeros(len(rows), dtype=bool)
    found[:-1] = end[:-1] > start[1:]
    found[1:] |= start[1:] < np.maximum.accumulate(end)[:-1]
    return found
