"""Schedules of the steps to record: `schedule_for`."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stepscope.base.errors import UsageError

SKIPPED_SHARE = 20
"""A twentieth of the steps is skipped at the start, …"""
MOST_SKIPPED_COUNT = 50
"""… but at most this number: by then caches are warm and prefetched batches are used up."""
WARMUP_COUNT = 2
ACTIVE_COUNT = 8
LEAST_ACTIVE_COUNT = 3
"""With fewer steps no finding has high confidence."""
MOST_ACTIVE_COUNT = 10
RECORDED_SECONDS = 10.0
"""Approximate maximum duration of a span of slow steps."""
MOST_REPEATS = 5
STEPS_PER_SPAN = 200
"""A training gets one span per this number of steps, up to `MOST_REPEATS`, to limit overhead."""
SECONDS_PER_SPAN = 600.0
"""Time per span if the training's length is unknown but a step's duration is known."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A printable schedule for `torch.profiler.profile(schedule=…)`.

    Equals `torch.profiler.schedule` with the same arguments and `skip_first_wait=1`: `skip_first`
    steps are skipped, then `warmup` and `active` follow; before each further span come `wait`
    steps. (torch has `skip_first_wait` since 2.6.)
    """

    skip_first: int
    wait: int
    warmup: int
    active: int
    repeat: int
    """Number of recorded spans, at least 1."""

    @property
    def recorded_steps(self) -> tuple[range, ...]:
        """The steps of each span, by the numbers of `ProfilerStep#N`."""
        first = self.skip_first + self.warmup
        cycle = self.wait + self.warmup + self.active
        starts = (first + span * cycle for span in range(self.repeat))
        return tuple(range(start, start + self.active) for start in starts)

    @cached_property
    def _actions(self) -> Any:
        from torch.profiler import ProfilerAction

        return ProfilerAction

    def __call__(self, step: int) -> Any:
        """Return the profiler's action in a step, a `torch.profiler.ProfilerAction`."""
        actions = self._actions
        since = step - self.skip_first
        if since < 0:
            return actions.NONE
        span, position = divmod(since + self.wait, self.wait + self.warmup + self.active)
        if span >= self.repeat or position < self.wait:
            return actions.NONE
        if position < self.wait + self.warmup:
            return actions.WARMUP
        is_last = position == self.wait + self.warmup + self.active - 1
        return actions.RECORD_AND_SAVE if is_last else actions.RECORD

    def __str__(self) -> str:
        spans = ", ".join(f"{steps[0]} to {steps[-1]}" for steps in self.recorded_steps)
        return f"records steps {spans}"


def schedule_for(  # noqa: PLR0913 (each is something a user may know)
    step_count: int | None = None,
    *,
    steps_an_epoch: int | None = None,
    epochs: int | None = None,
    step_seconds: float | None = None,
    seconds: float | None = None,
    active: int | None = None,
    repeat: int | None = None,
) -> Schedule:
    """Return a schedule for `torch.profiler.profile` that selects steps of a training.

    The start is skipped (a twentieth of the steps, at most 50: compilation, cold caches, prefetched
    batches); the profiler warms up for two steps; then eight are recorded. A long training is
    recorded up to five times, spread evenly, so that changes are visible. Pass the values that you
    know:

    ```python
    schedule_for(10_000)                            # total steps: five spans, the first at step 52
    schedule_for(steps_an_epoch=500, epochs=3)      # a span per epoch, none across epochs
    schedule_for(seconds=3600, step_seconds=0.25)   # as 14,400 steps
    schedule_for(step_seconds=20)                   # slow steps: fewer are recorded
    schedule_for()                                  # without arguments: one span, near the start
    print(schedule_for(1000))                       # records steps 52 to 59, 241 to 248, …
    ```

    The last span ends before the last step, so that it is saved within the loop. A training of less
    than six steps is too short for that: then as many steps as possible are recorded.

    Args:
        step_count: Number of calls of `profiler.step()`.
        steps_an_epoch: Steps of one epoch (`len(loader)`); no span crosses the end of an epoch.
        epochs: Number of epochs, 1 by default. Only with `steps_an_epoch`.
        step_seconds: Approximate duration of a step. Fewer long steps are recorded, but at least
            three: a span takes about ten seconds.
        seconds: Duration of the training; with `step_seconds` it determines the number of steps.
        active: Steps per span, overriding the default.
        repeat: Number of spans, overriding the default; fewer if they do not fit.

    Raises:
        UsageError: A number is not positive, or a required companion is missing.
    """
    _check(
        step_count=step_count,
        steps_an_epoch=steps_an_epoch,
        epochs=epochs,
        step_seconds=step_seconds,
        seconds=seconds,
        active=active,
        repeat=repeat,
    )
    active = active or _active(step_seconds)
    if steps_an_epoch is not None and step_count is None:
        return _by_epoch(steps_an_epoch, epochs or 1, active, repeat)
    if step_count is None and seconds is not None and step_seconds is not None:
        step_count = max(1, int(seconds / step_seconds))
    if step_count is None:
        return _of_unknown_length(step_seconds, active, repeat)
    return _spread(step_count, active, repeat)


