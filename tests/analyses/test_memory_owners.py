"""Memory events belong to the innermost call of their thread, from its start up to its end."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import SHARED_TRACES, rows_of, shared_trace_names, trace_at, trace_of
from stepscope.analyses.memory.owners import (
    callers_of_operators,
    calls_around,
    modules_around,
    operators_around,
)
from stepscope.model import call_tree
from stepscope.model.frames.spans import spans
from stepscope.model.trace import Trace


def _memory(start: float, size: int = 512, **fields: Any) -> list[Any]:
    return ["cpu_instant_event", "[memory]", start, None, {"Bytes": size, **fields}]


def _names(trace: Trace, rows: Any, frame: str = "host_calls") -> list[str | None]:
    names = list(getattr(trace, frame)["name"].astype(object))
    return [names[row] if row >= 0 else None for row in rows]


def test_an_event_belongs_to_the_innermost_call_from_its_start_up_to_its_end() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::conv2d", 10, 90],
            ["cpu_op", "aten::empty", 20, 10],
            *(_memory(time) for time in (9, 10, 20, 29, 30, 99, 100)),
        ]
    )
    conv, empty = "aten::conv2d", "aten::empty"
    assert _names(trace, calls_around(trace)) == [None, conv, empty, empty, conv, conv, None]


def test_another_threads_call_of_that_time_is_none() -> None:
    trace = trace_of(
        [["cpu_op", "aten::mm", 0, 100], _memory(50, tid=2), ["cpu_op", "aten::add", 0, 9]]
    )
    assert _names(trace, calls_around(trace)) == [None]


def test_annotations_are_calls_but_no_operators() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::outer", 0, 100],
            ["user_annotation", "forward", 10, 50],
            ["user_annotation", "block", 20, 30],
            ["cpu_op", "aten::inner", 30, 5],
            _memory(25),
            _memory(31),
        ]
    )
    assert _names(trace, calls_around(trace)) == ["block", "aten::inner"]
    assert _names(trace, operators_around(trace)) == ["aten::outer", "aten::inner"]
    callers = _names(trace, callers_of_operators(trace))
    assert callers == [None, "aten::outer", "aten::outer", "aten::outer"]


def test_the_inner_of_two_calls_that_begin_at_once_has_it_whatever_the_files_order() -> None:
    rows = [["cpu_op", "aten::empty", 0, 10], ["cpu_op", "aten::zeros", 0, 50]]
    for order in (rows, rows[::-1]):
        trace = trace_of([*order, _memory(5), _memory(20)])
        assert _names(trace, calls_around(trace)) == ["aten::empty", "aten::zeros"]


def test_a_module_is_the_innermost_that_runs() -> None:
    trace = trace_of(
        [
            ["python_function", "nn.Module: Net_0", 0, 100],
            ["python_function", "net.py(3): forward", 1, 90],
            ["python_function", "nn.Module: Linear_0", 10, 20],
            _memory(15),
            _memory(50),
            _memory(100),
        ]
    )
    modules = _names(trace, modules_around(trace), "python_calls")
    assert modules == ["nn.Module: Linear_0", "nn.Module: Net_0", None]


def _oracle(trace: Trace) -> list[int]:
    """Of all calls around an event, the one that began last; of those the shortest."""
    calls, memory = trace.host_calls, trace.memory
    found = []
    for event in rows_of(memory):
        around = [
            (call.start_ns, -call.end_ns, row)
            for row, call in enumerate(rows_of(calls))
            if call.thread == event.thread and call.start_ns <= event.start_ns < call.end_ns
        ]
        found.append(max(around)[2] if around else -1)
    return found


SPANS = st.tuples(st.integers(0, 12), st.integers(0, 8), st.integers(1, 2))


@given(st.lists(SPANS, max_size=12, unique=True), st.lists(SPANS, max_size=6))
def test_it_is_the_call_that_began_last_of_those_around(
    calls: list[tuple[int, int, int]], events: list[tuple[int, int, int]]
) -> None:
    rows = [["cpu_op", f"op{n}", s, d, {"tid": tid}] for n, (s, d, tid) in enumerate(calls)]
    trace = trace_of([*rows, *(_memory(s, tid=tid) for s, _, tid in events), _memory(0)])
    assert calls_around(trace).tolist() == _oracle(trace)


def test_calls_nested_deeper_than_the_rounds_are_found_too() -> None:
    rows = [["cpu_op", "op", n, 300 - n, {}] for n in range(100)]
    inner = [["cpu_op", "op", 150, 1, {}]]
    brief = [["cpu_op", "op", 100 + n / 10, 20 - n / 10, {}] for n in range(100)]
    trace = trace_of([*rows, *brief, *inner, _memory(130)])
    assert calls_around(trace).tolist() == [99]


@pytest.mark.parametrize("name", shared_trace_names())
def test_real_traces_agree_with_the_slow_way(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    memory = spans(trace.memory.assign(end_ns=trace.memory["start_ns"]))
    slow = call_tree.enclosing(spans(trace.host_calls), memory)
    np.testing.assert_array_equal(calls_around(trace), slow)
