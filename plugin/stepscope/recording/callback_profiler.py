"""A profiler driven by the callbacks of a framework's training loop.

It never raises into the loop: an error is logged once and recording stops.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from inspect import Parameter, signature
from typing import Any

from stepscope.base.errors import UsageError
from stepscope.recording.handler import TraceHandler
from stepscope.recording.subjects.profiler import schedule as schedule_numbers

Schedule = Callable[[int], Any]
"""Maps a step number (0 is the first of the training) to a `torch.profiler.ProfilerAction`."""

logger = logging.getLogger("stepscope.recording")


def _stop_on_error(
    method: Callable[["CallbackProfiler"], None],
) -> Callable[["CallbackProfiler"], None]:
    """Make a method a no-op after recording has ended; stop recording if it raises."""

    @wraps(method)
    def guarded(self: "CallbackProfiler") -> None:
        if self.is_over:
            return
        try:
            method(self)
        except Exception as error:  # torch's profiler may raise anything
            logger.debug("recording failed", exc_info=True)
            self.stop_recording(f"{type(error).__name__}: {error}")

    return guarded


class CallbackProfiler:
    """Records the steps that a schedule selects, without evaluations.

    A step lasts from one `begin_step` to the next, or to `interrupted` if an evaluation
    intervenes: the span so far is saved, and the remaining steps become another span.
    """

    def __init__(self, schedule: Schedule, handler: TraceHandler, options: dict[str, Any]) -> None:
        self.is_over = False
        """Whether recording has ended for good."""
        self._schedule = schedule
        self._handler = handler
        self._times = handler.step_times
        self._times.is_driven = True
        self._options = options
        self._profiler: Any = None
        self._step_count = 0
        self._has_recorded = False
        self._delay = 0
        self._is_rest = False
        self._is_warming_up_again = False

    @_stop_on_error
    def begin_step(self) -> None:
        """Begin a training step; this ends the previous one."""
        self._times.step_ended()
        if self._is_scheduled_to_end():
            self._stop()
            self._end()
        elif self._profiler is None:
            self._start()
        else:
            self._step()
        self._step_count += 1
        if self._profiler is None and not self.is_over:
            self._times.step_started()

    @_stop_on_error
    def interrupted(self) -> None:
        """End the step; the work that follows belongs to no step."""
        self._times.interrupted()
        if self._profiler is not None:
            self._is_rest = not self._is_warming_up_again
            self._stop()

    @_stop_on_error
    def ended(self) -> None:
        """Save the span at the end of the training."""
        self._times.ended()
        self._stop()
        self._end()
        if not self._has_recorded:
            _warn(
                f"stepscope recorded nothing: the training ended after {self._step_count} steps, "
                "before the first one that the schedule records."
            )

    @_stop_on_error
    def aborted(self) -> None:
        """Save the span after the training was interrupted."""
        self._times.ended()
        self._stop()
        self._end()

    def stop_recording(self, reason: str) -> None:
        """Stop recording for good and log the reason."""
        self._end()
        _warn(f"stepscope stopped recording: {reason}. Training continues; this is logged once.")
        profiler, self._profiler = self._profiler, None
        with suppress(Exception):
            if profiler is not None:
                profiler.on_trace_ready = None
                profiler.stop()

    def _end(self) -> None:
        self.is_over = True
        self._times.ended()
        self._handler.ended()

    def _start(self) -> None:
        """Start a profiler at this step if the schedule selects it.

        After an interruption, the first remaining step is a warm-up and is not recorded, unless the
        previous attempt got no further than its warm-up.
        """
        from torch.profiler import ProfilerAction, profile

        first = self._step_count
        is_warm_up = self._is_rest and _is_to_record(self._schedule(first - self._delay))
        self._is_rest, self._is_warming_up_again = False, is_warm_up
        self._delay += is_warm_up
        delay = self._delay

        def action(number: int) -> Any:
            if is_warm_up and number <= first:
                return ProfilerAction.WARMUP
            return self._schedule(max(number, first) - delay)

        if action(first) == ProfilerAction.NONE or self._is_another_running():
            return
        # these become metadata of the trace
        for name, number in schedule_numbers(self._schedule).items():
            setattr(action, name, number)
        self._times.stretch_ended()
        profiler = profile(schedule=action, on_trace_ready=self._handler, **self._options)
        profiler.step_num = first
        self._profiler = profiler
        profiler.start()
        self._has_recorded |= _is_to_record(profiler.current_action)

    def _step(self) -> None:
        self._profiler.step()
        self._is_warming_up_again = False
        self._has_recorded |= _is_to_record(self._profiler.current_action)
        if self._profiler.current_action.name == "NONE":
            self._stop()

    def _stop(self) -> None:
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            profiler.stop()

    def _is_another_running(self) -> bool:
        """Stop recording if another profiler runs, which this one would disturb."""
        from torch.autograd import profiler

        if not getattr(profiler, "_is_profiler_enabled", False):
            return False
        self.stop_recording("another torch profiler is running")
        return True

    def _is_scheduled_to_end(self) -> bool:
        """Return whether the last step to record has passed, if the schedule defines a last one."""
        spans: tuple[range, ...] = getattr(self._schedule, "recorded_steps", ())
        return bool(spans) and self._step_count - self._delay > spans[-1][-1]


def _warn(message: str) -> None:
    with suppress(Exception):  # a logging filter or handler of the user may raise
        logger.warning("%s", message)


def _is_to_record(action: Any) -> bool:
    return str(action.name).startswith("RECORD")


def profiler_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments for `torch.profiler.profile`: the given ones, with shapes by default.

    Raises:
        UsageError: The argument does not exist, or the callback sets it itself.
    """
    from torch.profiler import profile

    reserved = {"self", "schedule", "on_trace_ready"}
    parameters = signature(profile.__init__).parameters.values()
    allowed = {
        parameter.name for parameter in parameters if parameter.kind is Parameter.KEYWORD_ONLY
    } - reserved
    if unknown := sorted(given.keys() - allowed):
        message = (
            f"torch.profiler.profile does not accept {', '.join(unknown)} here; it accepts "
            f"{', '.join(sorted(allowed))}."
        )
        raise UsageError(message)
    return {"record_shapes": True, **given}
