"""Recording cycles of one process: their start and end."""

import time
from dataclasses import replace
from enum import Enum, auto

from stepscope.recording.handler import TraceHandler
from stepscope.recording.messages import rank
from stepscope.recording.profiler_cycle import Profiled
from stepscope.recording.record_request import RecordedTrace, RecordRequest
from stepscope.recording.schedules import MOST_SKIPPED_COUNT, SKIPPED_SHARE

LEAST_SKIPPED_COUNT = 3
LEAST_SKIPPED_COUNT_WITH_VALUES = 6
"""Two of them are read (`tensor_values.py`), and not measured."""
LEAST_MEASURED_COUNT = 12
"""Steps to skip even in a short epoch, whose time without the profiler is measured."""
PROVISIONAL_DISTANCE = LEAST_MEASURED_COUNT + 3
"""Steps from a cycle to the one that replaces it: two of them are read, the first is left out."""
SKIPPED_SECONDS = 10.0
"""Maximum time to skip by default, in a process without other ranks."""
LEAST_STEPS = 3
"""With fewer steps no finding has high confidence."""
EVALUATION_RESTARTS = 3
"""Restarts of a cycle after evaluations to reach `LEAST_STEPS`; then one step is enough."""
MOST_RESTARTS = 6
SKIPPED_CALL_SECONDS = 1.5
"""Time for which calls of a model are skipped: some 150 samples of the host."""
RECORDED_CALL_SECONDS = 1.0
MOST_CALL_COUNT = 200
"""Calls of a model that are recorded at most, unless more are requested."""


class CycleEnd(Enum):
    """Result of a cycle."""

    SAVED = auto()
    NOT_SAVED = auto()
    """The disk is full or the folder is not writable; the handler has logged which."""
    DROPPED = auto()


