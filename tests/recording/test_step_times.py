"""The recorder measures the steps that it does not record, and says so in the trace."""

import itertools
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.profiler import ProfilerActivity, profile, schedule

import stepscope
from stepscope.recording import TraceHandler
from stepscope.recording.callback_profiler import CallbackProfiler
from stepscope.recording.step_times import StepTimes, steady_part, summary

pytestmark = [
    pytest.mark.recording,
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]
STEP_MS = 4


def unrecorded(folder: Path) -> list[dict[str, int]]:
    """The figures in each file, by the time it was written."""
    files = sorted(folder.glob("*.pt.trace.json"))
    recorders = [json.loads(file.read_text())["stepscope_recorder"] for file in files]
    return [recorder["unrecorded_steps"] for recorder in recorders]


def train(steps: int, **options: Any) -> float:
    """Run steps of 4 ms; return the longest, in ms: on a busy machine, sleep lasts longer."""
    moments = []
    with profile(activities=[ProfilerActivity.CPU], **options) as profiler:
        for _ in range(steps):
            moments.append(time.perf_counter())
            torch.ones(2).add(1)
            time.sleep(STEP_MS / 1000)
            profiler.step()
    return 1000 * max(after - before for before, after in itertools.pairwise(moments))


def assert_is_step(figures: dict[str, int], longest_ms: float) -> None:
    assert STEP_MS <= figures["median_ns"] / 1e6 <= longest_ms
    assert figures["first_quartile_ns"] <= figures["median_ns"] <= figures["third_quartile_ns"]


def even(step: int) -> Any:
    """A user's own schedule."""
    return schedule(wait=8, warmup=1, active=1, repeat=1)(step)


@pytest.mark.parametrize(
    "steps",
    [
        schedule(wait=8, warmup=1, active=1, repeat=1),
        schedule(skip_first=3, wait=5, warmup=1, active=1, repeat=1),
        stepscope.recording.Schedule(skip_first=8, wait=0, warmup=1, active=1, repeat=1),
        even,
    ],
)
def test_steps_before_the_window_are_measured_without_the_first(
    tmp_path: Path, steps: Callable[[int], Any]
) -> None:
    longest_ms = train(11, schedule=steps, on_trace_ready=stepscope.trace_handler(tmp_path))
    (figures,) = unrecorded(tmp_path)
    assert 4 <= figures["count"] <= 7, "a slow step in the first half may be left out"
    assert_is_step(figures, longest_ms)


def test_with_several_windows_the_steps_between_them_are_measured(tmp_path: Path) -> None:
    handler = stepscope.trace_handler(tmp_path)
    steps = schedule(wait=6, warmup=1, active=1, repeat=2)

    def slow_handler(profiler: profile) -> None:
        time.sleep(0.1)
        handler(profiler)

    longest_ms = train(17, schedule=steps, on_trace_ready=slow_handler)
    first, second = unrecorded(tmp_path)
    assert first == {"count": 0}, "a function that calls the handler hides it from the start"
    assert_is_step(second, longest_ms)


def test_a_schedule_that_records_at_once_leaves_nothing_to_measure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="stepscope.recording"):
        steps = schedule(wait=0, warmup=1, active=1, repeat=2)
        train(5, schedule=steps, on_trace_ready=stepscope.trace_handler(tmp_path))
    assert unrecorded(tmp_path) == [{"count": 0}, {"count": 0}]
    (message,) = caplog.messages
    assert "torch.profiler.schedule(wait=10, …)" in message


def test_the_schedules_numbers_are_recorded_though_it_is_timed(tmp_path: Path) -> None:
    steps = schedule(wait=5, warmup=1, active=1, repeat=1)
    train(8, schedule=steps, on_trace_ready=stepscope.trace_handler(tmp_path))
    (file,) = tmp_path.iterdir()
    settings = json.loads(file.read_text())["stepscope_recorder"]["settings"]
    assert settings["profiler"]["schedule"] == {
        "skip_first": 0, "wait": 5, "warmup": 1, "active": 1, "repeat": 1,
    }  # fmt: skip


