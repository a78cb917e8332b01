"""Device work that waits although nothing that it depends on runs: the device is full.

Kernels of two streams run at the same time only while the device has room for the blocks of both. A
long kernel leaves room when its last blocks run out, some microseconds before its end; a device
that runs one program at a time only after its end.
"""

import numpy as np
import pandas as pd

from stepscope.analyses.idle.device_waits import LAUNCH_OUTLIER_NS, device_waits
from stepscope.model.arrays import NONE, Ints
from stepscope.model.call_tree import last_not_after
from stepscope.model.trace import Trace

LEAST_NS = LAUNCH_OUTLIER_NS
"""Shorter work fills no device for long: it is no reason for work that is later than this."""
TAIL_NS = LAUNCH_OUTLIER_NS
"""Work may begin so long before the end of the work that filled the device. Ours: 63 to 94 us in
HTA's `trace_diff/control`; below `LEAST_NS`, so that the work that filled it began before."""
PAUSE_NS = 50_000
"""Work may begin so long after that end. Ours: 11 to 33 us in HTA's `mtia_inference_trace`."""


def filling_work(trace: Trace) -> Ints:
    """Return the row of the work that filled the device before each device event, or -1.

    That is long work of its device whose end is nearest to the event's start, of events that begin
    more than `LAUNCH_OUTLIER_NS` after all that they depend on.
    """
    events = trace.device_events
    start, end = events["start_ns"].to_numpy(), events["end_ns"].to_numpy()
    filling = np.full(len(start), NONE, dtype=np.int64)
    late = np.flatnonzero(start - device_waits(trace).ready_ns > LAUNCH_OUTLIER_NS)
    long = np.flatnonzero(end - start >= LEAST_NS)
    if not len(late) or not len(long):
        return filling
    device, _ = pd.factorize(events["device"].to_numpy())
    long = long[np.lexsort((end[long], device[long]))]
    rows = device[long], end[long]
    before = last_not_after(rows, (device[late], start[late]))
    after = last_not_after(rows, (device[late], start[late] + TAIL_NS - 1))
    first_of_device = np.searchsorted(rows[0], device[late])
    first_after = np.where(before >= 0, before + 1, first_of_device)
    first_after = np.where(after > before, first_after, NONE)
    never = np.iinfo(np.int64).max
    pause_ns = np.where(before >= 0, start[late] - end[long[before]], never)
    tail_ns = np.where(first_after >= 0, end[long[first_after]] - start[late], never)
    index = np.where(tail_ns < pause_ns, first_after, before)
    is_near = np.minimum(tail_ns, pause_ns) <= np.where(tail_ns < pause_ns, TAIL_NS, PAUSE_NS)
    filling[late[is_near]] = long[index[is_near]]
    return filling
