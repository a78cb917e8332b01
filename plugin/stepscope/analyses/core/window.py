"""Time window of an analysis: the trace's steps, else its device work."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from stepscope.analyses.core.complete_steps import complete_steps
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True)
class Window:
    """`[start_ns, end_ns)` on the host; the device's part ends at `device_end_ns`."""

    start_ns: int
    end_ns: int
    device_end_ns: int
    """The end, or the last device event's end where that is later."""
    step_count: int
    """Number of steps; 0: the trace has none."""

    @property
    def has_steps(self) -> bool:
        """True where figures per step are possible."""
        return self.step_count > 0

    @property
    def duration_ns(self) -> int:
        """Duration of the host's part."""
        return self.end_ns - self.start_ns

    @property
    def reference_ns(self) -> int:
        """Whole of percentages: the host's part, or the device's where the host runs ahead of it.

        The host runs ahead where the device's tail is longer than a step. At least 1.
        """
        is_ahead = self.device_end_ns - self.end_ns > self.per_step(self.duration_ns)
        return max(1, self.device_duration_ns if is_ahead else self.duration_ns)

    @property
    def device_duration_ns(self) -> int:
        """Duration with the device's last work."""
        return self.device_end_ns - self.start_ns

    def per_step(self, total_ns: float) -> int:
        """Return a total of the window per step; without steps, the total."""
        return round(total_ns / max(1, self.step_count))


@computed
def window(trace: Trace) -> Window:
    """Return the window: from the first step's start to the last complete step's end.

    Without steps, from the device's first to its last event, as Nsight's `gpu_gaps`; without a
    device, the extent of the operators, else of all calls.
    """
    device = trace.device_events
    last_device_ns = int(device["end_ns"].max()) if len(device) else 0
    complete = complete_steps(trace)
    if len(complete) < len(trace.steps):  # without the incomplete step's device work
        last_device_ns = int(complete.work_end_ns.max())
    for frame in _extents(trace, complete.steps):
        if len(frame):
            end_ns = int(frame["end_ns"].max())
            return Window(
                start_ns=int(frame["start_ns"].min()),
                end_ns=end_ns,
                device_end_ns=max(end_ns, last_device_ns),
                step_count=len(complete),
            )
    return Window(start_ns=0, end_ns=0, device_end_ns=0, step_count=0)


def _extents(trace: Trace, steps: pd.DataFrame) -> Iterator[pd.DataFrame]:
    yield steps
    yield trace.device_events
    yield trace.operators
    yield trace.host_calls
    yield trace.python_calls
