"""Host calls that start something up: load a kernel's code, a module, create a first stream.

The runtime loads a kernel's code in its first launch, once per process, and a library prepares
itself in its first call, in the operator that then launches its first kernel (cuBLAS took 111 ms in
`aten::mm`). Traces that begin after the warm-up have no such calls.
"""

import numpy as np
import pandas as pd

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import is_blocking
from stepscope.dialects import FIRST_USE_NAME, LAUNCH_NAME, Kind
from stepscope.model import intervals
from stepscope.model.arrays import Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

LOADING_NS = 1_000_000
"""A launch or an operator before it takes some µs; loading code takes milliseconds (332 ms in a
public trace)."""
RECURS = 0.5
"""Fraction of the first time from which the usual time before a kernel's later launches shows that
the operator's own work takes it."""
TORCH = "aten::"
"""Operators that do no such work: of others, only a later launch tells start-up from work."""


@computed
def first_use_times(trace: Trace) -> Intervals:
    """Return the times of 1 ms or more in which host calls load code.

    A launch counts if its kernel had not run before in the trace, and so does the time before it in
    its operator.
    """
    calls = trace.runtime_calls
    is_long = calls["duration_ns"].to_numpy() >= LOADING_NS
    loads = is_long & name_mask(calls["name"], FIRST_USE_NAME.search)
    is_first = _is_first(trace)
    launches = np.flatnonzero(is_long & name_mask(calls["name"], LAUNCH_NAME.search))
    loads[launches[np.isin(launches, links(trace).call_of_device_event[is_first])]] = True
    return intervals.merged(frame_times.times(calls, loads), _before_launches(trace, is_first))


def _is_first(trace: Trace) -> Mask:
    """Return which device events are the first of their name."""
    return np.asarray(~pd.Series(trace.device_events["name"].cat.codes).duplicated().to_numpy())


def _before_launches(trace: Trace, is_first: Mask) -> Intervals:
    """Return long times in operators before the first launches of their kernels.

    Times of operators and of waits in them are left out.
    """
    events, operators = trace.device_events, trace.host_calls
    call, owner = links(trace).call_of_device_event, links(trace).owner_of_device_event
    is_launched = (call >= 0) & (owner >= 0) & (events["kind"] == Kind.KERNEL).to_numpy()
    rows = np.flatnonzero(is_launched)
    begin = operators["start_ns"].to_numpy()[owner[rows]]
    before = trace.runtime_calls["start_ns"].to_numpy()[call[rows]] - begin
    is_of_torch = name_mask(operators["name"], lambda name: name.startswith(TORCH))[owner[rows]]
    is_slow = is_first[rows] & (before >= LOADING_NS)
    kernel = events["name"].cat.codes.to_numpy().astype(np.int64)[rows]
    usual = _usual(kernel, before, is_first[rows], is_of_torch)
    is_start = is_slow & (usual < RECURS * before)
    starts = intervals.union(begin[is_start], (begin + before)[is_start])
    inner = np.isin(operators["parent"].to_numpy(), owner[rows[is_start]])
    starts = intervals.difference(starts, frame_times.times(operators, inner))
    waits = frame_times.times(trace.runtime_calls, is_blocking(trace))
    starts = intervals.difference(starts, waits)
    return starts[starts[:, 1] - starts[:, 0] >= LOADING_NS]


def _usual(kernel: Ints, before: Ints, is_first: Mask, is_of_torch: Mask) -> Ints:
    """Return, for each launch, the median time before later launches of its kernel, in ns.

    Where the kernel runs once, that is 0 in torch's operators, and the time itself in others.
    """
    later = pd.Series(before[~is_first]).groupby(kernel[~is_first]).median()
    alone = np.where(is_of_torch, 0, before)
    return np.asarray(pd.Series(kernel).map(later).fillna(pd.Series(alone)).to_numpy())
