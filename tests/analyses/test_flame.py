"""Calls merged by path, against recursion over dictionaries."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import SHARED_TRACES, shared_trace_names, trace_at, trace_of
from stepscope.analyses.core import call_paths
from stepscope.analyses.core.call_paths import merge_calls
from stepscope.analyses.core.links import rows_of_keys
from stepscope.analyses.host.host_call_tree import Flame, HostTree, host_flame, host_tree
from stepscope.analyses.operators.costs import operator_calls
from stepscope.model import call_tree, intervals

# (thread, start, duration, name): few names, so that paths meet again
CALLS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 30), st.integers(0, 15), st.integers(0, 2)),
    max_size=25,
)
Path = tuple[int, ...]


def _path(row: int, parents: list[int], names: list[int]) -> Path:
    return (*(_path(parents[row], parents, names) if parents[row] >= 0 else ()), names[row])


@given(CALLS)
def test_nodes_are_the_distinct_paths_and_their_calls(
    calls: list[tuple[int, int, int, int]],
) -> None:
    thread, start, duration, name = np.array(calls, dtype=np.int64).reshape(-1, 4).T
    nesting = call_tree.nest(thread, start, duration)
    paths = merge_calls(nesting.parent, nesting.depth, name, 3)
    parents, names = paths.parent.tolist(), paths.name.tolist()
    expected: dict[Path, int] = defaultdict(int)
    for row in range(len(calls)):
        expected[_path(row, nesting.parent.tolist(), name.tolist())] += int(nesting.self_ns[row])
    of_node = [_path(node, parents, names) for node in range(len(paths))]
    assert len(set(of_node)) == len(of_node)
    assert dict(zip(of_node, paths.sums(nesting.self_ns).tolist(), strict=True)) == expected
    assert [of_node[node] for node in paths.node.tolist()] == [
        _path(row, nesting.parent.tolist(), name.tolist()) for row in range(len(calls))
    ]
    assert paths.depth.tolist() == [len(path) - 1 for path in of_node]
    assert all(parent < node for node, parent in enumerate(parents))


def test_what_is_nested_too_deep_counts_as_its_caller_at_that_depth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_paths, "MOST_LEVELS", 2)
    parent = np.array([-1, 0, 1, 2, 3])
    paths = merge_calls(parent, np.arange(5), np.arange(5), 5)
    assert paths.node.tolist() == [0, 1, 1, 1, 1]
    assert paths.parent.tolist() == [-1, 0]


def _rows(flame: Flame) -> list[tuple[Any, ...]]:
    """Path, calls, host self and total, device self and total, in us."""
    parents, names = flame.paths.parent.tolist(), flame.paths.name.tolist()
    return [
        (
            " > ".join(flame.names[name] for name in _path(node, parents, names)),
            int(flame.call_count[node]),
            int(flame.host_self_ns[node]) // 1000,
            int(flame.host_total_ns[node]) // 1000,
            int(flame.device_self_ns[node]) // 1000,
            int(flame.device_total_ns[node]) // 1000,
        )
        for node in range(len(flame))
    ]


def test_functions_operators_and_launches_are_one_graph() -> None:
    trace = trace_of(
        [
            ["python_function", "train.py(7): main", 0, 100],
            ["user_annotation", "ProfilerStep#1", 0, 50],
            ["user_annotation", "ProfilerStep#2", 50, 50],
            ["cpu_op", "aten::mm", 10, 20],
            ["cpu_op", "aten::mm", 60, 20],
            ["cuda_runtime", "cudaLaunchKernel", 12, 5, {"correlation": 1}],
            ["cuda_runtime", "cudaLaunchKernel", 62, 5, {"correlation": 2}],
            ["kernel", "gemm", 30, 40, {"correlation": 1}],
            ["kernel", "gemm", 70, 41, {"correlation": 2}],
            ["python_function", "<built-in method copy of ndarray object at 0x7f01>", 31, 2],
            ["python_function", "<built-in method copy of ndarray object at 0x7f02>", 81, 3],
        ]
    )
    main = "train.py(7): main"
    step = f"{main} > ProfilerStep*"
    launch = "cudaLaunchKernel"
    assert sorted(_rows(host_flame(trace))) == [
        (main, 1, 0, 100, 0, 81),
        (step, 2, 55, 100, 0, 81),
        (f"{step} > <built-in method copy of ndarray>", 2, 5, 5, 0, 0),
        (f"{step} > aten::mm", 2, 30, 40, 0, 81),
        (f"{step} > aten::mm > {launch}", 2, 10, 10, 81, 81),
    ]


def test_an_only_child_of_its_callers_name_is_no_other_call() -> None:
    """As torch's `key_averages()` counts, and so the table of operators."""
    trace = trace_of(
        [
            ["cpu_op", "aten::sum", 0, 50],
            ["cpu_op", "aten::sum", 5, 40],
            ["cpu_op", "aten::fill_", 10, 5],
            ["cpu_op", "aten::sum", 60, 30],
            ["cpu_op", "aten::fill_", 62, 5],
        ]
    )
    assert sorted(_rows(host_flame(trace))) == [
        ("aten::sum", 2, 70, 80, 0, 0),
        ("aten::sum > aten::fill_", 2, 10, 10, 0, 0),
    ]


