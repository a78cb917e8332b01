"""What the page shows of one operator and of one kernel."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import stepscope
from loading import trace_at, trace_of
from stepscope.analyses.core.occurrences import LOGARITHMIC_FROM, MOST_BINS, histogram
from stepscope.analyses.core.trace_cut import slice_trace
from stepscope.api.endpoint import TimeRangeQuery
from stepscope.api.endpoints.grouped_tables import kernels_table, operators_table
from stepscope.api.endpoints.kernels import OneKernel as Kernel
from stepscope.api.endpoints.kernels import durations_of_kernels, kernel_details
from stepscope.api.endpoints.operators import OneOperator as Operator
from stepscope.api.endpoints.operators import operator_details
from stepscope.api.endpoints.overview import narrowed, overview
from stepscope.api.messages import ServingPhase
from stepscope.api.name_details import (
    CallInstance,
    KernelLaunch,
    RelatedOperator,
    ShapeUse,
    StepUse,
)
from stepscope.base.errors import MissingDataError, UnknownNameError
from stepscope.base.formatting import duration

pytestmark = pytest.mark.frames

SAMPLES = Path(__file__).resolve().parents[1] / "sample_logs"
SMALL, LARGE = {"Input Dims": [[2, 2]]}, {"Input Dims": [[8, 8]]}
SHAPE = {"grid": [4, 1, 1], "block": [128, 1, 1], "registers per thread": 32}
ROWS: Any = (
    ["user_annotation", "ProfilerStep#3", 0, 100],
    ["python_function", "train.py(10): main", 0, 290],
    ["python_function", "model.py(7): forward", 5, 60],
    ["cpu_op", "aten::linear", 10, 30, LARGE],
    ["cpu_op", "aten::mm", 12, 20, LARGE],
    ["cuda_runtime", "cudaLaunchKernel", 15, 5, {"correlation": 1}],
    ["kernel", "void gemm<float>(float*)", 30, 40, {"correlation": 1, **SHAPE}],
    ["cuda_runtime", "cudaMemcpyAsync", 34, 3, {"correlation": 2}],
    ["gpu_memcpy", "Memcpy HtoD", 72, 8, {"correlation": 2}],
    ["user_annotation", "ProfilerStep#4", 100, 100],
    ["cpu_op", "aten::mm", 110, 10, SMALL],
    ["cuda_runtime", "cudaLaunchKernel", 112, 3, {"correlation": 3}],
    ["kernel", "void gemm<float>(float*)", 130, 10, {"correlation": 3, **SHAPE, "stream": 20}],
    ["user_annotation", "ProfilerStep#5", 200, 100],
    ["cpu_op", "aten::add", 210, 10],
    ["cuda_runtime", "cudaLaunchKernel", 212, 3, {"correlation": 4}],
    ["kernel", "add", 220, 10, {"correlation": 4}],
)
"""Times in µs; `linear` calls `mm`, which is called once more by the step itself."""


def test_an_operators_calls_by_step_shape_and_stack() -> None:
    found = operator_details(trace_of(ROWS), Operator(name="aten::mm", kind="operator"))
    assert (found.host.count, found.host.total_ns, found.host.max_ns) == (2, 30_000, 20_000)
    assert (found.host.min_ns, found.host.mean_ns, found.host.p50_ns) == (10_000, 15_000, 15_000)
    assert found.device is not None
    assert (found.device.count, found.device.total_ns) == (2, 50_000)
    assert found.steps == (
        StepUse(number=3, call_count=1, time_ns=20_000, device_ns=40_000),
        StepUse(number=4, call_count=1, time_ns=10_000, device_ns=10_000),
        StepUse(number=5, call_count=0, time_ns=0, device_ns=0),
    )
    assert found.shapes == (
        ShapeUse(
            input_dims="[[8,8]]",
            input_types="",
            call_count=1,
            host_total_ns=20_000,
            device_total_ns=40_000,
        ),
        ShapeUse(
            input_dims="[[2,2]]",
            input_types="",
            call_count=1,
            host_total_ns=10_000,
            device_total_ns=10_000,
        ),
    )
    assert found.shape_count == 2
    assert [
        ([(f.line.path, f.line.line) for f in stack.frames if f.line], stack.time_ns)
        for stack in found.stacks
    ] == [([("model.py", 7), ("train.py", 10)], 20_000), ([("train.py", 10)], 10_000)]
    assert (found.stack_count, found.stacks_missing) == (2, "")


def test_an_operators_relatives_and_longest_calls() -> None:
    trace = trace_of(ROWS)
    found = operator_details(trace, Operator(name="aten::mm", kind="operator"))
    assert found.callers == (
        RelatedOperator(
            name="aten::linear", kind="operator", call_count=1, time_ns=20_000, share=20 / 30
        ),
        RelatedOperator(
            name="ProfilerStep*", kind="annotation", call_count=1, time_ns=10_000, share=10 / 30
        ),
    )
    assert found.callees == ()
    assert found.instances == (
        CallInstance(
            event=4,
            start_ns=12_000,
            duration_ns=20_000,
            device_ns=40_000,
            track="thread 100",
            step=3,
        ),
        CallInstance(
            event=10,
            start_ns=110_000,
            duration_ns=10_000,
            device_ns=10_000,
            track="thread 100",
            step=4,
        ),
    )


def test_what_an_operator_launched_itself_is_told_from_what_calls_within_did() -> None:
    found = operator_details(trace_of(ROWS), Operator(name="aten::linear", kind="operator"))
    assert [(each.name, each.kind, each.total_ns, each.own_ns) for each in found.kernels] == [
        ("gemm", "kernel", 40_000, 0),
        ("Memcpy HtoD", "copy", 8_000, 8_000),
    ]
    assert [each.share for each in found.kernels] == [40 / 48, 8 / 48]
    assert [each.name for each in found.callees] == ["aten::mm"]


def test_a_group_of_a_table_is_those_calls_only() -> None:
    large = Operator(name="aten::mm", kind="operator", group="shape", label="[[8,8]]")
    found = operator_details(trace_of(ROWS), large)
    assert (found.host.count, found.host.total_ns) == (1, 20_000)
    add = Operator(name="aten::add", kind="operator", group="shape", label="")
    assert operator_details(trace_of(ROWS), add).host.count == 1
    stack = Operator(name="aten::mm", kind="operator", group="stack", label="train.py(10): main")
    assert operator_details(trace_of(ROWS), stack).host.total_ns == 10_000


def test_only_the_time_that_is_asked_for_counts() -> None:
    part = slice_trace(trace_of(ROWS), 100_000, 200_000)
    assert operator_details(part, Operator(name="aten::mm", kind="operator")).host.count == 1
    with pytest.raises(UnknownNameError, match="aten::linear"):
        operator_details(part, Operator(name="aten::linear", kind="operator"))
    assert kernel_details(part, Kernel(full_name="void gemm<float>(float*)")).durations.count == 1


def test_stacks_that_were_not_recorded_name_what_records_them() -> None:
    rows = [row for row in ROWS if row[0] != "python_function"]
    found = operator_details(trace_of(rows), Operator(name="aten::mm", kind="operator"))
    assert (found.stacks, found.stacks_missing) == ((), "profile(with_stack=True)")
    grouped = Operator(name="aten::mm", kind="operator", group="stack", label="a.py(1): f")
    with pytest.raises(MissingDataError):
        operator_details(trace_of(rows), grouped)


def test_a_kernels_runs_by_step_launch_stream_and_operator() -> None:
    found = kernel_details(trace_of(ROWS), Kernel(full_name="void gemm<float>(float*)"))
    assert (found.name, found.durations.count, found.durations.total_ns) == (
        "gemm",
        2,
        50_000,
    )
    assert found.steps == (
        StepUse(number=3, call_count=1, time_ns=40_000, device_ns=40_000),
        StepUse(number=4, call_count=1, time_ns=10_000, device_ns=10_000),
        StepUse(number=5, call_count=0, time_ns=0, device_ns=0),
    )
    assert found.launches == (
        KernelLaunch(
            grid="[4,1,1]",
            block="[128,1,1]",
            registers_per_thread=32,
            shared_memory_bytes=None,
            call_count=2,
            total_ns=50_000,
            mean_ns=25_000,
        ),
    )
    assert [(each.device, each.stream, each.total_ns) for each in found.streams] == [
        (0, 7, 40_000),
        (0, 20, 10_000),
    ]
    assert found.operators == (
        RelatedOperator(name="aten::mm", kind="operator", call_count=2, time_ns=50_000, share=1.0),
    )
    assert found.delays is not None
    assert (found.delays.min_ns, found.delays.max_ns) == (10_000, 15_000)
    assert [stack.frames[0].text for stack in found.stacks] == [
        "model.py(7): forward",
        "train.py(10): main",
    ]
    first = found.instances[0]
    assert (first.event, first.track, first.step) == (6, "GPU 0 stream 7", 3)


def test_runs_of_one_launch_or_stream_only() -> None:
    name = "void gemm<float>(float*)"
    trace = trace_of(ROWS)
    assert kernel_details(trace, Kernel(full_name=name, stream=20)).durations.total_ns == 10_000
    assert kernel_details(trace, Kernel(full_name=name, grid="[4,1,1]")).durations.count == 2
    with pytest.raises(UnknownNameError):
        kernel_details(trace, Kernel(full_name=name, operator=""))
    with pytest.raises(UnknownNameError, match="no kernel 'other'"):
        kernel_details(trace, Kernel(full_name="other"))


def _launched(durations_us: list[float]) -> Any:
    """Kernels of these durations, each launched by a call of 4 µs."""
    rows: list[Any] = []
    for number, took in enumerate(durations_us):
        at = 100_000 * number
        rows += [
            ["cuda_runtime", "cudaLaunchKernel", at, 4, {"correlation": number}],
            ["kernel", f"kernel{number}", at + 10, took, {"correlation": number}],
        ]
    return trace_of(rows)


def test_durations_of_kernels_are_counted_by_class_and_compared_with_a_launch() -> None:
    found = durations_of_kernels(_launched([0.5, 1, 1.5, 3, 4, 12_000]), TimeRangeQuery())
    assert (found.kernel_count, found.total_ns, found.launch_ns) == (6, 12_010_000, 4_000)
    assert (found.shorter_count, found.shorter_ns) == (4, 6_000)
    classes = [
        (one.from_ns, one.below_ns, one.kernel_count, one.total_ns)
        for one in found.classes
        if one.kernel_count
    ]
    assert classes == [
        (0, 1_000, 1, 500),
        (1_000, 2_000, 2, 2_500),
        (2_000, 5_000, 2, 7_000),
        (10_000_000, None, 1, 12_000_000),
    ]
    assert len(found.classes) == 12


def test_durations_without_kernels_or_launches() -> None:
    found = durations_of_kernels(trace_of([["cpu_op", "aten::mm", 0, 10]]), TimeRangeQuery())
    assert (found.kernel_count, found.total_ns, found.classes, found.launch_ns) == (0, 0, (), None)
    found = durations_of_kernels(trace_of([["kernel", "k", 0, 5]]), TimeRangeQuery())
    assert (found.kernel_count, found.launch_ns, found.shorter_count) == (1, None, 0)


def _sample(name: str) -> Any:
    return trace_at(min((SAMPLES / name).rglob("*.gz")))


@pytest.mark.parametrize("sample", ["synthetic_item_sync", "masking"])
@pytest.mark.parametrize("group", ["name", "shape"])
def test_details_of_every_row_sum_to_the_row(sample: str, group: str) -> None:
    trace = _sample(sample)
    table = operators_table(trace, group)
    labels = table.values.get("input_dims", [None] * table.row_count)
    for row in range(table.row_count):
        name, kind = table.values["name"][row], table.values["kind"][row]
        chosen = Operator(name=name, kind=kind, group=group, label=labels[row] or "")
        found = operator_details(trace, chosen)
        assert found.host.count == table.values["call_count"][row]
        assert found.host.total_ns == table.values["host_total_ns"][row]
        assert found.host.max_ns == table.values["host_max_ns"][row]
        assert abs(found.host.p95_ns - table.values["host_p95_ns"][row]) <= 1
        device_ns = found.device.total_ns if found.device else 0
        assert device_ns == table.values.get("device_total_ns", [0] * table.row_count)[row]


@pytest.mark.parametrize("group", ["name", "launch", "stream"])
def test_details_of_every_kernel_sum_to_its_row(group: str) -> None:
    trace = _sample("synthetic_item_sync")
    table = kernels_table(trace, group)
    for row in range(table.row_count):
        of_row = {key: values[row] for key, values in table.values.items()}
        asked: dict[str, Any] = {"full_name": of_row["full_name"]}
        if group == "launch":
            asked |= {key: of_row[key] or "" for key in ("operator", "grid", "block")}
        if group == "stream":
            asked["stream"] = int(of_row["streams"])
        chosen = Kernel(**asked)
        found = kernel_details(trace, chosen).durations
        assert (found.count, found.total_ns) == (of_row["call_count"], of_row["total_ns"])
        assert (found.min_ns, found.max_ns) == (of_row["min_ns"], of_row["max_ns"])


def test_a_kernel_of_two_streams_has_a_row_each() -> None:
    table = kernels_table(trace_of(ROWS), "stream")
    rows = zip(table.values["name"], table.values["streams"], table.values["total_ns"], strict=True)
    assert list(rows) == [
        ("gemm", "7", 40_000),
        ("add", "7", 10_000),
        ("gemm", "20", 10_000),
    ]


@pytest.mark.parametrize("group", ["stack", "module"])
def test_operators_by_stack_or_module_sum_to_those_by_name(group: str) -> None:
    rows = [*ROWS, ["python_function", "nn.Module: Linear_0", 8, 50]]
    trace = trace_of(rows)
    table, plain = operators_table(trace, group), operators_table(trace)
    summed: Counter[str] = Counter()
    for name, own_ns in zip(table.values["name"], table.values["host_self_ns"], strict=True):
        summed[name] += own_ns
    assert summed == Counter(
        dict(zip(plain.values["name"], plain.values["host_self_ns"], strict=True))
    )
    wanted = {"stack": "model.py(7): forward;train.py(10): main", "module": "Linear_0"}[group]
    labels = zip(table.values["name"], table.values[group], strict=True)
    assert any(name == "aten::linear" and (label or "").endswith(wanted) for name, label in labels)


@pytest.mark.parametrize("build", [operators_table, kernels_table])
def test_columns_that_are_added_up_are_there(build: Any) -> None:
    table = build(trace_of(ROWS))
    assert table.sums
    assert set(table.sums) <= {column.key for column in table.columns}
    assert json.dumps(table.values)


DURATIONS = st.lists(st.integers(0, 10**12), min_size=1, max_size=200)


@given(durations=DURATIONS)
def test_a_histogram_counts_every_time_once_between_edges_that_ascend(
    durations: list[int],
) -> None:
    times = np.array(durations, dtype=np.int64)
    found = histogram(times)
    edges, counts = found.edges_ns.tolist(), found.counts.tolist()
    assert len(edges) == len(counts) + 1 <= MOST_BINS + 1
    assert all(low < high for low, high in pairwise(edges))
    last = len(counts) - 1
    assert counts == [
        sum(low <= each < high or (at == last and each == high) for each in durations)
        for at, (low, high) in enumerate(pairwise(edges))
    ]
    assert sum(counts) == len(durations)
    assert found.is_logarithmic == (
        max(durations) > LOGARITHMIC_FROM * max(1, min(durations)) and len(set(durations)) > 1
    )


def test_idle_causes_and_gaps_of_the_overview_lead_to_the_timeline() -> None:
    found = overview(trace_of(ROWS))
    gaps = [
        (each.start_ns or 0, each.end_ns or 0, each.event, each.value)
        for each in found.longest_gaps
    ]
    # the device: 30-70 gemm, 72-80 copy, 130-140 gemm, 220-230 add; the window: 0-300
    assert gaps == [
        (140_000, 220_000, 16, 80_000),
        (230_000, 300_000, None, 70_000),
        (80_000, 130_000, 12, 50_000),
        (0, 30_000, 6, 30_000),
        (70_000, 72_000, 8, 2_000),
    ]
    for cause in found.idle:
        assert cause.start_ns is not None
        assert cause.end_ns is not None
        assert cause.gap_count >= 1
        assert any(start <= cause.start_ns < cause.end_ns <= end for start, end, _, _ in gaps)


STEP_SAMPLES = ("synthetic_item_sync/fault", "dataloader/no_workers")


@pytest.mark.parametrize("name", STEP_SAMPLES)
def test_all_steps_together_are_the_overview_of_the_trace(name: str) -> None:
    [trace] = stepscope.load(SAMPLES / name).workers
    whole = overview(trace)
    part = narrowed(trace, whole.steps[0].host_start_ns, whole.steps[-1].host_end_ns)
    assert part.step == structs.replace(whole.step, unrecorded=None)
    assert [cause.id for cause in part.idle] == [cause.id for cause in whole.idle]
    for some, cause in zip(part.idle, whole.idle, strict=True):
        assert some.idle_ns == pytest.approx(cause.idle_ns, abs=2)
    assert [device.busy_share for device in part.devices] == pytest.approx(
        [device.busy_share for device in whole.devices]
    )
    assert part.top_operators == whole.top_operators
    assert part.longest_gaps == whole.longest_gaps


@pytest.mark.parametrize("name", STEP_SAMPLES)
def test_the_overview_of_a_step_has_the_figures_of_its_row(name: str) -> None:
    [trace] = stepscope.load(SAMPLES / name).workers
    whole = overview(trace)
    row = whole.steps[2]
    part = narrowed(trace, row.host_start_ns, row.host_end_ns)
    assert (part.step.count, part.step.mean_ns) == (1, row.duration_ns)
    assert tuple(part.step.breakdown_ns.values()) == row.parts_ns
    assert part.steps == whole.steps
    assert part.verdict.startswith(f"Step {row.number} takes {duration(row.duration_ns)}")
    for device in part.devices:
        idle_ns = sum(cause.idle_ns for cause in part.idle)
        assert device.busy_share == pytest.approx(1 - idle_ns / row.duration_ns, abs=1e-6)
        assert device.notes["memory_peak_bytes"] == "Of the whole trace."


def test_a_time_without_a_whole_step_has_its_own_figures() -> None:
    [trace] = stepscope.load(SAMPLES / STEP_SAMPLES[0]).workers
    row = overview(trace).steps[2]
    part = narrowed(trace, row.start_ns + 1_000_000, row.start_ns + 4_000_000)
    assert (part.step.count, part.step.mean_ns) == (0, 3_000_000)
    assert sum(part.step.breakdown_ns.values()) == 3_000_000
    assert part.verdict.startswith("The selected 3.00 ms contain no whole step")


def test_top_rows_name_what_their_details_are_asked_by() -> None:
    found = overview(trace_of(ROWS))
    assert found.top_kernels[0].full_name == "void gemm<float>(float*)"
    assert {row.kind for row in found.top_operators} == {"operator"}
    trace = trace_of(ROWS)
    asked = Kernel(full_name=found.top_kernels[0].full_name)
    assert kernel_details(trace, asked).durations.total_ns == found.top_kernels[0].value


def test_the_overview_has_the_phases_of_a_serving_engine() -> None:
    trace = trace_of(
        [
            ["user_annotation", "execute_context_1(400)_generation_0(0)", 0, 100],
            ["cuda_runtime", "cudaLaunchKernel", 10, 5, {"correlation": 1}],
            ["kernel", "k", 20, 60, {"correlation": 1}],
            ["user_annotation", "step[DECODE bs=8]", 200, 50],
            ["user_annotation", "step[MIXED bs=3]", 300, 50],
        ]
    )
    prefill, decode, mixed = overview(trace).serving
    assert prefill == ServingPhase(
        phase="prefill",
        source="annotation",
        iteration_count=1,
        request_count=1,
        prompt_token_count=400,
        output_token_count=0,
        wall_ns=100_000,
        wall_share=0.5,
        device_busy_ns=60_000,
        mean_ns=100_000.0,
        time_per_output_token_ns=None,
    )
    assert (decode.phase, decode.output_token_count) == ("decode", 8)
    assert decode.time_per_output_token_ns == 50_000
    assert (mixed.phase, mixed.request_count, mixed.output_token_count) == ("mixed", 3, None)
    assert [phase.phase for phase in narrowed(trace, 150_000, 280_000).serving] == ["decode"]
    assert overview(trace_of(ROWS)).serving == ()