class Cycles:
    """Runs torch's profiler for the requested steps.

    Without a requested number of steps to skip, the default of `schedule_for` applies: 50, at most
    a twentieth of an epoch; but at least 12, so that unrecorded steps are measured, where the epoch
    has room for them; at most 10 s and at least 3 steps. With several ranks the time
    limit does not apply: their times differ slightly, and all ranks must record the same steps (and
    with `--stop`, end at the same step).
    """

    def __init__(self, request: RecordRequest, handler: TraceHandler) -> None:
        self._request = request
        self._handler = handler
        self._profiled: Profiled | None = None
        self._done_count = 0
        self._next_start: int | None = None
        """First step of the next cycle; None before the first cycle."""
        self._first_step_s = 0.0
        self._restarts = 0
        self.written: RecordedTrace | None = None
        """The most recently saved file."""
        self.provisional: RecordedTrace | None = None
        """A saved file before which too few steps were measured: the next one replaces it."""

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
    def steps_to_record(self) -> tuple[int, int]:
        """The first and last step that the current cycle records."""
        first = self._profiled.first_active if self._profiled is not None else 0
        return first, first + self._request.active - 1

    def is_due(self, step: int, epoch_length: int) -> bool:
        """Return whether a cycle begins with this step.

        `epoch_length` is the number of batches; 0 if unknown.
        """
        if self._profiled is not None:
            return False
        if self._next_start is not None:
            return step >= self._next_start
        if step == 1:
            self._first_step_s = time.monotonic()
        if self._request.skip is not None:
            return step > self._request.skip
        least = LEAST_SKIPPED_COUNT_WITH_VALUES if self._request.values else LEAST_SKIPPED_COUNT
        return step > min(least, self._default_skip_count(epoch_length)) and (
            step > self._default_skip_count(epoch_length)
            or (time.monotonic() - self._first_step_s > SKIPPED_SECONDS and rank() is None)
        )

    def room(self, step: int, epoch_length: int) -> int:
        """Return for how many steps after this one no cycle begins, if they are not slow."""
        if self._next_start is not None:
            return self._next_start - step - 1
        skipped = self._default_skip_count(epoch_length)
        return (skipped if self._request.skip is None else self._request.skip) - step

    def start(self, step: int, *, least_active: int = 0) -> None:
        """Start the profiler with this step.

        `least_active` steps are recorded at least, unless there are other ranks.
        """
        if rank() is None:
            active = max(self._request.active, least_active)
            self._request = replace(self._request, active=active)
        self._profiled = self._new_profiled(step)

    def _new_profiled(self, step: int) -> Profiled:
        return Profiled(self._request, self._handler, step)

    def step(self) -> CycleEnd | None:
        """Begin the next step of a cycle; None if the cycle continues."""
        profiled = self._profiled
        if profiled is None:
            return None
        profiled.step()
        return self._save(profiled) if profiled.is_over else None

    def evaluation(self) -> CycleEnd | None:
        """Interrupt the cycle for an evaluation; None if no cycle is active."""
        profiled = self._profiled
        if profiled is None or not profiled.is_active:
            return None
        least = LEAST_STEPS if self._restarts < EVALUATION_RESTARTS else 1
        if profiled.step_count >= min(least, self._request.active):
            return self._save(profiled)
        self._restarts += 1
        self._next_start = profiled.step_number + 1
        return self.finish(is_saved=False)

    def finish(self, *, is_saved: bool) -> CycleEnd | None:
        """End a cycle early; its steps are saved if `is_saved`."""
        profiled = self._profiled
        if profiled is None:
            return None
        least = self.provisional.step_count if self.provisional is not None else 0
        if is_saved and profiled.is_active and profiled.step_count >= least:
            return self._save(profiled)
        self._profiled = None
        profiled.drop()
        return CycleEnd.DROPPED

    def _save(self, profiled: Profiled) -> CycleEnd:
        self._profiled = None
        profiled.stop()
        self._done_count += 1
        self._restarts = 0
        self._next_start = profiled.step_number + self._request.wait + (not profiled.is_over)
        self.written = profiled.written()
        if self.provisional is None and self._is_provisional():
            self.provisional = self.written
            self._done_count -= 1
            self._next_start = profiled.step_number + PROVISIONAL_DISTANCE
        return CycleEnd.NOT_SAVED if self.written is None else CycleEnd.SAVED

    def _is_provisional(self) -> bool:
        """Return whether another cycle replaces the last one, before which no steps were measured.

        The epoch was too short for both, and more may follow. Ranks must record the same steps.
        """
        return not self._handler.step_times.summary and self._is_default_and_saved()

    def _is_default_and_saved(self) -> bool:
        """Return whether a file was saved of steps that nobody asked for."""
        is_by_default = self._request.skip is None and self._request.repeat == 1
        is_saved = self.written is not None
        return is_saved and is_by_default and not self._request.is_stopping and rank() is None

    def _default_skip_count(self, epoch_length: int) -> int:
        if not epoch_length:
            return MOST_SKIPPED_COUNT
        if epoch_length <= LEAST_SKIPPED_COUNT:  # there are several epochs, or nothing to record
            return LEAST_MEASURED_COUNT
        room = epoch_length - self._request.warmup - self._request.active
        measured = min(LEAST_MEASURED_COUNT, room)
        return min(MOST_SKIPPED_COUNT, max(epoch_length // SKIPPED_SHARE, measured))


class CallCycles(Cycles):
    """Cycles of an inference, whose steps are calls of a model.

    Without a requested number of steps to skip, a first cycle follows 12 calls: the script may end
    soon. Another one, after some seconds in which unrecorded calls are sampled, replaces it. Calls
    of a generation are short and unlike: more are recorded, for about a second. A cycle with fewer
    than three steps is not saved.
    """

    _is_early = False
    """Whether the current cycle began before calls were sampled for long."""

    def is_due(self, step: int, epoch_length: int) -> bool:
        """Return whether a cycle begins with this step."""
        if step == 1:
            self._first_step_s = time.monotonic()
        is_early = time.monotonic() - self._first_step_s <= SKIPPED_CALL_SECONDS
        if self._request.skip is not None or self.is_recording:
            return super().is_due(step, epoch_length)
        if self._next_start is not None:
            return step >= self._next_start and not (self.provisional and is_early)
        is_slow = time.monotonic() - self._first_step_s > SKIPPED_SECONDS
        return step > (LEAST_SKIPPED_COUNT if is_slow else LEAST_MEASURED_COUNT)

    def finish(self, *, is_saved: bool) -> CycleEnd | None:
        """End a cycle early; its steps are saved if `is_saved` and there are enough."""
        profiled = self._profiled
        is_enough = profiled is not None and profiled.step_count >= LEAST_STEPS
        return super().finish(is_saved=is_saved and is_enough)

    def _is_provisional(self) -> bool:
        """Return whether another cycle replaces the last one, which had few samples."""
        return self._is_early and self._is_default_and_saved()

    def _new_profiled(self, step: int) -> Profiled:
        """Return a profiler of all threads: servers compute in several."""
        seconds = time.monotonic() - self._first_step_s
        self._is_early = self._request.skip is None and seconds <= SKIPPED_CALL_SECONDS
        if step > 1 and self._first_step_s and not self._is_early:
            call_s = seconds / (step - 1)
            fitting = min(int(RECORDED_CALL_SECONDS / call_s), MOST_CALL_COUNT)
            active = max(self._request.active, fitting)
            self._request = replace(self._request, active=active)
        return Profiled(self._request, self._handler, step, is_of_all_threads=True)
