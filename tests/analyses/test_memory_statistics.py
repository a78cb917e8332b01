"""What operators allocate and free: self and total, by device."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import rows_of, trace_of
from memorybuild import memory
from stepscope.analyses.memory.operator_memory import SCHEMA, memory_statistics
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace

FIGURES = [column.name for column in SCHEMA[3:]]


def _told(trace: Trace) -> dict[tuple[str, str], Sequence[int]]:
    return {
        (row.device_type, row.operator): [getattr(row, name) for name in FIGURES]
        for row in rows_of(memory_statistics(trace))
    }


def test_self_is_what_happened_in_the_innermost_and_total_in_all_around() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::conv2d", 0, 100],
            ["cpu_op", "aten::empty", 10, 10],
            memory(15, "+512@1"),
            memory(30, "+64@2"),
            memory(40, "-512@1"),
            ["cpu_op", "aten::empty", 200, 10],
            memory(205, "+32@3"),
            ["cpu_op", "aten::relu", 300, 10],
        ]
    )
    #  calls, increase, self, count, self, allocated, self
    assert _told(trace) == {
        ("CUDA", "aten::conv2d"): [1, 64, -448, 2, 1, 576, 64],
        ("CUDA", "aten::empty"): [2, 544, 544, 2, 2, 544, 544],
    }


def test_devices_are_apart() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::to", 0, 10],
            memory(1, "+8@1", type_code=0, device=-1),
            memory(2, "+16@1", type_code=6),
        ]
    )
    assert _told(trace) == {
        ("CPU", "aten::to"): [1, 8, 8, 1, 1, 8, 8],
        ("HIP", "aten::to"): [1, 16, 16, 1, 1, 16, 16],
    }


def test_what_happens_in_an_annotation_is_the_operators_around_it_but_not_its_own() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::outer", 0, 10],
            ["user_annotation", "mine", 2, 5],
            memory(3, "+8@1"),
        ]
    )
    assert _told(trace) == {("CUDA", "aten::outer"): [1, 8, 0, 1, 0, 8, 0]}


def test_another_threads_operator_has_no_part() -> None:
    trace = trace_of([["cpu_op", "aten::mm", 0, 10], memory(3, "+8@1", tid=9)])
    assert _told(trace) == {}


def test_memory_that_was_not_recorded_is_missing() -> None:
    with pytest.raises(MissingDataError, match="no memory was recorded"):
        memory_statistics(trace_of([["cpu_op", "aten::mm", 0, 1]]))


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6),
    st.lists(st.tuples(st.integers(0, 18), st.sampled_from([-8, 8, 16])), max_size=8),
)
def test_sums_are_those_of_a_slow_walk(
    given_calls: list[tuple[int, int]], events: list[tuple[int, int]]
) -> None:
    calls = [(f"op{n}", start, length) for n, (start, length) in enumerate(given_calls)]
    rows: list[Any] = [["cpu_op", name, start, length] for name, start, length in calls]
    rows += [memory(time, f"{size:+d}@{n + 1}") for n, (time, size) in enumerate(events)]
    trace = trace_of([*rows, memory(99, "+0")])
    expected = {
        name: sum(size for time, size in events if size > 0 and start <= time < start + length)
        for name, start, length in calls
    }
    told = {operator: figures[5] for (_, operator), figures in _told(trace).items()}
    assert {name: told.get(name, 0) for name in expected} == expected
    table = memory_statistics(trace)
    around = sum(
        size
        for time, size in events
        if size > 0 and any(start <= time < start + length for _, start, length in calls)
    )
    assert table["self_allocation_bytes"].sum() == around
    assert (table["self_allocation_bytes"] <= table["allocation_bytes"]).all()


def test_an_only_child_of_its_callers_name_is_no_call_of_its_own() -> None:
    trace = trace_of(
        [["cpu_op", "aten::div", 0, 10], ["cpu_op", "aten::div", 1, 5], memory(2, "+8@1")]
    )
    assert _told(trace) == {("CUDA", "aten::div"): [1, 8, 8, 1, 1, 8, 8]}
