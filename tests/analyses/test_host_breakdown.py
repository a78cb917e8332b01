"""Where the main thread's time went: each category once, and that they sum to the step."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from loading import rows_of, trace_of
from stepscope.analyses.host.breakdown import CATEGORIES, host_breakdown
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace

US = 1000
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def step(start: float, duration: float, number: int = 1) -> list[Any]:
    return ["user_annotation", f"ProfilerStep#{number}", start, duration]


ROWS: list[list[Any]] = [
    step(0, 200),
    ["user_annotation", LOADER, 0, 20],
    ["cpu_op", "aten::stack", 5, 10],
    ["cpu_op", "aten::mm", 30, 30],
    ["cuda_runtime", "cudaMalloc", 32, 6, {"correlation": 1}],
    ["cuda_runtime", "cudaLaunchKernel", 40, 5, {"correlation": 2}],
    ["cuda_runtime", "cudaEventRecord", 50, 3, {"correlation": 3}],
    ["kernel", "gemm", 45, 60, {"correlation": 2}],
    ["cuda_runtime", "cudaDeviceSynchronize", 70, 36, {"correlation": 4}],
    ["cpu_op", "AddmmBackward0", 120, 25, {"tid": 200}],
    ["cpu_op", "_compile.compile_inner (dynamo_timed)", 150, 30],
]


def test_every_category_once() -> None:
    table = host_breakdown(trace_of(ROWS))
    whole = table[table["step"].isna()]
    assert dict(zip(whole["category"], whole["host_ns"] / US, strict=True)) == {
        "data_loading": 20,
        "wait": 36,
        "allocator": 6,
        "launch": 5,
        "runtime": 3,
        "compiling": 30,
        "operator": 16,
        "other_thread": 25,
        "python": 59,
    }
    assert whole["step_share"].sum() == pytest.approx(1)


def test_each_step_has_its_own_rows() -> None:
    rows = [step(0, 100, 1), step(100, 50, 2), ["cpu_op", "aten::mm", 90, 30]]
    table = host_breakdown(trace_of(rows))
    some = table[table["host_ns"] > 0]
    assert [(row.step, row.category, row.host_ns / US) for row in rows_of(some)] == [
        ("ProfilerStep#1", "operator", 10),
        ("ProfilerStep#1", "python", 90),
        ("ProfilerStep#2", "operator", 20),
        ("ProfilerStep#2", "python", 30),
        (None, "operator", 30),
        (None, "python", 120),
    ]


def test_without_calls_of_the_host_there_is_none() -> None:
    with pytest.raises(MissingDataError, match="no call of the host"):
        host_breakdown(trace_of([["kernel", "k", 0, 10]]))


CALL = st.tuples(
    st.sampled_from(["aten::a", "cudaLaunchKernel", "cudaMalloc", "cudaDeviceSynchronize", LOADER]),
    st.integers(0, 150),
    st.integers(0, 40),
    st.sampled_from([100, 200]),
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    rows: list[list[Any]] = [["cpu_op", "aten::always", 0, 1], ["kernel", "k", 5, 1]]
    rows.append(["cuda_runtime", "cudaEventRecord", 0, 0, {"tid": 200}])
    for name, start, duration, thread in draw(st.lists(CALL)):
        category = "cpu_op" if name.startswith("aten") else "cuda_runtime"
        category = "user_annotation" if name == LOADER else category
        rows.append([category, name, start, duration, {"tid": thread}])
    if draw(st.booleans()):
        rows += [step(10, 60, 1), step(draw(st.integers(60, 80)), 40, 2)]
    return trace_of(rows)


def _category_at(trace: Trace, moment: int) -> str:
    """What the main thread does at a moment, by a search of everything."""
    calls, runtime = trace.host_calls, trace.runtime_calls
    running = calls[(calls["start_ns"] <= moment) & (calls["end_ns"] > moment)]
    in_runtime = runtime[(runtime["start_ns"] <= moment) & (runtime["end_ns"] > moment)]
    main = trace.steps["thread"].iloc[0] if len(trace.steps) else None
    names = {str(name) for name in in_runtime[in_runtime["thread"] == main]["name"]}
    operators = running[running["is_operator"]]
    holds = {
        "data_loading": LOADER in {str(name) for name in running["name"]},
        "wait": "cudaDeviceSynchronize" in names,
        "allocator": "cudaMalloc" in names,
        "launch": "cudaLaunchKernel" in names,
        "operator": bool((operators["thread"] == main).any()),
        "other_thread": len(operators) > 0,
    }
    return next((name for name in CATEGORIES if holds.get(name)), "python")


@examples(40)
@given(traces())
def test_steps_are_the_sum_of_their_parts(trace: Trace) -> None:
    table = host_breakdown(trace)
    steps = trace.steps
    if not len(steps):
        return
    for name, start, end in zip(steps["name"], steps["start_ns"], steps["end_ns"], strict=True):
        mine = table[table["step"] == str(name)].set_index("category")["host_ns"]
        moments = np.arange(start, end, US)
        slow = dict.fromkeys(CATEGORIES, 0)
        for moment in moments:
            slow[_category_at(trace, int(moment))] += US
        assert mine.sum() == end - start
        assert mine.to_dict() == slow