def test_profilers_with_another_handler_keep_their_schedule() -> None:
    stepscope.trace_handler("unused")
    steps = schedule(wait=1, warmup=1, active=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=steps) as profiler:
        assert profiler.schedule is steps


def test_a_callback_measures_training_steps_and_no_evaluation(tmp_path: Path) -> None:
    handler = TraceHandler(tmp_path, name="loop", collect=lambda _: {})
    steps = schedule(wait=12, warmup=1, active=1, repeat=1)
    options = {"activities": [ProfilerActivity.CPU]}
    loop = CallbackProfiler(steps, handler, options)
    for step in range(15):
        loop.begin_step()
        time.sleep(STEP_MS / 1000)
        if step == 6:
            loop.interrupted()
            time.sleep(2)  # the evaluation
    loop.ended()
    (figures,) = unrecorded(tmp_path)
    assert figures["count"] <= 10, "12 without the first, and the one before the evaluation"
    assert figures["count"] >= 5
    assert figures["mean_ns"] < 200_000_000, "the evaluation is in no step"


# Which steps count


def test_the_first_step_and_slow_ones_after_it_are_left_out() -> None:
    assert steady_part([900, 500, 10, 300, 10, 11, 10, 9, 10, 10, 11]) == [
        10,
        11,
        10,
        9,
        10,
        10,
        11,
    ]


def test_slow_steps_later_on_belong_to_the_training() -> None:
    assert steady_part([900, 10, 10, 10, 10, 10, 10, 40, 10, 10]) == [10] * 6 + [40] + [10] * 2


def test_steps_that_grow_faster_by_little_all_count() -> None:
    assert steady_part([20, 105, 104, 103, 102, 101, 100]) == [105, 104, 103, 102, 101, 100]


def test_fewer_than_three_steps_are_too_few() -> None:
    assert summary([9, 10, 10]) == {}
    assert summary([9, 10, 10, 10])["count"] == 3


@given(st.lists(st.integers(1, 10**12), max_size=40), st.integers(0, 10**12))
def test_at_least_half_of_the_steps_count_and_the_last_always(
    durations: list[int], backlog: int
) -> None:
    steady = list(steady_part(durations))
    assert len(steady) >= (len(durations) - 1) / 2
    assert durations[len(durations) - len(steady) :] == steady
    figures = summary(durations, backlog)
    if figures:
        assert figures["first_quartile_ns"] <= figures["median_ns"] <= figures["third_quartile_ns"]
        assert figures["mean_ns"] * figures["count"] >= backlog


def test_the_backlog_is_measured_once_at_the_end_of_a_stretch() -> None:
    measured: list[None] = []

    def backlog() -> int:
        measured.append(None)
        return 5_000_000_000

    times = StepTimes(backlog)
    for _ in range(6):
        times.step_started()
        times.step_ended()
    assert not measured
    times.stretch_ended()
    times.stretch_ended()
    assert len(measured) == 1
    assert times.summary["backlog_ns"] == 5_000_000_000
    assert times.summary["mean_ns"] >= 1_000_000_000


def test_a_stretch_says_whether_the_profiler_ran_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StepTimes, "has_profiled", False)
    times = StepTimes(lambda: 0)
    seen = []
    for _ in range(2):
        for _ in range(6):
            times.step_started()
            times.step_ended()
        times.stretch_ended()
        seen.append(times.summary["after_profiler"])
    assert seen == [0, 1]


def test_a_stretch_that_is_too_short_leaves_the_figures_of_the_one_before() -> None:
    times = StepTimes(lambda: 0)
    for _ in range(6):
        times.step_started()
        times.step_ended()
    times.stretch_ended()
    before = times.summary
    times.step_started()
    times.step_ended()
    times.stretch_ended()
    assert times.summary is before
