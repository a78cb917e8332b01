"""Steps that were recorded to their end, and the end of each one's device work."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core.links import links
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace, computed

CUT_BELOW = 0.8
"""torch-tb-profiler (`event_parser.py`): a last step with less than this fraction of the device
events of the step before was not recorded to its end."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CompleteSteps:
    """Rows of `Trace.steps`, without those at the end whose device work was not recorded."""

    steps: pd.DataFrame
    work_end_ns: Ints
    """End of the device work launched in each step; the host's end where that is later."""
    has_device_work: bool

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.steps)


@computed
def complete_steps(trace: Trace) -> CompleteSteps:
    """Return the steps that analyses use."""
    steps = trace.steps
    end = steps["end_ns"].to_numpy()
    if not len(steps):
        return CompleteSteps(steps=steps, work_end_ns=end, has_device_work=False)
    work_end, work_count = _device_work(trace, steps["start_ns"].to_numpy(), end)
    count = _complete_count(work_count)
    return CompleteSteps(
        steps=steps.iloc[:count],
        work_end_ns=np.maximum(end, work_end)[:count],
        has_device_work=bool(work_count.any()),
    )


def _device_work(trace: Trace, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    calls, device = trace.runtime_calls, trace.device_events
    launch = links(trace).call_of_device_event
    linked = np.flatnonzero(launch >= 0)
    call_start = calls["start_ns"].to_numpy()[launch[linked]]
    call_end = calls["end_ns"].to_numpy()[launch[linked]]
    step = np.searchsorted(start, call_start, side="right") - 1
    inside = (step >= 0) & (call_end <= end[np.maximum(step, 0)])
    step, linked = step[inside], linked[inside]
    last = np.full(len(start), np.iinfo(np.int64).min)
    np.maximum.at(last, step, device["end_ns"].to_numpy()[linked])
    return last, np.bincount(step, minlength=len(start))


def _complete_count(work_count: Ints) -> int:
    if not work_count.any():
        return len(work_count)
    last = int(np.flatnonzero(work_count)[-1])
    if last > 0 and work_count[last] < CUT_BELOW * work_count[last - 1]:
        return last
    return last + 1
