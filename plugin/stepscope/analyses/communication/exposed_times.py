"""When some collectives kept a device waiting: they ran, and it computed nothing.

`exposure.py` has the same of all collectives, as sums; here it is of chosen ones, as a time set.
"""

import numpy as np
from numpy.typing import NDArray

from stepscope import intervals
from stepscope.analyses import frame_times
from stepscope.analyses.communication.exposure import HOST, computing
from stepscope.analyses.devices.activity import main_device
from stepscope.analyses.steps.window import window
from stepscope.intervals import Intervals
from stepscope.trace import Trace


def exposed_times(trace: Trace, chosen: NDArray[np.bool_]) -> Intervals:
    """Return when any of the chosen rows of `collectives` ran and nothing computed meanwhile.

    It is of the window and the main device, and of the host for gloo and the like.
    """
    span, frame = window(trace), trace.collectives
    kernels = frame["kernel_count"].to_numpy()
    host = frame_times.times(frame, chosen & (kernels == 0))
    exposed = intervals.difference(host, computing(trace)[HOST])
    main = main_device(trace)
    if main is not None:
        on_main = chosen & (kernels > 0) & (frame["device"].to_numpy() == main.device)
        # from the first to the last kernel of a collective there may be gaps
        own = intervals.intersection(frame_times.times(frame, on_main), main.communication)
        exposed = intervals.merged(exposed, intervals.difference(own, main.computation))
    return intervals.clip(exposed, span.start_ns, span.device_end_ns)
