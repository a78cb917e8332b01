"""Complete steps, and the time window of an analysis: the steps, else the device work.

Steps follow one another without gaps: a step begins at its `ProfilerStep#N`, or where the device
work of the step before ends, and ends where the next begins; what the profiler does in between
belongs to the step that ends. So they sum to the window, and the mean step is the window over the
number of steps: the one whole of all fractions, and of all times per step.

Where the host runs ahead, the device still computes earlier steps, which were not recorded, when
the first recorded step begins on the host. That backlog belongs to no recorded step. Where it
shrinks, as the host is slower than the device, the steps take as long as on the host.
"""

from collections.abc import Iterator
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
    """End of the device work launched in each step; the host's end where that is later. Where no
    launch is known, the last step's is the end of all device work."""
    start_ns: Ints
    """Start of each step, after the device work of the step before; of the first, after the
    backlog of the steps before the trace, as far as the host is not slower."""
    end_ns: Ints
    """End of each step: the start of the next, or the end of the last one's device work."""

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.steps)


@computed
def complete_steps(trace: Trace) -> CompleteSteps:
    """Return the steps that analyses use."""
    steps = trace.steps
    end = steps["end_ns"].to_numpy()
    if not len(steps):
        return CompleteSteps(steps=steps, work_end_ns=end, start_ns=end, end_ns=end)
    start = steps["start_ns"].to_numpy()
    work_end, work_count = _device_work(trace, start, end)
    if len(trace.device_events) and not (links(trace).call_of_device_event >= 0).any():
        work_end[-1] = trace.device_events["end_ns"].max()
    count = _complete_count(work_count)
    work_end_ns = np.maximum(end, work_end)[:count]
    host_ns = int(end[:count].max() - start[0])
    first_ns = min(_backlog_end_ns(trace, int(start[0])), int(work_end_ns.max()) - host_ns)
    until = np.maximum.accumulate(np.append(first_ns, work_end_ns))
    start_ns = np.maximum(start[:count], until[:-1])
    return CompleteSteps(
        steps=steps.iloc[:count],
        work_end_ns=work_end_ns,
        start_ns=start_ns,
        end_ns=np.append(start_ns[1:], until[-1]),
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


def _backlog_end_ns(trace: Trace, start_ns: int) -> int:
    """Return the end of the device work that was launched before the first step.

    Of the stream on which the steps work longest: such work begins before theirs, and its launches
    come before the first step or were not recorded.
    """
    device = trace.device_events
    launch = links(trace).call_of_device_event
    is_linked = launch >= 0
    if not is_linked.any():
        return start_ns
    launch_ns = np.full(len(device), start_ns - 1)
    launch_ns[is_linked] = trace.runtime_calls["start_ns"].to_numpy()[launch[is_linked]]
    is_in_steps = launch_ns >= start_ns
    begins_ns, ends_ns = (device[name].to_numpy() for name in ("start_ns", "end_ns"))
    stream = device.groupby(["device", "stream"]).ngroup().to_numpy()
    work_ns = np.bincount(stream, weights=(ends_ns - begins_ns) * is_in_steps)
    is_main = stream == work_ns.argmax()
    if not (is_main & is_in_steps).any():
        return start_ns
    first_ns = begins_ns[is_main & is_in_steps].min()
    # launches that are lost also later say nothing of when they were made
    loses = (is_main & ~is_linked & (begins_ns >= first_ns)).any()
    is_backlog = is_main & ~is_in_steps & (begins_ns < first_ns) & (is_linked | ~loses)
    return int(np.minimum(ends_ns[is_backlog], first_ns).max(initial=start_ns))


def _complete_count(work_count: Ints) -> int:
    if not work_count.any():
        return len(work_count)
    last = int(np.flatnonzero(work_count)[-1])
    if last > 0 and work_count[last] < CUT_BELOW * work_count[last - 1]:
        return last
    return last + 1


@dataclass(frozen=True, kw_only=True)
class Window:
    """`[start_ns, end_ns)` on the host, `[device_start_ns, device_end_ns)` on the device."""

    start_ns: int
    end_ns: int
    device_start_ns: int
    """The start of the first step on the device: `start_ns`, or after the backlog."""
    device_end_ns: int
    """The end of the steps' device work, at least `end_ns`."""
    step_count: int
    """Number of steps; 0: the trace has none."""

    @property
    def has_steps(self) -> bool:
        """True where figures per step are possible."""
        return self.step_count > 0

    @property
    def duration_ns(self) -> int:
        """Duration to the device's last work; with steps, the sum of their durations."""
        return self.device_end_ns - self.device_start_ns

    @property
    def host_duration_ns(self) -> int:
        """Duration of the host's part."""
        return self.end_ns - self.start_ns

    @property
    def reference_ns(self) -> int:
        """Whole of all fractions: the duration, at least 1."""
        return max(1, self.duration_ns)

    def per_step(self, total_ns: float) -> int:
        """Return a total of the window per step; without steps, the total."""
        return round(total_ns / max(1, self.step_count))


@computed
def window(trace: Trace) -> Window:
    """Return the window: from the first step's start to the end of the last complete step.

    Its device's part begins after the backlog, and ends with the device work that the steps
    launched. Without steps, from the device's first to its last event, as Nsight's `gpu_gaps`;
    without a device, the extent of the operators, else of all calls.
    """
    complete = complete_steps(trace)
    if len(complete):
        return Window(
            start_ns=int(complete.steps["start_ns"].iloc[0]),
            end_ns=int(complete.steps["end_ns"].max()),
            device_start_ns=int(complete.start_ns[0]),
            device_end_ns=int(complete.end_ns[-1]),
            step_count=len(complete),
        )
    frame = next(filter(len, _extents(trace)), None)
    if frame is None:
        return Window(start_ns=0, end_ns=0, device_start_ns=0, device_end_ns=0, step_count=0)
    start_ns, end_ns = int(frame["start_ns"].min()), int(frame["end_ns"].max())
    return Window(
        start_ns=start_ns,
        end_ns=end_ns,
        device_start_ns=start_ns,
        device_end_ns=end_ns,
        step_count=0,
    )


def _extents(trace: Trace) -> Iterator[pd.DataFrame]:
    yield trace.device_events
    yield trace.operators
    yield trace.host_calls
    yield trace.python_calls
