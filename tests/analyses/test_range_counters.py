"""Hardware counters of CUPTI's range profiler, beside the operators that launched the kernels."""

import json
from pathlib import Path

import numpy as np
import pytest

import tracebuild
from loading import trace_of
from peers import hta_peer
from stepscope.analyses.devices.range_counters import (
    FLOPS,
    SASS_OPERATIONS,
    kernel_counters,
    operator_counters,
)
from stepscope.model.trace import Trace

pytestmark = pytest.mark.frames

LAUNCHES: list[tracebuild.Row] = [
    ["cpu_op", "aten::conv2d", 0, 100],
    ["cpu_op", "aten::_convolution", 10, 80],
    ["cuda_runtime", "cudaLaunchKernel", 20, 5, {"correlation": 1}],
    ["cuda_runtime", "cudaLaunchKernel", 40, 5, {"correlation": 2}],
    ["cpu_op", "aten::relu", 200, 100],
    ["cuda_runtime", "cudaLaunchKernel", 220, 5, {"correlation": 3}],
]


def counted(number: int, name: str, **counters: float) -> tracebuild.Row:
    """A range as kineto writes it: the recorded span is divided by the number of ranges."""
    return ["cuda_profiler_range", name, 100 * number, 100, {"pid": "0", "tid": 0, **counters}]


def measured(*rows: tracebuild.Row) -> Trace:
    return trace_of(document=tracebuild.document(rows=[*LAUNCHES, *rows]))


def test_counters_belong_to_the_operators_in_the_order_of_launches() -> None:
    trace = measured(
        counted(0, "void fft<float>(float*)", dram=100.0, sm=7),
        counted(1, "gemm", dram=50.5),
        counted(2, "relu", dram=3),
    )
    rows = kernel_counters(trace)
    columns = ["device", "kernel", "operator", "top_operator", "counter", "value"]
    assert rows[columns].to_numpy().tolist() == [
        [0, "fft", "aten::_convolution", "aten::conv2d", "dram", 100.0],
        [0, "fft", "aten::_convolution", "aten::conv2d", "sm", 7.0],
        [0, "gemm", "aten::_convolution", "aten::conv2d", "dram", 50.5],
        [0, "relu", "aten::relu", "aten::relu", "dram", 3.0],
    ]
    assert operator_counters(trace).to_numpy().tolist() == [
        ["aten::_convolution", "dram", 2, 150.5, 75.25, 100.0],
        ["aten::relu", "dram", 1, 3.0, 3.0, 3.0],
        ["aten::_convolution", "sm", 1, 7.0, 7.0, 7.0],
    ]


def test_flops_are_counted_where_all_instructions_of_cuda_cores_are() -> None:
    instructions = dict.fromkeys(SASS_OPERATIONS, 10)
    some = dict(list(instructions.items())[:4])
    trace = measured(counted(0, "a", **instructions), counted(1, "b", **some), counted(2, "c"))
    rows = kernel_counters(trace)
    flops = rows[rows["counter"] == FLOPS]
    assert flops[["kernel", "value"]].to_numpy().tolist() == [["a", 120.0]]


def test_without_as_many_launches_the_operator_is_unknown() -> None:
    rows = kernel_counters(measured(counted(0, "autoRange", dram=1.0)))
    assert rows[["kernel", "operator", "value"]].to_numpy().tolist() == [["autoRange", None, 1.0]]


def test_a_process_that_is_no_device_number_is_an_unknown_device() -> None:
    row = counted(0, "gemm", dram=1.0)
    odd = [*row[:4], {**row[4], "pid": "9" * 30}]
    assert list(kernel_counters(measured(odd))["device"]) == [-1]


def test_other_traces_have_none() -> None:
    assert len(kernel_counters(measured())) == len(operator_counters(measured())) == 0
    assert np.isnan(operator_counters(measured())["mean"]).sum() == 0


@pytest.mark.peer
@pytest.mark.slow
def test_hta_gives_the_same_counters_to_the_same_operators(tmp_path: Path) -> None:
    counters = [dict.fromkeys(SASS_OPERATIONS, 10 * number) for number in (1, 2, 3)]
    ranges = [counted(at, f"kernel{at}", **of) for at, of in enumerate(counters)]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(tracebuild.document(rows=[*LAUNCHES, *ranges])))
    theirs = {
        (row["name"], row["bottom_level_op"], row["top_level_op"], name, float(row[name]))
        for row in hta_peer.figures((path,))[path]["counters"]
        for name in SASS_OPERATIONS
    }
    rows = kernel_counters(measured(*ranges))
    ours = rows.loc[
        rows["counter"] != FLOPS, ["kernel", "operator", "top_operator", "counter", "value"]
    ]
    assert set(ours.itertuples(index=False, name=None)) == theirs
