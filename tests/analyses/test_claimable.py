"""When a device does some of its work and nothing else."""

import numpy as np

from loading import trace_of
from stepscope.analyses.devices.gpu_bound import exclusive_device_time


def times(rows: list[list[object]], chosen: list[int]) -> list[list[int]]:
    found: list[list[int]] = exclusive_device_time(
        trace_of(rows), np.array(chosen, dtype=np.int64)
    ).tolist()
    return found


def test_what_runs_beside_other_work_is_not_alone() -> None:
    rows: list[list[object]] = [
        ["kernel", "a", 0, 10, {"correlation": 1}],
        ["kernel", "b", 6, 10, {"correlation": 2, "stream": 9}],
        ["kernel", "c", 20, 5, {"correlation": 3}],
    ]
    assert times(rows, [0]) == [[0, 6_000]]
    assert times(rows, [0, 1]) == [[0, 16_000]]
    assert times(rows, [2]) == [[20_000, 25_000]]
    assert times(rows, []) == []


def test_a_long_piece_of_work_covers_all_that_begin_within_it() -> None:
    rows: list[list[object]] = [
        ["kernel", "long", 0, 100, {"correlation": 1}],
        ["kernel", "first", 10, 5, {"correlation": 2, "stream": 9}],
        ["kernel", "second", 50, 60, {"correlation": 3, "stream": 9}],
    ]
    assert times(rows, [2]) == [[100_000, 110_000]]
    assert times(rows, [0]) == [[0, 10_000], [15_000, 50_000]]


def test_work_of_another_device_does_not_count() -> None:
    rows: list[list[object]] = [
        ["kernel", "main", 0, 100, {"correlation": 1}],
        ["kernel", "other", 0, 10, {"correlation": 2, "device": 1}],
    ]
    assert times(rows, [0]) == [[0, 100_000]]
    assert times(rows, [1]) == []


def test_without_a_device_nothing_is_claimed() -> None:
    assert times([["cpu_op", "aten::mm", 0, 1]], [0]) == []
