"""Whose Python code ran between operators, against looking at every microsecond."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import SHARED_TRACES, rows_of, shared_trace_names, trace_at, trace_of
from stepscope.analyses.core.host_activity import main_thread
from stepscope.analyses.host.function_costs import function_costs
from stepscope.analyses.host.host_call_tree import host_tree
from stepscope.analyses.host.library_detection import library_of
from stepscope.analyses.host.python_time import KINDS, OPERATORS, python_time, time_by_kind
from stepscope.base.errors import MissingDataError
from stepscope.model import intervals

US = 1000


@pytest.mark.parametrize(
    ("frame", "library"),
    [
        ("train.py(7): main", "user code"),
        ("/home/me/models/vit.py(12): forward", "user code"),
        ("<string>(1): __new__", "other library"),
        ("torch/nn/modules/linear.py(130): forward", "torch"),
        ("/opt/env/lib/python3.8/site-packages/torch/optim/sgd.py(9): step", "torch"),
        ("nn.Module: Linear_3", "torch"),
        ("numpy/_core/fromnumeric.py(939): sort", "numpy"),
        ("/usr/lib/python3/dist-packages/PIL/Image.py(1): open", "PIL"),
        ("<built-in method copy of numpy.ndarray object at 0x7f01>", "numpy"),
        ("<built-in method decode of ImagingDecoder object at 0x7f01>", "PIL"),
        ("<built-in method run_backward of torch._C._EngineBase object at 0x7f>", "torch"),
        ("pandas/core/frame.py(3): merge", "pandas"),
        ("triton/runtime/jit.py(3): run", "other library"),
        ("/x/site-packages/transformers/models/vit.py(3): forward", "other library"),
        ("threading.py(1002): run", "other library"),
        ("Python GC", "garbage collection"),
        ("<built-in function collect>", "garbage collection"),
        ("<built-in function len>", None),
    ],
)
def test_a_function_is_of_the_library_that_its_name_tells(frame: str, library: str | None) -> None:
    assert library_of(frame) == library


def test_an_incomplete_last_step_is_left_out() -> None:
    rows: list[list[Any]] = [["python_function", "train.py(7): main", 0, 300]]
    for step, kernels in enumerate((5, 5, 1)):  # the profiler stopped in the third
        rows.append(["user_annotation", f"ProfilerStep#{step}", 100 * step, 100])
        for launch in range(kernels):
            begin, link = 100 * step + 10 * launch, {"correlation": 10 * step + launch + 1}
            rows.append(["cuda_runtime", "cudaLaunchKernel", begin, 5, link])
            rows.append(["kernel", "gemm", begin + 6, 3, link])
    found = python_time(trace_of(rows))
    assert found["step"].unique().tolist() == [0, 1]


def test_steps_are_parted_by_whose_code_ran() -> None:
    trace = trace_of(
        [
            ["python_function", "train.py(7): main", 0, 300],
            ["user_annotation", "ProfilerStep#4", 0, 100],
            ["user_annotation", "ProfilerStep#5", 100, 100],
            ["cpu_op", "aten::mm", 10, 20],
            ["python_function", "numpy/_core/x.py(9): sort", 40, 30],
            ["python_function", "<built-in function len>", 50, 10],
            ["cuda_runtime", "cudaDeviceSynchronize", 80, 10],
            ["cuda_runtime", "cudaLaunchKernel", 15, 5],
            ["python_function", "Python GC", 90, 10],
            ["python_function", "torch/optim/sgd.py(3): step", 150, 30],
            ["cpu_op", "aten::add_", 160, 10],
            ["python_function", "custom.py(2): backward", 162, 5],
        ]
    )
    rows = [(row.step, row.library, row.duration_ns // US) for row in rows_of(python_time(trace))]
    assert rows == [
        (4, "user code", 30),
        (4, "numpy", 30),  # the built-in function is its caller's
        (4, "garbage collection", 10),
        (4, "runtime", 10),
        (5, "user code", 70),
        (5, "torch", 20),
    ]


NAMES = [
    ("python_function", "train.py(7): main"),
    ("python_function", "numpy/a.py(1): f"),
    ("python_function", "<built-in function len>"),
    ("python_function", "Python GC"),
    ("cpu_op", "aten::mm"),
    ("user_annotation", "forward"),
    ("cuda_runtime", "cudaLaunchKernel"),
]
ROWS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 40), st.integers(0, 25)), max_size=12
)
Call = tuple[tuple[str, str], int, int]


def _slow(calls: list[Call], start: int, end: int) -> Counter[str]:
    """Ask of each microsecond which call was begun last, and what is around that."""
    spent: Counter[str] = Counter()
    order = sorted(range(len(calls)), key=lambda row: (calls[row][1], -calls[row][2], row))
    for moment in range(start, end):
        running = [row for row in order if calls[row][1] <= moment < sum(calls[row][1:])]
        chain: list[int] = []
        for row in reversed(running):
            if not chain or sum(calls[row][1:]) >= sum(calls[chain[-1]][1:]):
                chain.append(row)  # what crosses the end of one is not around it
        spent[_kind([calls[row][0] for row in chain])] += 1
    return spent


def _kind(chain: list[tuple[str, str]]) -> str:
    if any(category == "cpu_op" for category, _ in chain):
        return OPERATORS
    if any(category == "cuda_runtime" for category, _ in chain[:1]):
        return "runtime"
    libraries = [library_of(name) for category, name in chain if category == "python_function"]
    known = [library for library in libraries if library]
    return known[0] if known else "not recorded"


@given(ROWS)
def test_every_moment_is_of_the_call_begun_last(calls: list[Call]) -> None:
    # of calls that begin and end at once, Python's are the outer ones, a runtime's the innermost
    ranks = {"python_function": 0, "cpu_op": 1, "user_annotation": 1, "cuda_runtime": 2}
    begun: list[Call] = [(("cpu_op", "first"), 0, 1), (("user_annotation", "ProfilerStep#1"), 1, 9)]
    every = sorted([*begun, *calls], key=lambda call: ranks[call[0][0]])
    trace = trace_of([[*name, start, duration] for name, start, duration in every])
    starts, ends = np.array([2, 20]), np.array([17, 48])
    found = time_by_kind(trace, starts * US, ends * US)
    for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        expected = _slow(every, start, end)
        assert found[row].tolist() == [expected[kind] * US for kind in KINDS]


@pytest.mark.parametrize("name", shared_trace_names("tracelens"))
def test_a_real_traces_libraries_sum_to_the_time_outside_operators(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    try:
        table = python_time(trace)
    except MissingDataError:
        return
    calls = trace.operators[(trace.operators["thread"] == main_thread(trace)).to_numpy()]
    busy = intervals.union(calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy())
    steps = trace.steps if len(trace.steps) else None
    if steps is None:
        return
    outside_ns = steps["duration_ns"].to_numpy() - intervals.covered_ns(
        busy, steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    )
    assert table.groupby("step")["duration_ns"].sum().tolist() == outside_ns.tolist()
    assert np.allclose(table.groupby("step")["outside_share"].sum(), 1)


def test_without_python_functions_the_table_is_withheld() -> None:
    with pytest.raises(MissingDataError, match="no Python function was"):
        python_time(trace_of([["cpu_op", "aten::mm", 0, 10]]))


# --- functions ---------------------------------------------------------------------------------


def test_a_function_costs_its_own_time_what_it_calls_and_what_it_launches() -> None:
    trace = trace_of(
        [
            ["python_function", "train.py(7): main", 0, 200],
            ["python_function", "torch/nn/linear.py(3): forward", 10, 50],
            ["cpu_op", "aten::mm", 20, 30],
            ["cuda_runtime", "cudaLaunchKernel", 25, 5, {"correlation": 1}],
            ["kernel", "gemm", 60, 40, {"correlation": 1}],
            ["python_function", "tree.py(1): walk", 100, 50],
            ["python_function", "tree.py(1): walk", 110, 30],
            ["python_function", "<built-in function len>", 120, 10],
        ]
    )
    assert [tuple(row) for row in rows_of(function_costs(trace))] == [
        (
            *("train.py", 7, "main", "user code", True, 1),
            *(100 * US, 0, 200 * US, 0, 40 * US),
        ),
        (
            *("torch/nn/linear.py", 3, "forward", "torch", False, 1),
            *(20 * US, 30 * US, 50 * US, 40 * US, 40 * US),
        ),
        ("tree.py", 1, "walk", "user code", True, 2, 50 * US, 0, 50 * US, 0, 0),
    ]


def test_a_function_that_an_operator_calls_keeps_its_own_time() -> None:
    trace = trace_of(
        [
            ["python_function", "train.py(7): main", 0, 100],
            ["cpu_op", "MyFunction", 10, 50],
            ["python_function", "mine.py(4): backward", 20, 30],
        ]
    )
    costs = {row.function: row for row in rows_of(function_costs(trace))}
    assert (costs["main"].host_self_ns, costs["main"].host_operators_ns) == (50 * US, 20 * US)
    assert (costs["backward"].host_self_ns, costs["backward"].host_operators_ns) == (30 * US, 0)


def test_stacks_as_text_tell_functions_too() -> None:
    stack = {"Call stack": "model.py(3): forward;train.py(7): main"}
    table = function_costs(trace_of([["Operator", "aten::mm", 0, 50, stack]]))
    assert list(table["host_total_ns"]) == [50 * US, 50 * US]
    assert set(table["call_count"]) == {0}
    operators_ns: dict[Any, Any] = table.set_index("function")["host_operators_ns"].to_dict()
    assert operators_ns == {"forward": 50 * US, "main": 0}


@pytest.mark.parametrize("name", shared_trace_names("tracelens/h100"))
def test_a_functions_total_is_the_time_in_which_any_of_its_calls_runs(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    tree, calls = host_tree(trace), trace.python_calls
    rows = np.arange(tree.host_offset)
    for row in rows_of(function_costs(trace).head(150)):
        full_name = f"{row.file}({row.line}): {row.function}"
        mine = rows[(calls["name"] == full_name).to_numpy()]
        running = [
            intervals.union(tree.start_ns[own], tree.until_ns[own])
            for thread in np.unique(tree.thread[mine])
            for own in [mine[tree.thread[mine] == thread]]
        ]
        assert row.host_total_ns == sum(map(intervals.duration_ns, running))
        assert row.call_count == len(mine)


@pytest.mark.parametrize("name", shared_trace_names())
def test_on_real_traces_a_function_takes_no_longer_than_its_total(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    try:
        table = function_costs(trace)
    except MissingDataError:
        return
    own_ns = table["host_self_ns"] + table["host_operators_ns"]
    assert (own_ns <= table["host_total_ns"]).all()
    assert (table["device_self_ns"] <= table["device_total_ns"]).all()
    assert not table.duplicated(["file", "line", "function"]).any()
