"""What to record next time, as code that can be pasted."""

import ast
from typing import Any

import pytest

from loading import trace_of
from stepscope.advice import advise_trace
from stepscope.analyses.core.record_next import profile_call, record_next
from stepscope.analyses.health.flags_off import check as flags_off

STEPS = [["user_annotation", f"ProfilerStep#{n}", 100 * n, 100] for n in range(5)]
SHAPES: list[Any] = ["cpu_op", "aten::mm", 0, 10, {"Input Dims": [[1, 2], [2, 1]]}]
STACK: list[Any] = ["python_function", "train.py(1): main", 0, 900]
MEMORY: list[Any] = ["cpu_instant_event", "[memory]", 5, None, {"Bytes": 512, "Device Type": 0}]
KERNEL: list[list[Any]] = [
    ["cuda_runtime", "cudaLaunchKernel", 0, 2, {"correlation": 1}],
    ["kernel", "gemm", 5, 3, {"correlation": 1}],
]


MEASURED = {
    "count": 9,
    "median_ns": 90_000,
    "first_quartile_ns": 80_000,
    "third_quartile_ns": 95_000,
}


def flags(rows: list[list[Any]], unrecorded: dict[str, int] | None = None) -> dict[str, str]:
    """The missing flags and their lines; `unrecorded` as stepscope's recorder writes it."""
    recorder = {"schema": 1, "unrecorded_steps": unrecorded} if unrecorded else {}
    trace = trace_of(rows, stepscope_recorder=recorder)
    return {each.flag: each.code for each in record_next(trace)}


def test_torchs_own_handler_does_not_measure_unrecorded_steps() -> None:
    assert flags([*STEPS, SHAPES, STACK, MEMORY]) == {
        "unrecorded-steps": 'on_trace_ready=stepscope.trace_handler("log/run")'
    }


def test_stepscopes_handler_measures_them_where_the_schedule_waits() -> None:
    assert flags([*STEPS, SHAPES, STACK, MEMORY], {"count": 0}) == {
        "waiting-steps": "schedule=torch.profiler.schedule(wait=10, warmup=1, active=5)"
    }


def test_nothing_is_missing_where_all_was_recorded() -> None:
    assert flags([*STEPS, SHAPES, STACK, MEMORY], MEASURED) == {}


def test_each_missing_flag_has_its_line() -> None:
    assert flags([["cpu_op", "aten::mm", 0, 10]]) == {
        "steps": "schedule=torch.profiler.schedule(wait=10, warmup=1, active=3)",
        "shapes": "record_shapes=True",
        "stacks": "with_stack=True",
        "modules": "with_stack=True",
        "memory": "profile_memory=True",
    }


def test_fewer_than_three_steps_are_too_few() -> None:
    assert flags([*STEPS[:2], SHAPES, STACK, MEMORY], MEASURED) == {
        "more-steps": "schedule=torch.profiler.schedule(wait=10, warmup=1, active=3)"
    }


def test_a_recording_of_the_device_alone_lacks_the_operators() -> None:
    assert flags([KERNEL[1], STACK, MEMORY])["operators"] == (
        "activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]"
    )


def test_a_device_that_was_used_but_not_recorded_is_missing() -> None:
    memory = [*MEMORY[:4], {"Bytes": 512, "Device Type": 1}]
    assert flags([*STEPS, SHAPES, STACK, memory], MEASURED) == {
        "device": "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
    }


def test_the_call_has_what_was_missing_and_keeps_what_there_was() -> None:
    trace = trace_of([*STEPS, *KERNEL, MEMORY], with_flops=1, with_modules=0)
    assert profile_call(trace) == (
        "import stepscope\n"
        "import torch\n"
        "from torch.profiler import ProfilerActivity\n"
        "\n"
        "with torch.profiler.profile(\n"
        "    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],\n"
        "    schedule=torch.profiler.schedule(wait=10, warmup=1, active=5),  # new\n"
        '    on_trace_ready=stepscope.trace_handler("log/run"),  # new\n'
        "    record_shapes=True,\n"
        "    profile_memory=True,\n"
        "    with_stack=True,  # new\n"
        "    with_flops=True,\n"
        ") as prof:\n"
        "    for batch in loader:\n"
        "        train_step(batch)\n"
        "        prof.step()"
    )


def test_the_command_that_recorded_a_trace_gets_options_instead() -> None:
    settings = {"profiler": {"with_stack": True}}
    recorder = {"schema": 1, "command": "stepscope record", "settings": settings}
    trace = trace_of([*STEPS, SHAPES, STACK], stepscope_recorder=recorder)
    assert profile_call(trace) == "stepscope record --with-stack --memory -- python train.py"
    assert {each.flag: each.code for each in record_next(trace)}["memory"] == "--memory"
    [unmeasured] = [item for item in flags_off(trace) if item.kind == "no-memory"]
    assert unmeasured.remedy == "stepscope record --memory -- python train.py"
    without_steps = trace_of([SHAPES, STACK], stepscope_recorder=recorder)
    codes = {each.flag: each.code for each in record_next(without_steps)}
    assert codes["steps"] == "--steps-from dataloader"
    [growth] = [of for of in advise_trace(trace).outcomes if of.rule == "memory-growth"]
    assert growth.remedy == "stepscope record --memory -- python train.py"


@pytest.mark.parametrize(
    ("rows", "metadata", "activities"),
    [
        ([SHAPES], {}, "[ProfilerActivity.CPU]"),
        ([SHAPES], {"deviceProperties": [{"id": 0}]}, "[…CPU, …CUDA]"),
        ([[*MEMORY[:4], {"Bytes": 1, "Device Type": 12}]], {}, "[…CPU, …XPU]"),
        ([["mtia_runtime", "x", 0, 1], ["mtia_ccp_events", "gemm", 1, 2]], {}, "[…CPU, …MTIA]"),
        ([["nova_runtime", "x", 0, 1], KERNEL[1]], {}, "[…CPU, …PrivateUse1]"),
    ],
)
def test_the_call_records_the_device_that_there_is(
    rows: list[list[Any]], metadata: dict[str, Any], activities: str
) -> None:
    call = profile_call(trace_of(rows, **metadata))
    ast.parse(call)
    assert f"activities={activities.replace('…', 'ProfilerActivity.')}," in call


def test_ascends_own_profiler_is_called_by_its_name() -> None:
    rows = [["", "AscendCL@aclnnAdd", 0, 1], ["", "add", 1, 2, {"Task Type": "AI_CORE"}]]
    call = profile_call(trace_of([[None, *row[1:]] for row in rows]))
    ast.parse(call)
    assert call.startswith("import torch_npu\nfrom torch_npu.profiler import ProfilerActivity\n")
    assert "schedule=torch_npu.profiler.schedule(" in call
    assert "activities=[ProfilerActivity.CPU, ProfilerActivity.NPU]," in call
