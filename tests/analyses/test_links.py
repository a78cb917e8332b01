"""Launch and owner of device work: by correlation, then by containment; by External id for ties."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loading import trace_of
from stepscope.analyses.core.links import enclosing_operator, links, rows_of_keys
from stepscope.model import call_tree
from stepscope.model.frames.spans import spans
from stepscope.model.trace import Trace


def launch(start: int, correlation: int, **more: Any) -> list[Any]:
    return ["cuda_runtime", "cudaLaunchKernel", start, 5, {"correlation": correlation, **more}]


def kernel(start: int, correlation: int, **more: Any) -> list[Any]:
    return ["kernel", "gemm", start, 10, {"correlation": correlation, **more}]


def owners(trace: Trace) -> list[str]:
    """The operator's name of every device event, "" where none is known."""
    names = [*trace.host_calls["name"].astype(str), ""]
    return [names[row] for row in links(trace).owner_of_device_event]


def test_the_innermost_operator_around_the_launch_owns_the_kernel() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::linear", 0, 100],
            ["cpu_op", "aten::addmm", 10, 50],
            launch(20, 1),
            launch(80, 2),
            kernel(200, 1),
            kernel(210, 2),
        ]
    )
    assert owners(trace) == ["aten::addmm", "aten::linear"]
    assert links(trace).call_of_device_event.tolist() == [0, 1]


def test_an_external_id_that_lies_is_not_believed() -> None:
    """In many traces it repeats the correlation, or names an operator that is long over."""
    trace = trace_of(
        [
            ["cpu_op", "aten::relu", 0, 10, {"External id": 7}],
            ["cpu_op", "aten::mm", 20, 30, {"External id": 8}],
            launch(25, 7, **{"External id": 7}),
            kernel(100, 7, **{"External id": 7}),
        ]
    )
    assert owners(trace) == ["aten::mm"]


def test_an_external_id_decides_for_launches_at_the_border_of_two_operators() -> None:
    """In whole microseconds the launch of the first begins where the second does."""
    rows = [
        ["cpu_op", "aten::mm", 0, 10, {"External id": 1}],
        ["cpu_op", "aten::add", 10, 10, {"External id": 2}],
        ["cpu_op", "aten::mul", 30, 10, {"External id": 3}],
        ["cuda_runtime", "cudaLaunchKernel", 10, 0, {"correlation": 7, "External id": 1}],
        ["cuda_runtime", "cudaLaunchKernel", 10, 0, {"correlation": 8, "External id": 2}],
        ["cuda_runtime", "cudaLaunchKernel", 40, 0, {"correlation": 9, "External id": 3}],
        launch(33, 10, **{"External id": 3}),
        *(kernel(100 + number, number) for number in (7, 8, 9, 10)),
    ]
    assert owners(trace_of(rows)) == ["aten::mm", "aten::add", "aten::mul", "aten::mul"]
    lying = [*rows[:-5], launch(33, 10, **{"External id": 1}), *rows[-4:]]
    assert owners(trace_of(lying)) == ["aten::add", "aten::add", "", "aten::mul"]


def test_an_annotation_is_no_owner() -> None:
    trace = trace_of([["user_annotation", "forward", 0, 100], launch(20, 1), kernel(50, 1)])
    assert owners(trace) == [""]
    around = [["cpu_op", "aten::mm", 0, 200], ["user_annotation", "inner", 10, 100]]
    assert owners(trace_of([*around, launch(20, 1), kernel(50, 1)])) == ["aten::mm"]


def test_an_operator_of_another_thread_is_no_owner() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::mm", 0, 100, {"tid": 1}],
            ["cuda_runtime", "cudaLaunchKernel", 20, 5, {"correlation": 1, "tid": 2}],
            kernel(50, 1),
        ]
    )
    assert owners(trace) == [""]


def test_the_driver_launches_too() -> None:
    trace = trace_of(
        [
            ["cpu_op", "triton_poi_fused", 0, 100],
            ["cuda_driver", "cuLaunchKernelEx", 20, 5, {"correlation": 1}],
            kernel(50, 1),
        ]
    )
    assert owners(trace) == ["triton_poi_fused"]


def test_work_without_a_recorded_launch_has_neither() -> None:
    trace = trace_of([["cpu_op", "aten::mm", 0, 100], launch(20, 1), kernel(50, 99)])
    assert links(trace).call_of_device_event.tolist() == [-1]
    assert links(trace).owner_of_device_event.tolist() == [-1]
    without = trace_of([["cpu_op", "aten::mm", 0, 100], ["kernel", "gemm", 50, 10]])
    assert links(without).call_of_device_event.tolist() == [-1]


def test_one_launch_of_a_graph_brings_all_its_kernels() -> None:
    graph = ["cuda_runtime", "cudaGraphLaunch", 20, 5, {"correlation": 3}]
    rows = [["cpu_op", "replay", 0, 100], graph, *(kernel(50 + 20 * n, 3) for n in range(3))]
    assert owners(trace_of(rows)) == ["replay"] * 3


def test_a_launch_that_ends_just_behind_its_operator_still_belongs_to_it() -> None:
    """The two clocks of host and runtime differ by some hundred nanoseconds."""
    trace = trace_of([["cpu_op", "aten::mm", 0, 24], launch(20, 1), kernel(50, 1)])
    assert owners(trace) == ["aten::mm"]


def test_matched_finds_the_first_row_and_no_missing_key() -> None:
    keys = np.array([5, 3, 5, -1])
    assert rows_of_keys(np.array([5, 3, 4, -1]), keys).tolist() == [0, 1, -1, -1]
    assert rows_of_keys(np.array([5]), np.array([], dtype=np.int64)).tolist() == [-1]


SPANS = st.tuples(st.integers(0, 12), st.integers(0, 8), st.integers(1, 2))


@given(st.lists(st.tuples(st.booleans(), SPANS), max_size=12), st.lists(SPANS, max_size=6))
def test_annotations_that_cross_operators_hide_none(
    calls: list[tuple[bool, tuple[int, int, int]]], launches: list[tuple[int, int, int]]
) -> None:
    rows: list[list[Any]] = [
        ["cpu_op" if is_operator else "user_annotation", "call", start, length, {"tid": tid}]
        for is_operator, (start, length, tid) in calls
    ]
    rows += [["cuda_runtime", "launch", s, length, {"tid": tid}] for s, length, tid in launches]
    trace = trace_of([*rows, launch(0, 1)])
    operators = np.flatnonzero(trace.host_calls["is_operator"].to_numpy())
    outer = spans(trace.host_calls.iloc[operators])
    slow = np.append(operators, -1)[call_tree.enclosing(outer, spans(trace.runtime_calls))]
    assert enclosing_operator(trace, trace.runtime_calls).tolist() == slow.tolist()
