"""When some collectives kept a device waiting: they ran, and it computed nothing.

`exposure.py` has the same of all collectives, as sums; here it is of chosen ones, as a time set.
"""

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.exposed_communication import HOST, computing_times
from stepscope.analyses.core.window import window
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace


def running_times(trace: Trace, selected: NDArray[np.bool_]) -> Intervals:
    """Return when any of the chosen rows of `collectives` ran, within the window.

    It is of the main device, and of the host for gloo and the like.
    """
    return _clipped(trace, intervals.merged(*_running(trace, selected)))


def exposed_times(trace: Trace, selected: NDArray[np.bool_]) -> Intervals:
    """Return that part of `running_times` in which nothing computed."""
    host, device = _running(trace, selected)
    exposed = intervals.difference(host, computing_times(trace)[HOST])
    main = main_device(trace)
    if main is not None:
        exposed = intervals.merged(exposed, intervals.difference(device, main.computation))
    return _clipped(trace, exposed)


def _running(trace: Trace, selected: NDArray[np.bool_]) -> tuple[Intervals, Intervals]:
    """Return when the chosen collectives ran on the host and on the main device."""
    frame, main = trace.collectives, main_device(trace)
    kernels = frame["kernel_count"].to_numpy()
    host = frame_times.times(frame, selected & (kernels == 0))
    if main is None:
        return host, intervals.EMPTY
    on_main = selected & (kernels > 0) & (frame["device"].to_numpy() == main.device)
    # from the first to the last kernel of a collective there may be gaps
    return host, intervals.intersection(frame_times.times(frame, on_main), main.communication)


def _clipped(trace: Trace, times: Intervals) -> Intervals:
    span = window(trace)
    return intervals.clip(times, span.start_ns, span.device_end_ns)
