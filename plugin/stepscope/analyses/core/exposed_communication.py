"""Exposed communication: the time in which a device communicates and does not compute.

Kernels other than collectives' compute, as in `temporal_breakdown` and HTA's overlap
(`communication_analysis.py`). In a trace without a device, the host's operators other than
collectives compute, as in torch-tb-profiler (`communication.py`).
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.device_activity import main_device, whole_activity
from stepscope.analyses.core.window import window
from stepscope.model import intervals
from stepscope.model.arrays import Ints, Mask
from stepscope.model.frames.collective_names import ANNOTATION
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

HOST = -1
COLLECTIVE_OPERATOR = re.compile(r"^c10d(?:_functional)?::|^record_param_comms$")


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """Communication in a span of time, on one device or the host."""

    communication_ns: int
    exposed_ns: int

    @property
    def overlap_share(self) -> float:
        """Fraction of the communication that computing hides; NaN without communication."""
        if not self.communication_ns:
            return float("nan")
        return 1 - self.exposed_ns / self.communication_ns


@computed
def computing_times(trace: Trace) -> dict[int, Intervals]:
    """Return each device's computing times; `HOST`: of any device, or without devices the host."""
    times = {of.device: of.computation for of in whole_activity(trace)}
    host = intervals.merged(*times.values()) if times else host_computing(trace)
    return {**times, HOST: host}


@computed
def host_computing(trace: Trace) -> Intervals:
    """Return the times of the host's operators other than collectives.

    Older versions of torch record gloo's collectives as operators (`gloo:all_reduce`).
    """
    calls = trace.host_calls
    is_collective = name_mask(calls["name"], _is_collective)
    return frame_times.times(calls, calls["is_operator"].to_numpy() & ~is_collective)


def _is_collective(name: str) -> bool:
    return bool(COLLECTIVE_OPERATOR.match(name) or ANNOTATION.match(name))


@computed
def communicating_times(trace: Trace) -> dict[int, Intervals]:
    """Return each device's communication times; `HOST`: collectives on the host, as gloo's."""
    frame = trace.collectives
    times = {of.device: of.communication for of in whole_activity(trace)}
    return {**times, HOST: frame_times.times(frame, frame["kernel_count"].to_numpy() == 0)}


@computed
def hidden_ns(trace: Trace) -> Ints:
    """Return, for each row of `collectives`, the time in which its device also computes."""
    frame = trace.collectives
    device = frame["device"].to_numpy()
    start, end = frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy()
    hidden = np.zeros(len(frame), dtype=np.int64)
    if not len(frame):
        return hidden
    for number, times in computing_times(trace).items():
        rows = device == number
        hidden[rows] = intervals.covered_ns(times, start[rows], end[rows])
    return hidden


def exposure(trace: Trace, start_ns: int, end_ns: int) -> Exposure:
    """Return the communication in a span, of the device with most; concurrent ones count once."""
    best = Exposure(communication_ns=0, exposed_ns=0)
    for device, times in communicating_times(trace).items():
        clipped = intervals.clip(times, start_ns, end_ns)
        total = intervals.duration_ns(clipped)
        if total > best.communication_ns:
            left = intervals.difference(clipped, computing_times(trace)[device])
            exposed = intervals.duration_ns(left)
            best = Exposure(communication_ns=total, exposed_ns=exposed)
    return best


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
    return intervals.clip(times, span.device_start_ns, span.device_end_ns)
