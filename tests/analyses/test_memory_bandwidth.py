"""Rates of copies over time: a small trace with its whole answer, and a count of every time."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import rows_of, trace_of
from stepscope.analyses.devices.memory_bandwidth import (
    bandwidth_series,
    bandwidth_summary,
    memory_rates,
)

US = 1000
MEGA = 1_000_000
HTOD = "Memcpy HtoD (Pinned -> Device)"
COPIES = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 9), st.integers(1, 99)), max_size=10)


def _copy(start: int, duration: int, size: int, **more: Any) -> list[Any]:
    return ["gpu_memcpy", HTOD, start, duration, {"bytes": size, **more}]


def test_a_rate_rises_where_a_copy_begins_and_falls_where_it_ends() -> None:
    rows = [
        _copy(0, 10, 100),
        _copy(5, 10, 200, stream=8),
        ["gpu_memset", "Memset (Device)", 30, 5, {"bytes": 50}],
        ["gpu_memcpy", HTOD, 50, 5],
        ["kernel", "gemm", 0, 60],
    ]
    series = rows_of(bandwidth_series(trace_of(rows)))
    found = [(row.kind, row.time_ns // US, row.bytes_per_second // MEGA) for row in series]
    assert found == [
        ("HtoD", 0, 10),
        ("HtoD", 5, 30),
        ("HtoD", 10, 20),
        ("HtoD", 15, 0),
        ("set", 30, 10),
        ("set", 35, 0),
    ]
    copies, sets = rows_of(bandwidth_summary(trace_of(rows)))
    assert (copies.transfer_count, copies.unknown_count) == (2, 1)
    assert (copies.active_ns, copies.max_bytes_per_second) == (15 * US, 30 * MEGA)
    assert copies.mean_bytes_per_second == pytest.approx(300 / 15 * MEGA)
    assert copies.changes_mean_bytes_per_second == pytest.approx(20 * MEGA)
    assert sets.mean_bytes_per_second == pytest.approx(10 * MEGA)


def test_what_no_memory_can_do_is_not_known() -> None:
    (row,) = rows_of(bandwidth_summary(trace_of([_copy(1, 1, 10**12)])))
    assert (row.transfer_count, row.unknown_count, row.active_ns) == (0, 1, 0)
    assert np.isnan(row.mean_bytes_per_second)


@given(COPIES)
def test_the_rate_is_the_sum_of_what_runs(copies: list[tuple[int, int, int]]) -> None:
    trace = trace_of([["cpu_op", "aten::copy_", 0, 1], *(_copy(*copy) for copy in copies)])
    series = bandwidth_series(trace)
    for row in rows_of(series):
        at = row.time_ns // US
        running = [
            size / duration for start, duration, size in copies if start <= at < start + duration
        ]
        assert row.bytes_per_second == pytest.approx(sum(running) * MEGA, abs=len(copies))
    changes = memory_rates(trace).changes
    moved = (changes.level * changes.lasts_ns).sum() / 1e9
    expected = sum(size for _, duration, size in copies if duration)
    assert moved == pytest.approx(expected, abs=0.01)


@given(COPIES)
def test_after_the_last_copy_nothing_moves(copies: list[tuple[int, int, int]]) -> None:
    trace = trace_of([["cpu_op", "aten::copy_", 0, 1], *(_copy(*copy) for copy in copies)])
    series = bandwidth_series(trace)
    assert series.groupby("kind")["bytes_per_second"].last().eq(0).all()
    assert (series["bytes_per_second"] >= 0).all()