def _check(**numbers: float | None) -> None:
    for name, number in numbers.items():
        if number is not None and not number > 0:
            message = f"schedule_for({name}={number!r}): pass a number above 0, or omit it."
            raise UsageError(message)
    for name, needed in (("epochs", "steps_an_epoch"), ("seconds", "step_seconds")):
        if numbers[name] is not None and numbers[needed] is None:
            message = f"schedule_for({name}=…) also needs {needed}, for the count of steps."
            raise UsageError(message)


def _active(step_seconds: float | None) -> int:
    """Return the number of steps per span: eight, more for fast steps, fewer for slow ones."""
    if step_seconds is None:
        return ACTIVE_COUNT
    fitting = int(RECORDED_SECONDS / step_seconds)
    return min(max(fitting, LEAST_ACTIVE_COUNT), MOST_ACTIVE_COUNT)


def _spread(step_count: int, active: int, repeat: int | None) -> Schedule:
    """Return spans spread evenly over the steps; the last step is not recorded."""
    usable = max(step_count - 1, 1)
    skip_first = min(step_count // SKIPPED_SHARE, MOST_SKIPPED_COUNT)
    skip_first = max(skip_first, 1) if usable > LEAST_ACTIVE_COUNT + 1 else 0
    warmup = min(WARMUP_COUNT, max(usable - skip_first - LEAST_ACTIVE_COUNT, 0))
    active = min(active, max(usable - skip_first - warmup, 1))
    left = usable - skip_first
    repeat = repeat or min(max(step_count // STEPS_PER_SPAN, 1), MOST_REPEATS)
    repeat = max(min(repeat, left // (warmup + active)), 1)
    wait = left // repeat - warmup - active if repeat > 1 else 0
    return Schedule(
        skip_first=skip_first, wait=max(wait, 0), warmup=warmup, active=active, repeat=repeat
    )


def _by_epoch(steps_an_epoch: int, epochs: int, active: int, repeat: int | None) -> Schedule:
    """Return spans at the same position in epochs that are spread evenly over the training."""
    if epochs == 1:
        return _spread(steps_an_epoch, active, repeat)
    single = _spread(steps_an_epoch, active, 1)
    spans = min(repeat or MOST_REPEATS, epochs)
    cycle = epochs // spans * steps_an_epoch
    return Schedule(
        skip_first=single.skip_first,
        wait=max(cycle - single.warmup - single.active, 0),
        warmup=single.warmup,
        active=single.active,
        repeat=spans,
    )


def _of_unknown_length(step_seconds: float | None, active: int, repeat: int | None) -> Schedule:
    """Return a schedule for a training of unknown length."""
    spans = repeat or (1 if step_seconds is None else MOST_REPEATS)
    between = STEPS_PER_SPAN if step_seconds is None else int(SECONDS_PER_SPAN / step_seconds)
    skip_first = MOST_SKIPPED_COUNT if step_seconds is None else _skipped(step_seconds)
    return Schedule(
        skip_first=skip_first,
        wait=max(between - WARMUP_COUNT - active, 0) if spans > 1 else 0,
        warmup=WARMUP_COUNT,
        active=active,
        repeat=spans,
    )


def _skipped(step_seconds: float) -> int:
    """Return the number of steps to skip: those of one minute, between 1 and 50."""
    return min(max(int(60 / step_seconds), 1), MOST_SKIPPED_COUNT)
