"""Device work that could become faster: the times in which the device does nothing else."""

import numpy as np
from numpy.typing import NDArray

from stepscope import intervals
from stepscope.analyses.devices.activity import main_device
from stepscope.intervals import Intervals
from stepscope.trace import Trace


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
    return intervals.difference(mine, intervals.union(start[~chosen], end[~chosen]))
