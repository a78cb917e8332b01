"""What operators ran on devices."""

import math
from typing import Any

import numpy as np
import pytest

from loading import SHARED_TRACES, rows_of, shared_trace_names, trace_at, trace_of
from stepscope.analyses.devices.kernel_launches import launches
from stepscope.analyses.operators.operator_kernels import SCHEMA, operator_kernels
from stepscope.analyses.operators.operator_table import operator_table
from stepscope.model.trace import Trace

US = 1000


def _linear() -> Trace:
    """Two products and a copy of one operator; a kernel of an annotation, and one of nobody."""
    return trace_of(
        [
            ["user_annotation", "forward", 0, 200],
            ["cpu_op", "aten::linear", 10, 100],
            ["cpu_op", "aten::addmm", 20, 60],
            ["cuda_runtime", "cudaLaunchKernel", 25, 5, {"correlation": 1}],
            ["cuda_runtime", "cudaLaunchKernel", 35, 5, {"correlation": 2}],
            ["cuda_runtime", "cudaMemcpyAsync", 50, 5, {"correlation": 3}],
            ["cuda_runtime", "cudaLaunchKernel", 150, 5, {"correlation": 4}],
            ["kernel", "void gemm<float>(float*)", 45, 30, {"correlation": 1}],
            ["kernel", "void gemm<float>(float*)", 85, 10, {"correlation": 2}],
            ["gpu_memcpy", "Memcpy DtoD (Device -> Device)", 100, 20, {"correlation": 3}],
            ["kernel", "fill", 160, 5, {"correlation": 4}],
            ["kernel", "alone", 170, 3, {"correlation": 99}],
        ]
    )


def test_each_operator_lists_what_it_launched_itself() -> None:
    rows = [
        (row.operator, row.kernel, row.kind, row.event_count, row.total_ns)
        for row in rows_of(operator_kernels(_linear()))
    ]
    assert rows == [
        ("aten::addmm", "gemm", "kernel", 2, 40 * US),
        ("aten::addmm", "Memcpy DtoD (Device -> Device)", "copy", 1, 20 * US),
        ("forward", "fill", "kernel", 1, 5 * US),
        (None, "alone", "kernel", 1, 3 * US),
    ]


def test_delays_are_from_operator_to_call_and_from_call_to_device() -> None:
    rows = {row.kernel: row for row in rows_of(operator_kernels(_linear()))}
    gemm = rows["gemm"]
    assert gemm.mean_call_delay_ns == (5 + 15) / 2 * US
    assert gemm.mean_launch_delay_ns == (20 + 50) / 2 * US
    assert (gemm.mean_ns, gemm.min_ns, gemm.max_ns) == (20 * US, 10 * US, 30 * US)
    assert gemm.operator_share == pytest.approx(40 / 60)
    assert math.isnan(rows["alone"].mean_call_delay_ns)
    assert math.isnan(rows["alone"].mean_launch_delay_ns)


def test_a_recording_without_a_device_has_no_rows() -> None:
    table = operator_kernels(trace_of([["cpu_op", "aten::mm", 0, 5]]))
    assert {c: str(t) for c, t in table.dtypes.items()} == {c.name: c.dtype for c in SCHEMA}
    assert len(table) == 0


@pytest.mark.parametrize("name", shared_trace_names())
def test_an_operators_kernels_sum_to_its_device_self_time(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    kernels = operator_kernels(trace)
    assert kernels["total_ns"].sum() == trace.device_events["duration_ns"].sum()
    assert kernels["event_count"].sum() == len(trace.device_events)
    by_operator = kernels.dropna(subset="operator").groupby("operator")["total_ns"].sum()
    table = operator_table(trace).groupby("name")["device_self_ns"].sum()
    wanted: Any = table[table > 0]
    if len(launches(trace).replayed):  # a replay's time is its call's here, its operators' there
        assert by_operator.sum() == wanted.sum()
    else:
        assert by_operator[by_operator > 0].to_dict() == wanted.to_dict()
    delays = kernels["mean_call_delay_ns"].to_numpy()
    assert (delays[~np.isnan(delays)] >= 0).all()
