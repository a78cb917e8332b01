"""The operator table in small cases; `peers/test_key_averages.py` holds it to torch's own."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from loading import SHARED_TRACES, rows_of, shared_trace_names, trace_at, trace_of
from stepscope.analyses.operators.costs import operator_calls, owners_of_device_events
from stepscope.analyses.operators.operator_table import SCHEMAS, Grouping, operator_table
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace

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


def test_a_graph_without_a_recording_is_no_work_of_the_annotation_around_its_launch() -> None:
    trace = _step(
        ["user_annotation", "generate", 0, 50],
        ["cuda_runtime", "cudaGraphLaunch", 10, 5, {"correlation": 1}],
        *(["kernel", f"k{n}", 100 + 10 * n, 10, {"correlation": 1}] for n in range(5)),
    )
    table = operator_table(trace)
    replayed = _row(table, "replayed graph, not attributed")
    assert (replayed.kind, replayed.call_count) == ("replayed", 1)
    assert (replayed.device_self_ns, replayed.host_self_ns) == (50 * US, 0)
    around = _row(table, "generate")
    assert (around.device_self_ns, around.device_total_ns) == (0, 50 * US)


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


def test_operators_all_of_whose_kernels_do_not_tell_have_no_matrix_unit_share() -> None:
    trace = _step(
        ["cpu_op", "aten::addmm", 0, 100],
        ["cuda_runtime", "cudaLaunchKernel", 5, 5, {"correlation": 1}],
        ["cpu_op", "triton_op", 20, 50],
        ["cuda_runtime", "cudaLaunchKernel", 30, 5, {"correlation": 2}],
        ["kernel", "ampere_h1688gemm_128x128_nn", 100, 30, {"correlation": 1}],
        ["kernel", "triton_tem_fused_mm_0", 200, 10, {"correlation": 2}],
    )
    table = operator_table(trace).set_index("name")
    assert np.isnan(table["matrix_unit_self_share"]["triton_op"])
    assert table.loc["aten::addmm", "matrix_unit_self_share"] == 1
    assert table.loc["aten::addmm", "matrix_unit_total_share"] == 0.75  # at least


def test_shares_are_of_the_window_and_statistics_of_calls() -> None:
    trace = _step(*(["cpu_op", "aten::mm", 100 * n, 10 * n] for n in range(1, 6)))
    row = _row(operator_table(trace), "aten::mm")
    assert row.host_self_share == pytest.approx(150 / 1000)
    assert (row.host_mean_ns, row.host_p50_ns, row.host_max_ns) == (30 * US, 30 * US, 50 * US)
    assert row.host_p95_ns == pytest.approx(48 * US)


def test_calls_that_launch_nothing_count_in_the_devices_statistics() -> None:
    launching = [
        row
        for n in (1, 2)
        for row in (
            ["cpu_op", "aten::mm", 100 * n, 20],
            ["cuda_runtime", "cudaLaunchKernel", 100 * n + 5, 5, {"correlation": n}],
            ["kernel", "gemm", 100 * n + 50, 10 * n, {"correlation": n}],
        )
    ]
    trace = _step(*launching, *(["cpu_op", "aten::mm", 400 + 50 * n, 20] for n in range(2)))
    row = _row(operator_table(trace), "aten::mm")
    assert (row.device_mean_ns, row.device_p50_ns) == (7.5 * US, 5 * US)
    assert (row.device_p95_ns, row.device_max_ns) == (pytest.approx(18.5 * US), 20 * US)


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


def _allocated(at: int, size: int, device: int = 0, tid: int = 100) -> list[Any]:
    told = {"Bytes": size, "Device Type": device, "Device Id": 0, "Addr": 1, "tid": tid}
    return ["cpu_instant_event", "[memory]", at, None, told]


MEMORY = ("host_self", "host_total", "device_self", "device_total")


def test_memory_is_of_every_call_in_whose_time_it_falls_on_whatever_thread() -> None:
    trace = trace_of(
        [
            ["user_annotation", "backward", 0, 100],
            ["cpu_op", "aten::mm", 10, 50],
            ["cpu_op", "aten::empty", 20, 10],
            _allocated(25, 512),
            _allocated(27, 2048, device=1),
            _allocated(50, -100),
            _allocated(80, 64, tid=7),  # while the main thread waited
        ]
    )
    memory = {
        row.name: [getattr(row, f"{column}_bytes") for column in MEMORY]
        for row in rows_of(operator_table(trace))
    }
    assert memory == {
        "aten::empty": [512, 512, 2048, 2048],
        "aten::mm": [-100, 412, 0, 2048],
        "backward": [64, 476, 0, 2048],
    }


def test_memory_that_was_not_recorded_is_unknown() -> None:
    row = _row(operator_table(_launching()), "aten::addmm")
    assert np.isnan([row.host_self_bytes, row.device_total_bytes]).all()


NAMES = ("mm", "matmul", "relu")


def test_what_autocast_asks_for_again_is_done_once() -> None:
    # as with_flops has it, both calls of aten::mm count; what the step did is one product
    outer, inner = (
        {"Input Dims": [[2, 3], [3, 5]], "Input type": [of, of]} for of in ("float", "c10::Half")
    )
    trace = _step(
        ["cpu_op", "aten::mm", 0, 100, outer],
        ["cpu_op", "aten::to", 10, 10],
        ["cpu_op", "aten::mm", 30, 50, inner],
    )
    table = operator_table(trace)
    assert (_row(table, "aten::mm").flops, _row(table, "aten::mm").total_flops) == (120, 120)
    assert _row(table, "ProfilerStep*").total_flops == 60


def test_operations_are_an_operators_own_and_with_what_it_calls() -> None:
    shapes = {"Input Dims": [[2, 3], [3, 5]], "Input type": ["float", "c10::Half"]}
    trace = _step(
        ["cpu_op", "aten::matmul", 0, 100, shapes],
        ["cpu_op", "aten::mm", 10, 50, shapes],
        ["cpu_op", "aten::mm", 10, 50, shapes],  # an only child of its name
        ["cpu_op", "aten::relu", 200, 5],
    )
    table = operator_table(trace).set_index("name")
    product, composite, other = (_row(table.reset_index(), f"aten::{name}") for name in NAMES)
    assert (product.flops, product.total_flops) == (60, 60)
    assert product.flops_source == "torch with_flops"
    assert np.isnan(composite.flops)
    assert composite.flops_source is None
    assert composite.total_flops == 60
    assert np.isnan(other.total_flops)
    assert table["data_types"].to_dict() == {
        "aten::matmul": "float32",
        "aten::mm": "float32",
        "aten::relu": None,
        "ProfilerStep*": None,
    }


def _product(at: int, kind: str, kernel: str) -> list[list[Any]]:
    return [
        ["cpu_op", "aten::mm", at, 10, {"Input type": [kind, kind]}],
        ["cuda_runtime", "cudaLaunchKernel", at + 1, 2, {"correlation": at}],
        ["kernel", kernel, at + 100, 5, {"correlation": at}],
    ]


@pytest.mark.parametrize(
    ("kind", "kernel", "fits"),
    [
        ("c10::BFloat16", "ampere_bf16_s16816gemm", 1),
        ("c10::Half", "elementwise", 1),  # it could, whatever ran
        ("float", "ampere_sgemm_32x32", 0),
        ("float", "cutlass_80_tensorop_s1688gemm", 1),  # TF32
        ("double", "ampere_dgemm", 0),
    ],
)
def test_a_type_fits_matrix_units_if_they_take_it(kind: str, kernel: str, fits: int) -> None:
    row = _row(operator_table(_step(*_product(10, kind, kernel))), "aten::mm")
    assert row.is_matrix_unit_eligible
    assert row.matrix_unit_type_share == fits


def test_float32_that_ran_on_no_device_and_types_that_are_not_known_tell_nothing() -> None:
    for told in ({}, {"Input type": ["float"]}, {"Input type": ["GenericList"]}):
        row = _row(operator_table(_step(["cpu_op", "aten::mm", 0, 10, told])), "aten::mm")
        assert np.isnan(row.matrix_unit_type_share)


WRAPPER = "autograd::engine::evaluate_function: "


def _with_backward() -> Trace:
    node = {"Sequence number": 4, "Fwd thread id": 1}
    return trace_of(
        [
            ["python_function", "train.py(7): step", 0, 100],
            ["python_function", "nn.Module: Linear_0", 5, 50],
            ["cpu_op", "aten::mm", 10, 40, {"Sequence number": 4, "Fwd thread id": 0}],
            ["python_function", "autograd/__init__.py(1): backward", 60, 30],
            ["cpu_op", f"{WRAPPER}MmBackward0", 62, 25, node],
            ["cpu_op", "MmBackward0", 65, 15, node],
            ["cpu_op", "aten::mm", 66, 10],
        ]
    )


def test_a_node_and_the_engines_call_around_it_are_one_cost_when_folded() -> None:
    folded = operator_table(_with_backward(), by="node")
    row = _row(folded, "MmBackward0")
    assert (row.call_count, row.host_total_ns, row.host_self_ns) == (1, 25 * US, 15 * US)
    assert not folded["name"].str.startswith(WRAPPER).any()
    plain = operator_table(_with_backward())
    assert plain["host_self_ns"].sum() == folded["host_self_ns"].sum()
    assert _row(plain, "MmBackward0").host_total_ns == 15 * US


def test_a_backward_operator_is_of_the_module_and_the_stack_of_its_forward_one() -> None:
    modules = operator_table(_with_backward(), by="module")
    found = {f"{row.name} {row.module}": row.call_count for row in rows_of(modules)}
    assert found == {
        "aten::mm Linear_0": 2,
        "MmBackward0 Linear_0": 1,
        f"{WRAPPER}MmBackward0 Linear_0": 1,
    }
    stacks = operator_table(_with_backward(), by="stack").set_index("name")
    assert stacks.loc["MmBackward0", "stack"] == "nn.Module: Linear_0;train.py(7): step"
    # the engine's call is not of the pass; torch leaves `backward` itself out of stacks
    assert stacks.loc[f"{WRAPPER}MmBackward0", "stack"] == "train.py(7): step"


def test_the_full_stack_has_every_frame_and_the_short_one_five() -> None:
    frames = [["python_function", f"f{n}", n, 100 - 2 * n] for n in range(8)]
    trace = trace_of([*frames, ["cpu_op", "aten::mm", 20, 5]])
    (full,) = operator_table(trace, by="full_stack")["stack"]
    assert full == "f7;f6;f5;f4;f3;f2;f1;f0"
    (short,) = operator_table(trace, by="stack")["stack"]
    assert short == "f7;f6;f5;f4;f3"


@pytest.mark.parametrize("by", ["stack", "full_stack", "module"])
def test_what_was_not_recorded_is_withheld_with_the_line_that_records_it(by: Grouping) -> None:
    with pytest.raises(MissingDataError) as withheld:
        operator_table(_launching(), by=by)
    assert "with_stack=True" in withheld.value.remedy


SLOW_TRACE = "hta/trace_diff/control/control.json.gz"


@pytest.mark.skipif(not shared_trace_names("hta"), reason="needs the shared traces")
def test_statistics_are_those_of_calls_grouped_one_by_one() -> None:
    trace = trace_at(SHARED_TRACES / SLOW_TRACE)
    calls, costs = trace.host_calls, operator_calls(trace)
    is_call = costs.counted == np.arange(len(calls))
    is_call &= ~calls["name"].str.startswith("ProfilerStep").to_numpy()
    table = operator_table(trace).query("name != 'ProfilerStep*'").set_index(["name", "kind"])
    groups = calls[is_call].groupby(["name", "is_operator"], observed=True)["duration_ns"]
    assert len(table) == groups.ngroups > 200
    for (name, is_operator), durations in groups:
        row = table.loc[(name, "operator" if is_operator else "annotation")]
        figures = row[["call_count", "host_total_ns", "host_mean_ns", "host_max_ns"]].tolist()
        of_calls = durations.to_numpy()
        assert figures == [len(of_calls), of_calls.sum(), of_calls.mean(), of_calls.max()]
        quantiles = row[["host_p50_ns", "host_p95_ns"]].tolist()
        assert quantiles == pytest.approx(np.quantile(of_calls, [0.5, 0.95]).tolist())


@pytest.mark.parametrize("name", shared_trace_names())
def test_self_is_no_more_than_total_and_sums_to_the_whole(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    table = operator_table(trace)
    for side in ("host", "device"):
        assert (table[f"{side}_self_ns"] <= table[f"{side}_total_ns"]).all()
    assert (table["matrix_unit_self_share"].dropna() <= 1).all()
    owned = owners_of_device_events(trace) >= 0
    whole = trace.device_events["duration_ns"].to_numpy()[owned].sum()
    assert table["device_self_ns"].sum() == whole
    for by in ("shape", "node"):
        other = operator_table(trace, by=by)
        for column in ("host_self_ns", "device_self_ns", "flops"):
            assert other[column].sum() == pytest.approx(table[column].sum()), (by, column)
