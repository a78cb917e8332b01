"""Times of the steps that are not recorded, by the moments at which steps begin and end.

A step's time is the interval between two successive boundaries on the host: in the steady state,
the time per step of the training, also where the device runs behind the host. A stretch is a
sequence of steps without a profiler; it ends where the profiler warms up, since from then on the
profiler records. A trace holds the last stretch before its window: steps after the window belong to
the trace of the next one, if there is one.

Of a stretch, the first step is left out, and all steps up to the last slow one (compilation,
growing pools of memory) in the first half of the others. Slow is a step beyond the upper fence of
Tukey (third quartile + 1.5 interquartile ranges) of the second half, by 10 % of its median or more.

At the end of a stretch the device may have work queued: the host has then run ahead, and its
intervals are shorter than the device's steps. `backlog_ns` is the time that this work takes: one
synchronization per stretch, where torch's profiler prepares to record. A stretch begins with an
empty queue (at the start, after a slow step, after the synchronization that ends a window), so
`mean_ns` with the backlog is the time per step on the device.

`after_profiler` is 1 where the profiler ran before the stretch: CUPTI then stays loaded, and each
launch takes longer (pytorch#144455: 10 to 20 % of the step).

A sampler notes where the host is in these steps (`host_sampler.py`). Of a stretch with room, the
values of tensors are read in two early steps, which are left out (`tensor_values.py`).
"""

import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import update_wrapper, wraps
from typing import Any, ClassVar

from stepscope.recording.host_sampler import HostSampler

KEY = "unrecorded_steps"
TENSOR_VALUES = "tensor_values"
"""Key of `tensor_values.py`, which is imported with torch, where values are read."""
MOST_STEPS = 1000
"""The last steps of a stretch are used, at most this number."""
LEAST_STEPS = 3
"""A stretch with fewer steps says nothing of their spread, and is not written."""
FENCE = 1.5
LEAST_EXCESS = 0.1
DEVICES = ("cuda", "xpu", "mtia", "hpu")
FIRST_READ = 3
"""Step of a stretch from which values are read: the first ones compile and fill pools of memory."""
LEAST_ROOM = 6
"""Steps that must follow unrecorded, so that enough are measured."""


class StepTimes:
    """Collects the times of unrecorded steps; no method raises."""

    has_profiled: ClassVar[bool] = False
    """Whether a profiler has run in this process."""

    def __init__(
        self,
        backlog_ns: Callable[[], int] | None = None,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
        *,
        sampler: HostSampler | None = None,
        has_values: bool = False,
    ) -> None:
        self.is_driven = False
        """Whether the caller reports the steps, and no schedule does."""
        self.summary: dict[str, int] = {}
        """Times of the last stretch with enough steps, as written into a trace."""
        self.samples: dict[str, Any] = {}
        """Samples of the host in the same steps, as written into a trace."""
        self.measured_ns: list[tuple[int, int]] = []
        """Begin and end of the same steps."""
        self.values: dict[str, Any] = {}
        """What the values of tensors show, as written into a trace."""
        self._sampler = sampler or HostSampler(is_possible=False)
        self._reader: Any = None
        """`TensorValues` of this process; None before the first step with room."""
        self._has_values = has_values
        self._stretch_step = 0
        """Number of the step within its stretch."""
        self._step = 0
        """Number of the last step that began."""
        self._backlog_ns = backlog_ns or device_backlog_ns
        self._clock_ns = clock_ns
        self._began_ns: int | None = None
        self._durations_ns: deque[int] = deque(maxlen=MOST_STEPS)
        self._numbers: deque[int] = deque(maxlen=MOST_STEPS)
        """Of the same steps."""
        self._ends_ns: deque[int] = deque(maxlen=MOST_STEPS)

    @property
    def durations_ns(self) -> tuple[int, ...]:
        """Return the steps of the stretch in progress, without the first, in order."""
        return tuple(self._durations_ns)[1:]

    def step_started(self, room: int = 0) -> None:
        """Begin an unrecorded step; `room` steps more are not recorded, or measured otherwise."""
        self._step += 1
        self._stretch_step += 1
        if self._reader is not None:
            self._reader.leave()
        if self._has_values and self._reads_values(room):
            return
        self._sampler.step_began(self._step)
        self._began_ns = self._clock_ns()

    def _reads_values(self, room: int) -> bool:
        """Return whether the values of this step are read, and it is not measured."""
        is_next = self._reader is not None and self._stretch_step > FIRST_READ
        if not is_next and (self._stretch_step != FIRST_READ or room < LEAST_ROOM):
            return False
        if self._reader is None:
            try:
                from stepscope.recording.tensor_values import TensorValues

                self._reader = TensorValues()
            except Exception:  # a torch without such modes
                self._has_values = False
                return False
        is_read: bool = self._reader.begin()
        self._has_values = is_read
        return is_read

    def step_ended(self) -> None:
        """End the unrecorded step, if one is in progress."""
        if self._began_ns is not None:
            self._ends_ns.append(self._clock_ns())
            self._durations_ns.append(self._ends_ns[-1] - self._began_ns)
            self._numbers.append(self._step)
        self._values_end(is_whole=True)
        self.interrupted()

    def interrupted(self) -> None:
        """Drop the step in progress, which contains other work, such as an evaluation."""
        self._began_ns = None
        self._sampler.step_began(0)
        self._values_end(is_whole=False)

    def _values_end(self, *, is_whole: bool) -> None:
        if self._reader is not None:
            self._reader.end(is_whole=is_whole)

    def stretch_ended(self) -> None:
        """Summarize the stretch: the profiler starts."""
        self._stretch_step = 0
        if self._reader is not None:
            self.values = self._reader.summary() or self.values
        durations_ns, numbers = list(self._durations_ns), list(self._numbers)
        spans_ns = [(end - ns, end) for end, ns in zip(self._ends_ns, durations_ns, strict=True)]
        self._durations_ns.clear()
        self._numbers.clear()
        self._ends_ns.clear()
        self.ended()
        figures = summary(durations_ns, self._backlog_ns()) if durations_ns else {}
        first = len(numbers) - figures.get("count", 0)
        samples = self._sampler.summary(numbers[first:])
        if figures:
            figures["after_profiler"] = int(StepTimes.has_profiled)
            self.summary, self.samples, self.measured_ns = figures, samples, spans_ns[first:]
        StepTimes.has_profiled = True

    def ended(self) -> None:
        """Measure no further steps."""
        self.interrupted()
        self._sampler.stop()

    def follow(self, profiler: Any) -> None:
        """Measure by the schedule of a `torch.profiler.profile`, which calls it at each step."""
        if self.is_driven or isinstance(profiler.schedule, TimedSchedule):
            return
        profiler.schedule = TimedSchedule(profiler.schedule, self)
        if not _is_profiling(profiler.current_action):
            self.step_started()


