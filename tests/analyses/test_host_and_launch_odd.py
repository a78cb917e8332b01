"""Whatever a file holds: the tables of the path, idle time, graphs, compiled code and the host."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from loading import columns_of
from stepscope.analyses.idle.critical_path import critical_path
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace, trace_from_columns
from stepscope.tables import Table, find

TABLES = (
    "compilations",
    "compiled-graphs",
    "compiled-regions",
    "critical-path",
    "critical-path-hotspots",
    "critical-path-summary",
    "graph-breaks",
    "graph-launches",
    "graph-nodes",
    "graphs",
    "host-breakdown",
    "idle",
    "idle-by-source-line",
    "idle-by-step",
    "idle-by-stream",
    "synchronization-events",
    "triton-kernels",
)
NUMBERS: st.SearchStrategy[Any] = st.one_of(
    st.integers(-10, 400),
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False, width=32),
    st.sampled_from([None, "12.5", "x", [], 1e300]),
)
IDS: st.SearchStrategy[Any] = st.one_of(
    st.integers(-1, 4), st.sampled_from([2**63 - 1, 2**63, 2**32 - 1, -1.5, "7", None, [1]])
)
KINDS = st.sampled_from(
    [
        ("cpu_op", "aten::mm"),
        ("cpu_op", "Torch-Compiled Region: 0/0"),
        ("cpu_op", "Torch-Compiled Region: 0/"),
        ("cpu_op", "_compile.compile_inner (dynamo_timed)"),
        ("cpu_op", "TorchDynamo Cache Lookup"),
        ("cpu_op", "CompiledFunctionBackward"),
        ("user_annotation", "gc_data: compile_id=999999999999999999999/0"),
        ("user_annotation", "## Call CompiledFxGraph f ##"),
        ("user_annotation", "ProfilerStep#1"),
        ("user_annotation", "ProfilerStep#2"),
        ("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        ("cuda_runtime", "cudaLaunchKernel"),
        ("cuda_runtime", "cudaGraphLaunch"),
        ("cuda_runtime", "cudaDeviceSynchronize"),
        ("cuda_runtime", "cudaMalloc"),
        ("cuda_sync", "Stream Wait Event"),
        ("cuda_sync", "Event Sync"),
        ("cuda_sync", "Stream Sync"),
        ("kernel", "gemm"),
        ("kernel", "triton_poi_fused_0"),
        ("kernel", "ncclDevKernel_AllReduce"),
        ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)"),
        ("python_function", "train.py(1): main"),
        ("kernel", None),
        ("cpu_op", None),
    ]
)
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "correlation": IDS,
        "stream": IDS,
        "device": IDS,
        "graph id": IDS,
        "graph node id": IDS,
        "wait_on_stream": IDS,
        "wait_on_cuda_event_record_corr_id": IDS,
        "kernel_backend": st.sampled_from(["triton", 1, None]),
        "num_warps": IDS,
        "kernel_num_gb": NUMBERS,
        "grid": st.sampled_from([[1, 1, 1], "grid(1,)", None]),
        "Call stack": st.sampled_from(["train.py(1): main", "", 5]),
    },
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    events = []
    for _ in range(draw(st.integers(1, 12))):
        category, name = draw(KINDS)
        events.append(
            {
                "ph": draw(st.sampled_from(["X", "X", "X", "i"])),
                "cat": category,
                "name": name,
                "pid": draw(IDS),
                "tid": draw(IDS),
                "ts": draw(NUMBERS),
                "dur": draw(NUMBERS),
                "args": draw(ARGUMENTS),
            }
        )
    return trace_from_columns(columns_of(json.dumps({"traceEvents": events})), worker="w")


@pytest.mark.slow
@examples(50)
@given(traces())
def test_each_table_is_given_or_withheld(trace: Trace) -> None:
    for name in TABLES:
        table = find(name)
        assert isinstance(table, Table)
        try:
            frame = table.build(trace)
        except MissingDataError:
            continue
        found = {str(column): str(dtype) for column, dtype in frame.dtypes.items()}
        assert found == {column.name: column.dtype for column in table.schema}, name


@pytest.mark.slow
@examples(50)
@given(traces())
def test_the_path_is_as_long_as_the_steps(trace: Trace) -> None:
    steps = step_breakdown(trace)
    assert critical_path(trace).duration_ns.sum() == steps.duration_ns.sum()


@pytest.mark.parametrize("count", [20_000])
def test_as_many_streams_and_threads_as_events_are_no_trap(count: int) -> None:
    rows: list[dict[str, Any]] = [
        {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": n, "ts": n, "dur": 1}
        for n in range(count)
    ]
    for n in range(count):
        more = {"correlation": n, "stream": n, "device": 0}
        place = {"ph": "X", "pid": 1, "tid": n, "ts": n, "dur": 5}
        rows.append({**place, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "args": more})
        rows.append({**place, "cat": "kernel", "name": "k", "ts": n + 9, "args": more})
    trace = trace_from_columns(columns_of(json.dumps({"traceEvents": rows})), worker="w")
    for name in TABLES:
        table = find(name)
        assert isinstance(table, Table)
        table.build(trace)
