"""The time of steps without the profiler is read as it was measured, or is missing for a reason."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import trace_of
from stepscope.analyses.settings.unrecorded_steps import (
    UnrecordedSteps,
    measured_steps,
    unrecorded_steps,
)
from stepscope.base.errors import MissingDataError
from stepscope.recording.step_times import summary

ROWS: list[Any] = [["cpu_op", "aten::mm", 10, 50]]
MEASURED = {
    "count": 47,
    "median_ns": 98_000_000,
    "first_quartile_ns": 97_000_000,
    "third_quartile_ns": 101_000_000,
    "mean_ns": 99_000_000,
    "backlog_ns": 3_000,
}


def steps_of(figures: object) -> UnrecordedSteps | None:
    recorder = {"schema": 1, "settings": {}, "unrecorded_steps": figures}
    return measured_steps(trace_of(ROWS, stepscope_recorder=recorder))


def test_measured_figures_are_read() -> None:
    assert steps_of(MEASURED) == UnrecordedSteps(
        count=47,
        median_ns=98_000_000,
        first_quartile_ns=97_000_000,
        third_quartile_ns=101_000_000,
        mean_ns=99_000_000,
    )


def test_a_mean_that_was_not_recorded_is_unknown() -> None:
    steps = steps_of({name: value for name, value in MEASURED.items() if name != "mean_ns"})
    assert steps is not None
    assert steps.mean_ns is None


def test_rare_slow_steps_are_in_the_mean_only() -> None:
    steps = steps_of(summary([10, *[10, 10, 10, 10, 60] * 4]))
    assert steps is not None
    assert (steps.median_ns, steps.mean_ns) == (10, 20)


def test_where_the_device_is_behind_the_throughput_counts_instead_of_the_hosts_intervals() -> None:
    behind = summary([90, *[10] * 8], backlog_ns=160)
    assert behind["median_ns"] == 10
    assert steps_of(behind) == UnrecordedSteps(
        count=8, median_ns=30, first_quartile_ns=None, third_quartile_ns=None, mean_ns=30
    )


@pytest.mark.parametrize(
    "figures",
    [
        None,
        [],
        "text",
        {},
        {"count": 0},
        {**MEASURED, "count": 0},
        {**MEASURED, "count": -3},
        {**MEASURED, "median_ns": 0, "first_quartile_ns": 0},
        {**MEASURED, "median_ns": "soon"},
        {**MEASURED, "median_ns": 2**70},
        {**MEASURED, "first_quartile_ns": 99_000_000},
        {**MEASURED, "third_quartile_ns": 97_500_000},
        {name: value for name, value in MEASURED.items() if name != "third_quartile_ns"},
    ],
)
def test_figures_that_cannot_be_are_absent(figures: object) -> None:
    assert steps_of(figures) is None


def test_without_the_recorder_the_remedy_is_the_recorder() -> None:
    with pytest.raises(MissingDataError) as missing:
        unrecorded_steps(trace_of(ROWS))
    assert missing.value.remedy == 'on_trace_ready=stepscope.trace_handler("log/run")'


def test_with_the_recorder_and_too_few_steps_the_remedy_is_a_longer_wait() -> None:
    trace = trace_of(ROWS, stepscope_recorder={"schema": 1, "unrecorded_steps": {"count": 0}})
    with pytest.raises(MissingDataError, match="fewer than 3 steps") as missing:
        unrecorded_steps(trace)
    assert missing.value.remedy == "schedule=torch.profiler.schedule(wait=10, warmup=1, active=3)"


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(MEASURED)), inner)
    ),
    max_leaves=8,
)


@given(json)
def test_no_figures_of_a_file_raise(figures: object) -> None:
    steps = steps_of(figures)
    assert steps is None or steps.median_ns > 0