class TimedSchedule:
    """A schedule that reports the steps which it does not record."""

    def __init__(self, schedule: Callable[[int], Any], times: StepTimes) -> None:
        update_wrapper(self, schedule)
        self._schedule = schedule
        self._times = times
        self._was_profiling = False

    def __call__(self, step: int) -> Any:
        """Return the profiler's action in a step, which begins now.

        The profiler saves a window after this call: the step after a window is not measured.
        """
        action = self._schedule(step)
        times = self._times
        times.step_ended()
        is_profiling = _is_profiling(action)
        if is_profiling:
            times.stretch_ended()
        elif not self._was_profiling:
            times.step_started(self._room(step))
        self._was_profiling = is_profiling
        return action

    def _room(self, step: int) -> int:
        """Return `LEAST_ROOM` if the schedule records none of the next steps."""
        following = (self._schedule(step + later) for later in range(1, LEAST_ROOM + 1))
        return 0 if any(map(_is_profiling, following)) else LEAST_ROOM


def follow_profilers() -> None:
    """Make `torch.profiler.profile.start` pass the profiler to the `StepTimes` of its handler.

    It is the first call of a profiler that knows its handler; nothing is called at each step.
    """
    profiler = getattr(sys.modules.get("torch.profiler"), "profile", None)
    start = getattr(profiler, "start", None)
    if start is None or hasattr(start, "follows_steps"):
        return

    @wraps(start)
    def started(self: Any) -> None:
        times = getattr(self.on_trace_ready, "step_times", None)
        if isinstance(times, StepTimes):
            with suppress(Exception):  # a profiler of another kind; the training continues
                times.follow(self)
        start(self)

    started.follows_steps = True  # type: ignore[attr-defined]
    profiler.start = started  # type: ignore[union-attr]


def summary(durations_ns: Sequence[int], backlog_ns: int = 0) -> dict[str, int]:
    """Return count, median, quartiles and mean of a stretch's steady steps; empty if too few.

    Args:
        durations_ns: Every step of the stretch, in order.
        backlog_ns: Time for which the device works on after the last step.
    """
    steady = steady_part(durations_ns)
    if len(steady) < LEAST_STEPS:
        return {}
    first, median, third = statistics.quantiles(steady, n=4, method="inclusive")
    return {
        "count": len(steady),
        "median_ns": round(median),
        "first_quartile_ns": round(first),
        "third_quartile_ns": round(third),
        "mean_ns": round((sum(steady) + backlog_ns) / len(steady)),
        "backlog_ns": backlog_ns,
    }


def steady_part(durations_ns: Sequence[int]) -> Sequence[int]:
    """Return the steps of a stretch without those of its start (see the module)."""
    others = durations_ns[1:]
    late = others[len(others) // 2 :]
    if len(late) < 2:
        return others
    first, median, third = statistics.quantiles(late, n=4, method="inclusive")
    fence = third + max(FENCE * (third - first), LEAST_EXCESS * median)
    slow = [index for index in range(len(others) // 2) if others[index] > fence]
    return others[slow[-1] + 1 :] if slow else others


def device_backlog_ns() -> int:
    """Return the time until the devices in use are idle; 0 without one, or during a capture."""
    torch = sys.modules.get("torch")
    begin = time.perf_counter_ns()
    is_any = False
    for name in DEVICES:
        module = getattr(torch, name, None)
        with suppress(Exception):  # an error of the device's work reaches the training later
            if module is not None and module.is_initialized() and not _is_capturing(module):
                module.synchronize()
                is_any = True
    return time.perf_counter_ns() - begin if is_any else 0


def is_graph_captured() -> bool:
    """Return whether a device's work is being captured: a profiler cannot start or stop then."""
    torch = sys.modules.get("torch")
    for name in DEVICES:
        module = getattr(torch, name, None)
        with suppress(Exception):
            if module is not None and module.is_initialized() and _is_capturing(module):
                return True
    return False


def _is_capturing(module: Any) -> bool:
    capturing = getattr(module, "is_current_stream_capturing", None)
    return bool(capturing()) if capturing else False


def _is_profiling(action: Any) -> bool:
    """Return whether the profiler runs with this action; it does in a warm-up."""
    return getattr(action, "name", "") != "NONE"
