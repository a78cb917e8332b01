"""Host calls that load code: a kernel's first launch, a module, a first stream.

The runtime loads a kernel's code in its first launch, once per process: traces that begin after the
warm-up have no such calls.
"""

import numpy as np
import pandas as pd

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.links import links
from stepscope.dialects import FIRST_USE_NAME, LAUNCH_NAME
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

LOADING_NS = 1_000_000
"""A launch takes some µs; loading code takes milliseconds (332 ms in a public trace)."""


@computed
def first_use_times(trace: Trace) -> Intervals:
    """Return the times of host calls of 1 ms or more that load code.

    A launch counts if its kernel had not run before in the trace.
    """
    calls = trace.runtime_calls
    is_long = calls["duration_ns"].to_numpy() >= LOADING_NS
    loads = is_long & name_mask(calls["name"], FIRST_USE_NAME.search)
    launches = np.flatnonzero(is_long & name_mask(calls["name"], LAUNCH_NAME.search))
    loads[launches[np.isin(launches, _first_launches(trace))]] = True
    return frame_times.times(calls, loads)


def _first_launches(trace: Trace) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    call = links(trace).call_of_device_event
    names = pd.Series(trace.device_events["name"].cat.codes)
    return np.asarray(call[~names.duplicated().to_numpy()])
