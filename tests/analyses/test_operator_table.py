"""The operator table in small cases; `peers/test_key_averages.py` holds it to torch's own."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from loading import rows_of, trace_of
from stepscope.analyses.operator_table import SCHEMAS, Grouping, operator_table
from stepscope.trace import Trace

US = 1000


def _row(table: pd.DataFrame, name: str) -> Any:
    (row,) = rows_of(table[table["name"] == name])
    return row


def _step(*rows: list[Any]) -> Trace:
    return trace_of([["user_annotation", "ProfilerStep#1", 0, 1000], *rows])


def test_steps_are_one_row() -> None:
    trace = trace_of(
        [["user_annotation", f"ProfilerStep#{n}", 100 * n, 100] for n in range(4)]
        + [["cpu_op", "aten::mm", 110, 20]]
    )
    steps = _row(operator_table(trace), "ProfilerStep*")
    assert (steps.kind, steps.call_count) == ("annotation", 4)
    assert (steps.host_total_ns, steps.host_self_ns) == (400 * US, 380 * US)


def test_an_only_child_of_the_same_name_is_no_second_call() -> None:
    trace = _step(
        ["cpu_op", "aten::to", 0, 100],
        ["cpu_op", "aten::to", 10, 80],
        ["cpu_op", "aten::to", 20, 60],
        ["cpu_op", "aten::copy_", 30, 10],
    )
    row = _row(operator_table(trace), "aten::to")
    assert (row.call_count, row.host_total_ns, row.host_self_ns) == (1, 100 * US, 90 * US)


def test_recursion_counts_each_level_as_key_averages_does() -> None:
    trace = _step(
        ["cpu_op", "aten::sum", 0, 100],
        ["cpu_op", "aten::sum", 10, 40],
        ["cpu_op", "aten::empty", 60, 10],
    )
    row = _row(operator_table(trace), "aten::sum")
    assert (row.call_count, row.host_total_ns, row.host_self_ns) == (2, 140 * US, 90 * US)


def test_a_launch_beside_the_child_keeps_the_child_apart() -> None:
    trace = _step(
        ["cpu_op", "aten::sum", 0, 100],
        ["cuda_runtime", "cudaLaunchKernel", 5, 3],
        ["cpu_op", "aten::sum", 10, 40],
    )
    assert _row(operator_table(trace), "aten::sum").call_count == 2


def test_self_time_is_without_runtime_calls_nested_ones_once() -> None:
    trace = _step(
        ["cpu_op", "aten::mm", 0, 100],
        ["cuda_runtime", "cudaLaunchKernel", 10, 30],
        ["cuda_driver", "cuLaunchKernel", 15, 20],
        ["cuda_runtime", "cudaLaunchKernel", 95, 30],  # ends after the operator: 5 are within
    )
    assert _row(operator_table(trace), "aten::mm").host_self_ns == (100 - 30 - 5) * US


def _launching(*more: list[Any]) -> Trace:
    return _step(
        ["user_annotation", "forward", 0, 200],
        ["cpu_op", "aten::linear", 10, 100],
        ["cpu_op", "aten::addmm", 20, 50],
        ["cuda_runtime", "cudaLaunchKernel", 30, 5, {"correlation": 1}],
        ["cuda_runtime", "cudaMemcpyAsync", 80, 5, {"correlation": 2}],
        ["cuda_runtime", "cudaLaunchKernel", 150, 5, {"correlation": 3}],
        ["kernel", "sm90_xmma_gemm_f32", 40, 300, {"correlation": 1}],
        ["gpu_memcpy", "Memcpy DtoD (Device -> Device)", 400, 100, {"correlation": 2}],
        ["kernel", "fill", 600, 7, {"correlation": 3}],
        ["kernel", "launched before the recording", 0, 5, {"correlation": 99}],
        *more,
    )


def test_device_time_is_of_the_innermost_operator_and_of_all_around_it() -> None:
    table = operator_table(_launching()).set_index("name")
    assert table["device_self_ns"].to_dict() == {
        "aten::addmm": 300 * US,
        "aten::linear": 100 * US,
        "forward": 7 * US,  # launched by no operator
        "ProfilerStep*": 0,
    }
    assert table["device_total_ns"].to_dict() == {
        "aten::addmm": 300 * US,
        "aten::linear": 400 * US,
        "forward": 407 * US,
        "ProfilerStep*": 407 * US,
    }


def test_device_self_times_sum_to_what_has_a_known_launch() -> None:
    trace = _launching()
    linked = trace.device_events.query("correlation != 99")["duration_ns"].sum()
    assert operator_table(trace)["device_self_ns"].sum() == linked


def test_a_replayed_graph_belongs_to_its_launch() -> None:
    trace = _step(
        ["cpu_op", "replay", 0, 50],
        ["cuda_runtime", "cudaGraphLaunch", 10, 5, {"correlation": 1}],
        *(["kernel", f"k{n}", 100 + 10 * n, 10, {"correlation": 1}] for n in range(5)),
    )
    assert _row(operator_table(trace), "replay").device_self_ns == 50 * US


def test_matrix_units_are_known_by_kernels_and_their_use_by_time() -> None:
    table = operator_table(_launching()).set_index("name")
    assert table["is_matrix_unit_eligible"].to_dict() == {
        "aten::addmm": True,
        "aten::linear": True,
        "forward": False,
        "ProfilerStep*": False,
    }
    assert table.loc["aten::addmm", "matrix_unit_self_share"] == 1
    assert table.loc["aten::linear", "matrix_unit_self_share"] == 0
    assert table.loc["aten::linear", "matrix_unit_total_share"] == 0.75
    assert np.isnan(table["matrix_unit_self_share"]["ProfilerStep*"])


def test_a_vendor_whose_kernels_do_not_tell_has_no_matrix_unit_share() -> None:
    trace = _step(
        ["cpu_op", "aten::mm", 0, 50],
        ["xyz_runtime", "xyzLaunchKernel", 10, 5, {"correlation": 1}],
        ["kernel", "hmma", 100, 10, {"correlation": 1}],
    )
    assert trace.dialect.matrix_unit_kernel is None
    row = _row(operator_table(trace), "aten::mm")
    assert row.device_self_ns == 10 * US
    assert np.isnan(row.matrix_unit_self_share)


def test_shares_are_of_the_window_and_statistics_of_calls() -> None:
    trace = _step(*(["cpu_op", "aten::mm", 100 * n, 10 * n] for n in range(1, 6)))
    row = _row(operator_table(trace), "aten::mm")
    assert row.host_self_share == pytest.approx(150 / 1000)
    assert (row.host_mean_ns, row.host_p50_ns, row.host_max_ns) == (30 * US, 30 * US, 50 * US)
    assert row.host_p95_ns == pytest.approx(48 * US)


def test_an_annotation_and_an_operator_of_one_name_are_two_rows() -> None:
    trace = _step(["cpu_op", "forward", 0, 10], ["user_annotation", "forward", 20, 10])
    table = operator_table(trace).query("name == 'forward'")
    assert sorted(table["kind"]) == ["annotation", "operator"]


@pytest.mark.parametrize("by", SCHEMAS)
def test_every_column_is_as_its_schema_says(by: Grouping) -> None:
    stack = ["python_function", "nn.Module: Linear_0", 0, 5]
    for trace in (_launching(stack), trace_of([stack, ["kernel", "alone", 0, 5]])):
        table = operator_table(trace, by=by)
        schema = SCHEMAS[by]
        assert list(table.columns) == [column.name for column in schema]
        assert {c: str(t) for c, t in table.dtypes.items()} == {c.name: c.dtype for c in schema}
        assert all(column.meaning.endswith(".") for column in schema)


def test_shapes_that_were_not_recorded_are_their_own_row() -> None:
    trace = _step(
        ["cpu_op", "aten::mm", 0, 10, {"Input Dims": [[2, 2], [2, 2]]}],
        ["cpu_op", "aten::mm", 20, 10, {"Input Dims": [[2, 2], [2, 2]]}],
        ["cpu_op", "aten::mm", 40, 10],
    )
    table = operator_table(trace, by="shape").query("name == 'aten::mm'")
    assert dict(zip(table["input_dims"], table["call_count"], strict=True)) == {
        "[[2,2],[2,2]]": 2,
        None: 1,
    }
