"""Which collectives were asked for within some part of the program."""

import re

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.communication.collective_events import asked_ns
from stepscope.analyses.core import frame_times
from stepscope.model.frames.name_masks import named
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace


def asked_during(trace: Trace, times: Intervals) -> NDArray[np.bool_]:
    """Tell which rows of `collectives` were asked for at any of these times of the host."""
    asked = asked_ns(trace)
    if not len(times):
        return np.zeros(len(asked), dtype=bool)
    place = np.searchsorted(times[:, 0], asked, side="right") - 1
    return np.asarray((place >= 0) & (asked < times[place, 1]))


def asked_within(trace: Trace, name: re.Pattern[str]) -> NDArray[np.bool_]:
    """Tell which rows of `collectives` were asked for while a call so named went on."""
    calls = trace.host_calls
    return asked_during(trace, frame_times.times(calls, named(calls["name"], name.search)))
