"""Steps: their steady state, jitter, outliers and drift."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import rows_of, trace_of
from stepscope.analyses.steps.step_statistics import robust_z, step_statistics, steps_table
from stepscope.model.trace import Trace

US = 1000
VALUES = st.lists(st.integers(0, 1000), min_size=2, max_size=40)


def _trace(durations_us: list[int], kernels: list[list[Any]] | None = None) -> Trace:
    starts = np.cumsum([1, *durations_us]).tolist()
    steps = [
        ["user_annotation", f"ProfilerStep#{number + 10}", start, duration]
        for number, (start, duration) in enumerate(zip(starts, durations_us, strict=False))
    ]
    return trace_of([*steps, *(kernels or [])])


def _duration(trace: Trace) -> Any:
    (row,) = [row for row in rows_of(step_statistics(trace)) if row.measure == "duration"]
    return row


def test_of_five_steps_the_first_and_last_are_left_out() -> None:
    row = _duration(_trace([900, 100, 110, 120, 10]))
    assert (row.step_count, row.median_ns, row.min_ns, row.max_ns) == (
        3,
        110 * US,
        100 * US,
        120 * US,
    )
    assert _duration(_trace([900, 100, 110, 10])).step_count == 4


def test_a_step_that_takes_twice_as_long_is_an_outlier() -> None:
    durations = [100, 101, 99, 100, 102, 200, 98, 100, 101, 100]
    table = steps_table(_trace(durations))
    assert table[table["is_outlier"]]["number"].tolist() == [15]
    assert table["is_steady"].tolist() == [False, *[True] * 8, False]
    row = _duration(_trace(durations))
    assert (row.outlier_count, row.outliers) == (1, "15")
    assert row.mad_ns == US


def test_steps_that_become_longer_drift() -> None:
    row = _duration(_trace([100 + 2 * number for number in range(20)]))
    assert row.trend_ns_per_step == 2 * US
    assert row.trend_share == pytest.approx(2 * 17 / 119)
    assert row.trend_p < 1e-6
    assert _duration(_trace([100, 101] * 10)).trend_p > 0.3


def test_the_devices_part_of_a_step_is_told() -> None:
    kernels = [["kernel", "gemm", 11, 40], ["kernel", "gemm", 31, 40, {"device": 1}]]
    (step,) = rows_of(steps_table(_trace([100], kernels)))
    assert (step.device_busy_ns, step.device_busy_share) == (60 * US, 0.6)
    (alone,) = rows_of(steps_table(_trace([100])))
    assert np.isnan(alone.device_busy_ns)
    assert np.isnan(alone.device_busy_share)
    assert "device_busy" not in set(step_statistics(_trace([100]))["measure"])
    assert np.isnan(alone.robust_z)


def test_without_steps_there_are_no_rows() -> None:
    trace = trace_of([["kernel", "gemm", 1, 5]])
    assert steps_table(trace).empty
    assert step_statistics(trace).empty


@given(VALUES, st.integers(1, 9), st.integers(-500, 500))
def test_scores_do_not_know_units_and_origins(values: list[int], unit: int, origin: int) -> None:
    plain, all_of_them = np.array(values), np.ones(len(values), dtype=bool)
    scored = robust_z(plain, all_of_them)
    assert robust_z(plain * unit + origin, all_of_them) == pytest.approx(scored)


def test_where_most_steps_are_equal_the_odd_one_is_found_and_equal_steps_are_none() -> None:
    values = np.array([100] * 20 + [200])
    assert robust_z(values, np.ones(21, dtype=bool))[-1] > 3.5
    assert (robust_z(values[:20], np.ones(20, dtype=bool)) == 0).all()


@given(st.lists(st.integers(1, 90), min_size=1, max_size=9))
def test_the_parts_means_sum_to_the_steps(durations: list[int]) -> None:
    table = step_statistics(_trace(durations)).set_index("measure")["mean_ns"]
    parts = table.drop("duration")
    assert parts.sum() == pytest.approx(table["duration"])
