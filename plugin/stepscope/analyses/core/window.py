"""The time that a trace speaks of: its steps, or where it has none, its device's work."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from stepscope.analyses.core.complete_steps import complete_steps
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True)
class Window:
    """`[start_ns, end_ns)` on the host; the device's part goes on to `device_end_ns`."""

    start_ns: int
    end_ns: int
    device_end_ns: int
    """The end, or the last device event's end where that is later."""
    step_count: int
    """How many steps it holds; 0 where the trace has none."""

    @property
    def has_steps(self) -> bool:
        """Whether per-step figures can be given."""
        return self.step_count > 0

    @property
    def duration_ns(self) -> int:
        """How long the host's part is."""
        return self.end_ns - self.start_ns

    @property
    def reference_ns(self) -> int:
        """What shares are of: the host's part, or the device's where the host ran ahead of it.

        A tail of device work longer than a step means that the device, not the host, is what a
        step waits for. At least 1.
        """
        is_ahead = self.device_end_ns - self.end_ns > self.per_step(self.duration_ns)
        return max(1, self.device_duration_ns if is_ahead else self.duration_ns)

    @property
    def device_duration_ns(self) -> int:
        """How long it is with the device's last work."""
        return self.device_end_ns - self.start_ns

    def per_step(self, total_ns: float) -> int:
        """Return a total of the window per step, or as it is where there are no steps."""
        return round(total_ns / max(1, self.step_count))


@computed
def window(trace: Trace) -> Window:
    """Return the window: first step's start to the end of the last that was recorded whole.

    Without steps it is the device's first to last event, as Nsight's `gpu_gaps` has it; without
    a device the operators' extent; else the extent of everything.
    """
    device = trace.device_events
    last_device_ns = int(device["end_ns"].max()) if len(device) else 0
    complete = complete_steps(trace)
    if len(complete) < len(trace.steps):  # what the cut step launched is not ours
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
    """Yield what a window may be of, best first; nothing is made that nobody asks for."""
    yield steps
    yield trace.device_events
    yield trace.operators
    yield trace.host_calls
    yield trace.python_calls
