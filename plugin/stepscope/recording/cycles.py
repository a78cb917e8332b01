"""Recording cycles of one process: their start and end.

Nobody knows when a script ends. Unless it is told how many steps to skip, stepscope records some
early cycles as reserves (`EARLY`), and each trace is replaced by the next one, before which more
steps were measured without the profiler.
"""

import sys
import time
from dataclasses import dataclass, replace
from enum import Enum, auto

from stepscope.recording.handler import TraceHandler
from stepscope.recording.messages import rank
from stepscope.recording.profiler_cycle import Profiled
from stepscope.recording.record_request import RecordedTrace, RecordRequest
from stepscope.recording.schedules import MOST_SKIPPED_COUNT, SKIPPED_SHARE
from stepscope.recording.step_periods import has_long_steps, period

LEAST_MEASURED_COUNT = 13
"""Steps without the profiler before the last cycle: one is left out, and two are read
(`tensor_values.py`).
"""
LEAST_SLOW_COUNT = 7
"""As many suffice if they take `SLOW_SECONDS`."""
LEAST_SHORT_COUNT = 5
"""As many suffice in a short epoch, so that the cycle fits into it."""
SLOW_SECONDS = 10.0
MEASURED_SECONDS = 2.0
"""Time of steps, by default, after which no more are skipped; in a process without other ranks."""
LEAST_STEPS = 3
"""With fewer steps no finding has high confidence."""
EVALUATION_RESTARTS = 3
"""Restarts of a cycle after evaluations to reach `LEAST_STEPS`; then one step is enough."""
MOST_RESTARTS = 6
MEASURED_CALL_SECONDS = 1.5
"""Time in which calls of a model are measured: some 150 samples of the host."""
RECORDED_CALL_SECONDS = 1.0
MOST_CALL_COUNT = 200
"""Calls of a model that are recorded at most, unless more are requested."""
OVERDUE_SECONDS = 20.0
OVERDUE_TIMES = 10
"""A cycle ends when a step takes `OVERDUE_SECONDS` and this many times the usual time longer."""
UNMEASURED_SECONDS = 600.0
"""The usual time of a step is unknown if the first one is recorded: it may compile the model."""
LONG_STEP_SECONDS = 0.05
LEAST_LONG_COUNT = 4
"""Longer steps vary less: as many suffice before an early cycle, which needs no warm-up."""


@dataclass(frozen=True)
class EarlyCycle:
    """A cycle that the next one replaces."""

    measured: int
    """Steps before it without the profiler, since the last cycle."""
    warmup: int
    """At most as many as requested."""
    active: int


EARLY = (EarlyCycle(1, 0, 3), EarlyCycle(6, 1, 5), EarlyCycle(LEAST_MEASURED_COUNT, 2, 8))
"""Of 6 steps at least 3 remain without those of a start (`step_times.py`)."""


class CycleEnd(Enum):
    """Result of a cycle."""

    SAVED = auto()
    NOT_SAVED = auto()
    """The disk is full or the folder is not writable; the handler has logged which."""
    DROPPED = auto()