def _busy_ns(tree: HostTree, thread: int) -> int:
    """For how long anything ran on a thread."""
    rows = tree.thread == thread
    start_ns = tree.start_ns[rows]
    return intervals.duration_ns(intervals.union(start_ns, start_ns + tree.duration_ns[rows]))


@pytest.mark.parametrize("name", shared_trace_names())
def test_a_real_traces_graph_loses_no_time(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    tree, graph = host_tree(trace), host_flame(trace)
    counted = operator_calls(trace).counted
    assert graph.call_count.sum() == len(tree) - (counted != np.arange(len(counted))).sum()
    assert graph.host_self_ns.sum() == sum(_busy_ns(tree, code) for code in np.unique(tree.thread))
    assert graph.device_self_ns.sum() == tree.device_ns.sum()
    assert (graph.host_self_ns <= graph.host_total_ns).all()
    top = graph.paths.parent < 0
    assert graph.host_total_ns[top].sum() == graph.host_self_ns.sum()
    assert graph.device_total_ns[top].sum() == graph.device_self_ns.sum()


@pytest.mark.parametrize("name", shared_trace_names("tracelens"))
def test_time_tells_callers_as_the_profilers_ids_do(name: str) -> None:
    calls = trace_at(SHARED_TRACES / name).python_calls
    nesting = call_tree.nest(
        calls["thread"].cat.codes.to_numpy(),
        calls["start_ns"].to_numpy(),
        calls["duration_ns"].to_numpy(),
    )
    by_id = rows_of_keys(calls["python_parent_id"].to_numpy(), calls["python_id"].to_numpy())
    # Generators apart (`tree_iter` of sglang): the id names who made it, time who runs it.
    differ = (by_id >= 0) & (by_id != nesting.parent)
    assert differ.sum() <= 2
    assert ((nesting.parent >= 0) | (by_id < 0)).all()


def test_stacks_that_are_written_as_text_are_above_the_operators_that_have_them() -> None:
    stack = {"Call stack": "model.py(3): forward;train.py(7): main;"}
    trace = trace_of(
        [
            ["Operator", "aten::linear", 0, 50, stack],
            ["Operator", "aten::addmm", 10, 20, {"Call stack": ""}],
            ["Operator", "aten::add", 60, 10, {"Call stack": "train.py(7): main"}],
            ["Operator", "AddBackward0", 80, 10],
        ]
    )
    main, forward = "train.py(7): main", "train.py(7): main > model.py(3): forward"
    assert sorted(_rows(host_flame(trace))) == [
        ("AddBackward0", 1, 10, 10, 0, 0),
        (main, 0, 0, 60, 0, 0),
        (f"{main} > aten::add", 1, 10, 10, 0, 0),
        (forward, 0, 0, 50, 0, 0),
        (f"{forward} > aten::linear", 1, 30, 50, 0, 0),
        (f"{forward} > aten::linear > aten::addmm", 1, 20, 20, 0, 0),
    ]
