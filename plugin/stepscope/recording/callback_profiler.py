"""A profiler that a framework's training loop drives by callbacks.

It never raises into the loop: an error is logged once, and recording ends.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from inspect import Parameter, signature
from typing import Any

from stepscope.base.errors import UsageError
from stepscope.recording.subjects.profiler import schedule as numbers_of

Schedule = Callable[[int], Any]
"""From a step's number, 0 the training's first, to a `torch.profiler.ProfilerAction`."""

logger = logging.getLogger("stepscope.recording")


def _harmless(method: Callable[["DrivenProfiler"], None]) -> Callable[["DrivenProfiler"], None]:
    """Let a method do nothing once recording is over, and end recording where it raises."""

    @wraps(method)
    def guarded(self: "DrivenProfiler") -> None:
        if self.is_over:
            return
        try:
            method(self)
        except Exception as error:  # of torch's profiler anything may come
            logger.debug("recording failed", exc_info=True)
            self.give_up(f"{type(error).__name__}: {error}")

    return guarded


class DrivenProfiler:
    """Records the steps that a schedule chooses, and never an evaluation among them.

    A step reaches from `step_begins` to the next one, or to `interrupted` where an evaluation comes
    between: the span so far is saved, and the rest follows as another span.
    """

    def __init__(
        self, schedule: Schedule, handler: Callable[[Any], None], options: dict[str, Any]
    ) -> None:
        self.is_over = False
        """Whether nothing more will be recorded."""
        self._schedule = schedule
        self._handler = handler
        self._options = options
        self._profiler: Any = None
        self._step_count = 0
        self._has_recorded = False
        self._delay = 0
        self._is_rest = False
        self._is_warming_up_again = False

    @_harmless
    def step_begins(self) -> None:
        """Say that a step of the training begins, which ends the one before."""
        if self._is_scheduled_to_end():
            self._stop()
            self.is_over = True
        elif self._profiler is None:
            self._start()
        else:
            self._step()
        self._step_count += 1

    @_harmless
    def interrupted(self) -> None:
        """Say that the step has ended, and that something follows that belongs to none."""
        if self._profiler is not None:
            self._is_rest = not self._is_warming_up_again
            self._stop()

    @_harmless
    def ended(self) -> None:
        """End of the training: save the span."""
        self._stop()
        self.is_over = True
        if not self._has_recorded:
            _tell(
                f"stepscope recorded nothing: the training ended after {self._step_count} steps, "
                "before the first one that the schedule records."
            )

    @_harmless
    def aborted(self) -> None:
        """The training was interrupted: save the span."""
        self._stop()
        self.is_over = True

    def give_up(self, why: str) -> None:
        """Record no more, and say why."""
        self.is_over = True
        _tell(f"stepscope records no more: {why}. Training goes on; this is said once.")
        profiler, self._profiler = self._profiler, None
        with suppress(Exception):
            if profiler is not None:
                profiler.on_trace_ready = None
                profiler.stop()

    def _start(self) -> None:
        """Start a profiler at this step, if the schedule wants one.

        Behind an interruption the first step of the rest is one of warm-up, in which nothing is
        kept; unless that is as far as it came the last time.
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
        for name, number in numbers_of(self._schedule).items():  # the trace tells of it
            setattr(action, name, number)
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
        """Give up where another profiler runs, which this one would disturb: torch has but one."""
        from torch.autograd import profiler

        if not getattr(profiler, "_is_profiler_enabled", False):
            return False
        self.give_up("another torch profiler is running")
        return True

    def _is_scheduled_to_end(self) -> bool:
        """Return whether the last step to record is behind us, where the schedule can tell."""
        spans: tuple[range, ...] = getattr(self._schedule, "recorded_steps", ())
        return bool(spans) and self._step_count - self._delay > spans[-1][-1]


def _tell(what: str) -> None:
    with suppress(Exception):  # a filter or a handler of the user's
        logger.warning("%s", what)


def _is_to_record(action: Any) -> bool:
    return str(action.name).startswith("RECORD")


def profiler_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments for `torch.profiler.profile`: those given, and shapes.

    Raises:
        UsageError: it takes no such argument, or it is one that the callback sets itself.
    """
    from torch.profiler import profile

    reserved = {"self", "schedule", "on_trace_ready"}
    parameters = signature(profile.__init__).parameters.values()
    allowed = {
        parameter.name for parameter in parameters if parameter.kind is Parameter.KEYWORD_ONLY
    } - reserved
    if unknown := sorted(given.keys() - allowed):
        message = (
            f"torch.profiler.profile takes no {', '.join(unknown)} here; "
            f"it takes {', '.join(sorted(allowed))}."
        )
        raise UsageError(message)
    return {"record_shapes": True, **given}