class Cycles:
    """Runs torch's profiler for the requested steps.

    Without a requested number of steps to skip, the first cycle begins with step 2, and the next
    ones after 6 (of long steps, 4) and 13 steps without the profiler. The last one follows 13 such
    steps or more, once the default of `schedule_for` is reached: 50 steps, at most a twentieth of
    an epoch; or once the steps have taken 2 s, or 10 s if some take much longer than others. If
    they are slow, 7 suffice. With several ranks no time matters: their times differ slightly, and
    all ranks must record the same steps (and with `--stop`, end at the same step).
    """

    def __init__(self, request: RecordRequest, handler: TraceHandler) -> None:
        self._request = request
        self._handler = handler
        self._profiled: Profiled | None = None
        self._done_count = 0
        self._early_count = 0
        """Early cycles that have ended."""
        self._is_early = False
        """Whether the current cycle is an early one."""
        self._next_start: int | None = None
        """First step of the next cycle, where it does not depend on the steps before it."""
        self._first_step_s = 0.0
        self._measured_from = 1
        """First step after the last cycle."""
        self._measured_from_s = 0.0
        self._usual_step_s = 0.0
        """The longer of the mean of the measured steps and the longest step of the cycle."""
        self._step_start_s = 0.0
        """Start of the current step of the cycle."""
        self._restarts = 0
        self.written: RecordedTrace | None = None
        """The most recently saved file."""
        self.reserve: RecordedTrace | None = None
        self._outdated: RecordedTrace | None = None
        """The file of the last early cycle, until another one replaces it."""
        self.replaced: RecordedTrace | None = None
        """The file that the most recently saved one replaces."""

    @property
    def is_complete(self) -> bool:
        """Whether all requested cycles are recorded."""
        return self._done_count >= self._request.repeat

    @property
    def are_evaluations_too_frequent(self) -> bool:
        """Whether evaluations are too frequent to record a step between them."""
        return self._restarts > MOST_RESTARTS

    @property
    def is_recording(self) -> bool:
        """Whether the profiler runs."""
        return self._profiled is not None

    @property
    def is_early(self) -> bool:
        """Whether the current cycle, or else the last one, is an early one."""
        return self._is_early

    @property
    def steps_to_record(self) -> tuple[int, int]:
        """The first and last step that the current cycle records."""
        return (0, 0) if self._profiled is None else self._profiled.active_steps

    def is_due(self, step: int, epoch_length: int) -> bool:
        """Return whether a cycle begins with this step.

        `epoch_length` is the number of batches; 0 if unknown.
        """
        now_s = time.monotonic()
        if step == 1:
            self._first_step_s = now_s
        if step == self._measured_from:
            self._measured_from_s = now_s
        if self._profiled is not None:
            return False
        if self._next_start is not None:
            return step >= self._next_start
        if self._request.skip is not None:
            return step > self._request.skip
        is_long = self._has_long_steps(step)
        is_early_due = step >= self._early_start(epoch_length, is_long=is_long)
        return is_early_due or self._is_last_due(step, epoch_length)

    def overdue_in_s(self) -> float:
        """Return the time, in seconds, until the current step of the cycle takes too long."""
        most_s = (
            OVERDUE_SECONDS + OVERDUE_TIMES * self._usual_step_s
            if self._usual_step_s
            else UNMEASURED_SECONDS
        )
        return self._step_start_s + most_s - time.monotonic()

    def _step_s(self, step: int) -> float:
        """Return the mean time of the steps measured before this one, in seconds."""
        return (time.monotonic() - self._measured_from_s) / max(step - self._measured_from, 1)

    def _has_long_steps(self, step: int) -> bool:
        return self._step_s(step) > LONG_STEP_SECONDS and rank() is None

    def _is_last_due(self, step: int, epoch_length: int) -> bool:
        """Return whether enough steps were measured for the last cycle by default."""
        measured = step - self._measured_from
        if measured < LEAST_SLOW_COUNT:
            return False
        now_s = time.monotonic()
        if measured < LEAST_MEASURED_COUNT:
            return now_s - self._measured_from_s > SLOW_SECONDS and rank() is None
        if step > self._default_skip_count(epoch_length):
            return True
        seconds = now_s - self._first_step_s
        is_long = seconds > SLOW_SECONDS or (seconds > self._least_s and self._is_even)
        return is_long and rank() is None

    _least_s = MEASURED_SECONDS

    @property
    def _is_even(self) -> bool:
        """Whether no step took much longer than others, or all that did show a period."""
        durations_ns = self._handler.step_times.durations_ns
        return not has_long_steps(durations_ns) or period(durations_ns) > 0

    def _early_start(self, epoch_length: int, *, is_long: bool = False) -> float:
        """Return the first step of the next early cycle."""
        if self._early_count >= len(EARLY):
            return float("inf")
        measured = EARLY[self._early_count].measured
        if is_long and self._early_count == len(EARLY) - 2:
            measured = LEAST_LONG_COUNT
        start = self._measured_from + measured
        if self._early_count == len(EARLY) - 2 and self._fits_later(epoch_length):
            start = self._measured_from + LEAST_MEASURED_COUNT
            return min(start, self._start_in_epoch(epoch_length))
        return start

    def _fits_later(self, epoch_length: int) -> bool:
        """Return whether the rest of a short first epoch has room for one cycle, but not two."""
        last = self._start_in_epoch(epoch_length)
        most = self._measured_from + LEAST_MEASURED_COUNT + EARLY[-2].measured + EARLY[-2].active
        return self._measured_from + LEAST_SHORT_COUNT <= last <= most

    def _start_in_epoch(self, epoch_length: int) -> int:
        """Return the last step with which a cycle of the requested steps can begin."""
        return epoch_length - self._request.warmup - self._request.active

    def room(self, step: int, epoch_length: int) -> int:
        """Return for how many steps after this one no cycle begins, if they are not slow."""
        if self._next_start is not None:
            return self._next_start - step - 1
        if self._request.skip is not None:
            return self._request.skip - step
        last = max(
            self._default_skip_count(epoch_length) + 1, self._measured_from + LEAST_MEASURED_COUNT
        )
        return int(min(self._early_start(epoch_length), last)) - step - 1

    def start(self, step: int, epoch_length: int = 0, *, least_active: int = 0) -> None:
        """Start the profiler with this step.

        The last cycle records at least `least_active` steps, unless there are other ranks.
        """
        self._is_early = (
            self._request.skip is None
            and not self._done_count
            and not self._is_last_due(step, epoch_length)
        )
        self._usual_step_s = self._step_s(step) if step > self._measured_from else 0.0
        self._step_start_s = time.monotonic()
        if self._is_early:
            self._profiled = self._new_profiled(self._early_request(step, epoch_length), step)
            return
        if rank() is None:
            active = max(self._request.active, least_active)
            self._request = replace(self._request, active=active)
        self._profiled = self._new_profiled(self._last_request(step), step)

    def _early_request(self, step: int, epoch_length: int) -> RecordRequest:
        if self._early_count == len(EARLY) - 2 and self._fits_later(epoch_length):
            self._early_count += 1
        early = EARLY[min(self._early_count, len(EARLY) - 1)]
        is_long = self._has_long_steps(step)
        return replace(
            self._request,
            warmup=0 if is_long else min(early.warmup, self._request.warmup),
            active=min(early.active, self._request.active),
        )

    def _last_request(self, step: int) -> RecordRequest:
        del step
        return self._request

    def _new_profiled(self, request: RecordRequest, step: int) -> Profiled:
        return Profiled(request, self._handler, step)

    def step(self) -> CycleEnd | None:
        """Begin the next step of a cycle; None if the cycle continues."""
        profiled = self._profiled
        if profiled is None:
            return None
        now_s = time.monotonic()
        self._usual_step_s = max(self._usual_step_s, now_s - self._step_start_s)
        self._step_start_s = now_s
        profiled.step()
        return self._save(profiled) if profiled.is_over else None

    def evaluation(self) -> CycleEnd | None:
        """Interrupt the cycle for an evaluation; None if no cycle is active."""
        profiled = self._profiled
        if profiled is None or not profiled.is_active:
            return None
        least = LEAST_STEPS if self._restarts < EVALUATION_RESTARTS else 1
        first, last = profiled.active_steps
        if profiled.step_count >= max(min(least, last - first + 1), self._reserved_count):
            return self._save(profiled)
        self._restarts += 1
        self._next_start = profiled.step_number + 1
        self._drop(profiled)
        return CycleEnd.DROPPED

    def finish(self, *, is_saved: bool) -> CycleEnd | None:
        """End a cycle early; its steps are saved if `is_saved`."""
        profiled = self._profiled
        if profiled is None:
            return None
        if is_saved and profiled.is_active and profiled.step_count >= self._reserved_count:
            return self._save(profiled)
        self._drop(profiled)
        self._cycle_ended(profiled)
        return CycleEnd.DROPPED

    def end_overdue(self) -> CycleEnd | None:
        """End a cycle within a step; it is saved if it has a complete one."""
        has_steps = self._profiled is not None and self._profiled.step_count > 0
        return self.finish(is_saved=has_steps)

    def steps_changed(self) -> CycleEnd | None:
        """Begin anew: the steps so far were others. The next trace replaces the reserve."""
        ended = self.finish(is_saved=False)
        if not self._done_count:
            self._early_count = 0
            self._outdated = self.reserve
        return ended

    @property
    def _reserved_count(self) -> int:
        """Complete steps that a trace needs to replace the reserve; one if it has other steps."""
        if self.reserve is None:
            return 0
        count = self.reserve.step_count
        return min(1, count) if self.reserve is self._outdated else count

    def _drop(self, profiled: Profiled) -> None:
        self._profiled = None
        profiled.drop()

    def _save(self, profiled: Profiled) -> CycleEnd:
        self._profiled = None
        profiled.stop()
        self._restarts = 0
        self.written = profiled.written()
        self.replaced = None
        if self.written is not None:
            self.replaced = self.reserve
            self.reserve = self.written if self._is_early else None
        self._done_count += not self._is_early
        self._cycle_ended(profiled)
        return CycleEnd.NOT_SAVED if self.written is None else CycleEnd.SAVED

    def _cycle_ended(self, profiled: Profiled) -> None:
        self._measured_from = profiled.step_number + (not profiled.is_over)
        if self._is_early:
            self._early_count += 1
            self._next_start = None
        elif self._done_count:
            self._next_start = self._measured_from + self._request.wait

    def _default_skip_count(self, epoch_length: int) -> int:
        if not epoch_length:
            return MOST_SKIPPED_COUNT
        return min(MOST_SKIPPED_COUNT, max(epoch_length // SKIPPED_SHARE, LEAST_MEASURED_COUNT))


class CallCycles(Cycles):
    """Cycles of an inference, whose steps are calls of a model.

    Calls of a generation are short and unlike: the last cycle follows some seconds of samples, and
    records the calls of about a second. A cycle with fewer than three steps is not saved.
    """

    _least_s = MEASURED_CALL_SECONDS

    @property
    def _is_even(self) -> bool:
        """Return True: the calls of a second have long ones among them."""
        return True

    def finish(self, *, is_saved: bool) -> CycleEnd | None:
        """End a cycle early; its steps are saved if `is_saved` and there are enough."""
        profiled = self._profiled
        is_enough = profiled is not None and profiled.step_count >= LEAST_STEPS
        return super().finish(is_saved=is_saved and is_enough)

    def _default_skip_count(self, epoch_length: int) -> int:
        """Return no number: a time is skipped."""
        del epoch_length
        return sys.maxsize

    def _last_request(self, step: int) -> RecordRequest:
        fitting = int(RECORDED_CALL_SECONDS / max(self._step_s(step), 1e-9))
        active = max(self._request.active, min(fitting, MOST_CALL_COUNT))
        self._request = replace(self._request, active=active)
        return self._request

    def _new_profiled(self, request: RecordRequest, step: int) -> Profiled:
        """Return a profiler of all threads: servers compute in several."""
        return Profiled(request, self._handler, step, is_of_all_threads=True)
