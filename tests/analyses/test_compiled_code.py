"""What torch.compile left in a trace: regions, breaks, compilations, graphs, Triton kernels."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from loading import rows_of, trace_at, trace_of
from stepscope.analyses.compiled.compilations import compilation_table
from stepscope.analyses.compiled.compiled_regions import (
    compiled_graph_table,
    compiled_region_table,
    graph_break_table,
)
from stepscope.analyses.compiled.triton_kernels import triton_kernel_table
from stepscope.model.trace import Trace

US = 1000


def region(number: str, start: float, duration: float) -> list[Any]:
    return ["cpu_op", f"Torch-Compiled Region: {number}", start, duration]


def plain_rows(table: pd.DataFrame) -> list[Any]:
    return rows_of(table.astype(object).where(table.notna(), None))


def _kernel(number: int, launch: float, name: str, duration: float, **more: Any) -> list[list[Any]]:
    return [
        ["cuda_driver", "cuLaunchKernel", launch, 1, {"correlation": number}],
        ["kernel", name, launch + 5, duration, {"correlation": number, **more}],
    ]


BROKEN: list[list[Any]] = [
    ["cpu_op", "TorchDynamo Cache Lookup", 0, 2],
    region("0/1", 5, 100),
    ["user_annotation", "## Call CompiledFxGraph faaa ##", 10, 30],
    ["cpu_op", "aten::mm", 12, 20],
    *_kernel(1, 14, "gemm", 7),
    ["cpu_op", "TorchDynamo Cache Lookup", 50, 3],
    region("1/0", 60, 20),
    ["cpu_op", "aten::relu", 62, 10],
    *_kernel(2, 65, "relu", 4),
    region("2/0", 200, 10),
]


def test_regions_are_counted_with_what_they_launch_themselves() -> None:
    table = compiled_region_table(trace_of(BROKEN))
    assert rows_of(table) == [
        # id, frame, compilation, calls, continued, host, python, compiling, kernels, device, …
        ("0/1", 0, 1, 1, 0, 100 * US, 47 * US, 0, 1, 7 * US, 0, 0),
        ("1/0", 1, 0, 1, 1, 20 * US, 10 * US, 0, 1, 4 * US, 0, 0),
        ("2/0", 2, 0, 1, 0, 10 * US, 10 * US, 0, 0, 0, 0, 0),
    ]


def test_a_region_called_from_a_region_is_a_break() -> None:
    assert rows_of(graph_break_table(trace_of(BROKEN))) == [
        ("0/1", "1/0", 1, 20 * US, 3 * US, 47 * US)
    ]


def test_graphs_of_inductor_are_found_by_region_and_in_the_backward_pass() -> None:
    rows = [
        *BROKEN,
        ["cpu_op", "CompiledFunctionBackward", 300, 50],
        ["user_annotation", "## Call CompiledFxGraph fbbb ##", 310, 30],
    ]
    assert plain_rows(compiled_graph_table(trace_of(rows))) == [
        ("faaa", "0/1", False, 1, 30 * US, 1, 7 * US),
        ("fbbb", None, True, 1, 30 * US, 0, 0),
    ]


def test_a_compilation_has_parts_and_an_id_where_torch_tells() -> None:
    def frame(start: float, number: str | None) -> list[list[Any]]:
        told = ["user_annotation", f"build_guards_data: compile_id={number}", start + 71, 1]
        return [
            ["cpu_op", "_compile.compile_inner (dynamo_timed)", start, 100],
            ["cpu_op", "OutputGraph.call_user_compiler (dynamo_timed)", start + 10, 50],
            ["cpu_op", "build_guards (dynamo_timed)", start + 70, 20],
            *([told] if number else []),
        ]

    rows = [
        ["user_annotation", "ProfilerStep#4", 0, 150],
        *frame(10, "3/0"),
        *frame(200, "3/1"),
        *frame(400, None),
    ]
    table = compilation_table(trace_of(rows))
    shown = table[["phase", "compile_id", "is_recompilation", "step", "duration_ns"]]
    inner = "_compile.compile_inner"
    assert plain_rows(shown) == [
        (inner, "3/0", False, "ProfilerStep#4", 100 * US),
        (inner, "3/1", True, None, 100 * US),
        (inner, None, None, None, 100 * US),
    ]
    assert table["backend_ns"].tolist() == [50 * US] * 3
    assert table["guards_ns"].tolist() == [20 * US] * 3
    assert table["tracing_ns"].isna().all()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0/1", (0, 1)), ("12/3_1", (12, 3)), ("!2/4/0", (4, 0)), ("!2", (-1, -1)), ("?", (-1, -1))],
)
def test_compile_ids(text: str, expected: tuple[int, int]) -> None:
    [row] = rows_of(compiled_region_table(trace_of([region(text, 0, 5)])))
    assert (row.frame, row.compilation) == expected


def test_triton_kernels_with_their_configuration() -> None:
    told = {
        "kernel_backend": "triton",
        "kernel_file": "/kernels/a.py",
        "kernel_hash": "a",
        "kernel_kwargs": "XBLOCK=1024",
        "num_warps": 4,
        "num_stages": 1,
        "kernel_num_gb": 0.001,
        "Input Dims": [[64, 64], []],
        "Input type": ["float", "Scalar"],
        "Concrete Inputs": ["", "4096"],
    }
    name = "triton_poi_fused_add_0"
    rows = [
        ["cpu_op", name, 0, 10, told],
        *_kernel(1, 2, name, 20, grid=[4, 1, 1]),
        ["cpu_op", name, 50, 12, told],
        *_kernel(2, 52, name, 30, grid=[4, 1, 1]),
        *_kernel(3, 100, "triton_red_fused_sum_1", 50),
        *_kernel(4, 200, "gemm", 100),
    ]
    assert plain_rows(triton_kernel_table(trace_of(rows))) == [
        (
            *(name, "triton", "/kernels/a.py", "a", "XBLOCK=1024", 4, 1, "[4,1,1]"),
            *("[[64,64],[]]", '["float","Scalar"]', '["","4096"]'),
            *(2, 2, 22 * US, 50 * US, 25 * US, 0.25, 1e6, pytest.approx(1e6 / 25e-6)),
        ),
        (
            *("triton_red_fused_sum_1", *[None] * 10),
            *(0, 1, 0, 50 * US, 50 * US, 0.25, None, None),
        ),
    ]


def test_a_trace_without_torch_compile_has_no_rows() -> None:
    trace = trace_of([["cpu_op", "aten::mm", 0, 5]])
    for table in (
        compiled_region_table,
        graph_break_table,
        compiled_graph_table,
        compilation_table,
        triton_kernel_table,
    ):
        assert not len(table(trace))


# Recorded


def _recorded(folder: Path, backend: str) -> Trace:
    """Two calls of a function with a break, then two with another shape."""
    import torch
    from torch import _dynamo as dynamo
    from torch.profiler import ProfilerActivity, profile

    def broken(values: torch.Tensor) -> torch.Tensor:
        before = torch.sin(values) + 1
        dynamo.graph_break()
        return torch.relu(before) * 2

    dynamo.reset()
    compiled = torch.compile(broken, backend=backend)
    with profile(activities=[ProfilerActivity.CPU]) as recorder:
        for size in (8, 8, 10, 10):
            compiled(torch.ones(size, 8))
    path = folder / "worker.pt.trace.json"
    recorder.export_chrome_trace(str(path))
    dynamo.reset()
    return trace_at(path)


def _shape_of_what_was_recorded(trace: Trace) -> None:
    regions = compiled_region_table(trace)
    found = regions.sort_values("region")[
        ["region", "compilation", "call_count", "continued_count", "compile_count"]
    ]
    assert rows_of(found) == [
        ("0/0", 0, 2, 0, 1),
        ("0/1", 1, 2, 0, 1),
        ("1/0", 0, 2, 2, 1),
        ("1/1", 1, 2, 2, 1),
    ]
    breaks = graph_break_table(trace)
    assert sorted(zip(breaks["region"], breaks["next_region"], breaks["count"], strict=True)) == [
        ("0/0", "1/0", 2),
        ("0/1", "1/1", 2),
    ]
    compiled = compilation_table(trace)
    frames = compiled[compiled["phase"] == "_compile.compile_inner"]
    assert list(zip(frames["compile_id"], frames["is_recompilation"], strict=True)) == [
        ("0/0", False),
        ("1/0", False),
        ("0/1", True),
        ("1/1", True),
    ]
    parts = frames[["tracing_ns", "backend_ns", "guards_ns"]].to_numpy()
    assert (parts > 0).all()
    assert (np.nansum(parts, axis=1) <= frames["duration_ns"].to_numpy()).all()
    first = regions.set_index("region").loc["0/0"]
    inner = regions.set_index("region").loc["1/0"]
    assert first["inner_compile_ns"] == inner["compile_ns"], "the rest is compiled when it is met"


@pytest.mark.recording
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_break_and_a_recompilation_are_found_where_they_were_forced(
    backend: str, tmp_path: Path
) -> None:
    if backend == "inductor" and not shutil.which("g++"):
        pytest.skip("Inductor needs a C++ compiler")
    trace = _recorded(tmp_path, backend)
    _shape_of_what_was_recorded(trace)
    assert compiled_graph_table(trace)["call_count"].sum() == (8 if backend == "inductor" else 0)
