"""Which steps are recorded: laws that hold for every training, and the schedules in the help."""

import inspect
from itertools import pairwise

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch.profiler import ProfilerAction

from stepscope.base.errors import UsageError
from stepscope.recording import Schedule, schedule_for

LONG_ENOUGH = 6
counts = st.integers(LONG_ENOUGH, 100_000)
wishes = st.fixed_dictionaries(
    {},
    optional={
        "active": st.integers(1, 40),
        "repeat": st.integers(1, 40),
        "step_seconds": st.floats(1e-4, 1e3),
    },
)


def spans(schedule: Schedule, step_count: int) -> list[list[int]]:
    """Return the steps of each span that torch would save, asking the schedule step by step."""
    saved: list[list[int]] = []
    current: list[int] = []
    for step in range(step_count):
        action = schedule(step)
        if action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            current.append(step)
        if action == ProfilerAction.RECORD_AND_SAVE:
            saved.append(current)
            current = []
    assert not current, "a span is cut off by the training's end"
    return saved


@given(counts, wishes)
@example(LONG_ENOUGH, {})
@example(LONG_ENOUGH, {"repeat": 5, "active": 40})
def test_every_span_is_saved_before_the_last_step(
    step_count: int, wished: dict[str, float]
) -> None:
    schedule = schedule_for(step_count, **wished)  # type: ignore[arg-type]
    assert schedule.repeat >= 1
    assert schedule.recorded_steps[-1][-1] < step_count - 1
    assert schedule.recorded_steps[0][0] > 0, "the first step is never recorded"


@given(counts)
def test_enough_steps_are_recorded_for_advice_with_confidence(step_count: int) -> None:
    schedule = schedule_for(step_count)
    assert 3 <= schedule.active <= 10
    assert schedule.skip_first + schedule.warmup >= 1


@given(st.integers(LONG_ENOUGH, 3000), wishes)
def test_the_steps_it_names_are_those_torch_would_record(
    step_count: int, wished: dict[str, float]
) -> None:
    schedule = schedule_for(step_count, **wished)  # type: ignore[arg-type]
    assert spans(schedule, step_count) == [list(steps) for steps in schedule.recorded_steps]


@given(st.integers(1, LONG_ENOUGH - 1))
def test_of_a_training_too_short_for_that_what_can_be_is_recorded(step_count: int) -> None:
    schedule = schedule_for(step_count)
    assert len(schedule.recorded_steps) == 1
    assert 1 <= len(schedule.recorded_steps[0]) <= step_count
    assert schedule.recorded_steps[0][-1] <= step_count - 1


@given(counts)
def test_spans_are_spread_evenly(step_count: int) -> None:
    steps = schedule_for(step_count).recorded_steps
    assert len({later[0] - earlier[0] for earlier, later in pairwise(steps)}) <= 1
    if len(steps) > 1:
        free_at_the_end = step_count - steps[-1][-1]
        assert free_at_the_end <= steps[1][0] - steps[0][0] + 1


@given(st.integers(20, 2000), st.integers(2, 100))
def test_no_span_goes_across_an_epochs_end(steps_an_epoch: int, epochs: int) -> None:
    schedule = schedule_for(steps_an_epoch=steps_an_epoch, epochs=epochs)
    for steps in schedule.recorded_steps:
        first = steps[0] - schedule.warmup
        assert first // steps_an_epoch == steps[-1] // steps_an_epoch
        assert steps[-1] < steps_an_epoch * epochs - 1
    assert len(schedule.recorded_steps) == min(epochs, 5)


@pytest.mark.skipif(
    "skip_first_wait" not in inspect.signature(torch.profiler.schedule).parameters,
    reason="this torch's schedule always waits first",
)
@given(
    st.integers(0, 5), st.integers(0, 5), st.integers(1, 4), st.integers(1, 5), st.integers(1, 4)
)
def test_it_is_torchs_schedule_of_the_same_numbers(
    skip_first: int, wait: int, warmup: int, active: int, repeat: int
) -> None:
    numbers = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat}
    ours = Schedule(skip_first=skip_first, **numbers)
    torchs = torch.profiler.schedule(skip_first=skip_first, skip_first_wait=1, **numbers)
    last = ours.recorded_steps[-1][-1]
    assert [ours(step) for step in range(last + 1)] == [torchs(step) for step in range(last + 1)]
    assert all(ours(step) == ProfilerAction.NONE for step in range(last + 1, last + 50))


def test_ten_thousand_steps_are_recorded_five_times_and_soon() -> None:
    assert str(schedule_for(10_000)) == (
        "records steps 52 to 59, 2041 to 2048, 4030 to 4037, 6019 to 6026, 8008 to 8015"
    )


def test_three_epochs_are_each_recorded_at_the_same_place() -> None:
    schedule = schedule_for(steps_an_epoch=500, epochs=3)
    assert str(schedule) == "records steps 27 to 34, 527 to 534, 1027 to 1034"


def test_a_length_in_seconds_is_a_count_of_steps() -> None:
    assert schedule_for(seconds=3600, step_seconds=0.25) == schedule_for(14_400, step_seconds=0.25)


def test_of_slow_steps_few_are_recorded_and_of_fast_ones_more() -> None:
    active = {seconds: schedule_for(1000, step_seconds=seconds).active for seconds in (0.01, 2, 60)}
    assert active == {0.01: 10, 2: 5, 60: 3}


def test_a_training_of_unknown_length_is_recorded_once_near_its_start() -> None:
    assert str(schedule_for()) == "records steps 52 to 59"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"step_count": 0}, "schedule_for(step_count=0): pass a number above 0, or omit it."),
        ({"active": -1}, "schedule_for(active=-1): pass a number above 0, or omit it."),
        ({"epochs": 2}, "schedule_for(epochs=…) also needs steps_an_epoch"),
        ({"seconds": 60}, "schedule_for(seconds=…) also needs step_seconds"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, int], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        schedule_for(**arguments)
    assert str(refused.value).startswith(said)
