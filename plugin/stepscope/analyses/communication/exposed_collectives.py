"""Running and exposed times of selected collectives, as time sets."""

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.exposed_communication import HOST, computing_times
from stepscope.analyses.core.window import window
from stepscope.model import intervals
from stepscope.model.arrays import Mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace


def running_times(trace: Trace, selected: Mask) -> Intervals:
    """Return the times at which the selected `collectives` rows run, in the window.

    These are of the main device, and of the host for collectives such as gloo's.
    """
    return _clipped(trace, intervals.merged(*_running(trace, selected)))


def exposed_times(trace: Trace, selected: Mask) -> Intervals:
    """Return the part of `running_times` without computing."""
    host, device = _running(trace, selected)
    exposed = intervals.difference(host, computing_times(trace)[HOST])
    main = main_device(trace)
    if main is not None:
        exposed = intervals.merged(exposed, intervals.difference(device, main.computation))
    return _clipped(trace, exposed)


def _running(trace: Trace, selected: Mask) -> tuple[Intervals, Intervals]:
    frame, main = trace.collectives, main_device(trace)
    kernels = frame["kernel_count"].to_numpy()
    host = frame_times.times(frame, selected & (kernels == 0))
    if main is None:
        return host, intervals.EMPTY
    on_main = selected & (kernels > 0) & (frame["device"].to_numpy() == main.device)
    # between a collective's first and last kernel there may be gaps
    return host, intervals.intersection(frame_times.times(frame, on_main), main.communication)


def _clipped(trace: Trace, times: Intervals) -> Intervals:
    span = window(trace)
    return intervals.clip(times, span.start_ns, span.device_end_ns)
