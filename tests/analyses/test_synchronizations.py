"""Blocking calls, what asked for them, and what they cost."""

from typing import Any

import pytest

import tracebuild
from loading import trace_of
from stepscope.analyses.core.synchronizations import CAUSES, synchronizations
from stepscope.analyses.idle.sync_cost import sync_cost
from stepscope.model import intervals
from stepscope.model.trace import Trace

STEP = ["user_annotation", "ProfilerStep#1", 0, 1000]
WAIT = "cudaStreamSynchronize"


def causes(trace: Trace) -> list[str]:
    return [CAUSES[cause] for cause in synchronizations(trace).cause]


def wait(start: int = 20, name: str = WAIT, **more: Any) -> list[Any]:
    return ["cuda_runtime", name, start, 10, more]


def scheduled(*actions: dict[str, Any], machine: str = "h100") -> Trace:
    schedule = {"machine": machine, "actions": [{"steps": 3, "body": list(actions)}]}
    return trace_of(document=tracebuild.document(schedule=schedule))


@pytest.mark.parametrize(
    ("operators", "cause"),
    [
        (["aten::item", "aten::_local_scalar_dense"], "item"),
        (["aten::is_nonzero", "aten::item", "aten::_local_scalar_dense"], "item"),
        (["aten::index", "aten::nonzero"], "dynamic"),
        (["aten::masked_select"], "dynamic"),
        (["aten::unique2"], "dynamic"),
        (["aten::repeat_interleave", "aten::item", "aten::_local_scalar_dense"], "dynamic"),
        (["aten::cumsum"], "operator"),
        ([], "explicit"),
    ],
)
def test_a_waits_cause_is_what_stands_around_it(operators: list[str], cause: str) -> None:
    around = [["cpu_op", name, depth, 100 - 2 * depth] for depth, name in enumerate(operators)]
    assert causes(trace_of([STEP, *around, wait()])) == [cause]


@pytest.mark.parametrize(
    ("direction", "cause"),
    [("DtoH (Device -> Pageable)", "d2h"), ("HtoD (Pageable -> Device)", "h2d")],
)
def test_a_wait_behind_a_copy_is_the_copys(direction: str, cause: str) -> None:
    rows = [
        STEP,
        ["cpu_op", "aten::to", 0, 100],
        ["cpu_op", "aten::copy_", 5, 80],
        ["cuda_runtime", "cudaMemcpyAsync", 10, 5, {"correlation": 1}],
        ["gpu_memcpy", f"Memcpy {direction}", 16, 4, {"correlation": 1}],
        wait(30),
    ]
    assert set(causes(trace_of(rows))) == {cause}


@pytest.mark.parametrize(
    "name",
    [
        "cudaStreamSynchronize",
        "cudaDeviceSynchronize",
        "cudaEventSynchronize",
        "cuCtxSynchronize",
        "cudaMemcpy",
        "hipStreamSynchronize",
        "hipMemcpyWithStream",
        "hipMemcpy",
    ],
)
def test_these_calls_wait(name: str) -> None:
    rows = [STEP, wait(name=name), ["kernel", "gemm", 5, 10]]
    assert len(synchronizations(trace_of(rows)).calls) == 1


@pytest.mark.parametrize(
    "name", ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamWaitEvent", "hipMemcpyAsync"]
)
def test_these_calls_do_not(name: str) -> None:
    rows = [STEP, wait(name=name), ["kernel", "gemm", 5, 10]]
    assert len(synchronizations(trace_of(rows)).calls) == 0


@pytest.mark.parametrize(("memory", "count"), [("Pageable", 1), ("Pinned", 0)])
def test_a_copy_to_pageable_memory_waits_though_it_is_called_async(memory: str, count: int) -> None:
    rows = [
        STEP,
        ["cuda_runtime", "cudaMemcpyAsync", 10, 90, {"correlation": 1}],
        ["gpu_memcpy", f"Memcpy DtoH (Device -> {memory})", 50, 4, {"correlation": 1}],
    ]
    assert len(synchronizations(trace_of(rows)).calls) == count


def test_waits_outside_the_steps_do_not_count() -> None:
    """The profiler's own wait stands right behind the last step."""
    rows = [STEP, wait(-50), wait(995), wait(1040)]
    assert len(synchronizations(trace_of(rows)).calls) == 0


@pytest.mark.parametrize("machine", ["h100", "v100-2021", "mi250"])
def test_one_read_is_one_whatever_calls_it_makes(machine: str) -> None:
    trace = scheduled(
        {"op": "aten::mm", "body": [{"kernel": "gemm"}]}, {"item": 4}, machine=machine
    )
    cost = sync_cost(trace, "item")
    assert cost.count == 3, "one a step"


def test_a_blocked_host_loses_nothing_while_the_device_works() -> None:
    """Each step waits for 1,000 us of kernel, and 8 us later the next kernel runs."""
    trace = scheduled(
        {"op": "aten::mm", "us": 0, "body": [{"kernel": "gemm", "us": 1000}]},
        {"sync": "stream", "us": 0},
    )
    cost = sync_cost(trace, "explicit")
    assert cost.count == 3
    assert cost.blocked_ns == 3 * 1_003_000, "from the launch's end to the kernel's"
    assert cost.working_share == pytest.approx(1000 / 1003)
    assert intervals.duration_ns(cost.idle) == 2 * 8_000, "behind the last the step ends"


def test_refilling_ends_with_the_second_launch_and_with_the_step() -> None:
    """Behind the wait 8 us to a kernel of 1 us, then 100 us on the host and 8 to the second."""
    body: list[dict[str, Any]] = [
        {"op": "aten::mm", "us": 0, "body": [{"kernel": "gemm", "us": 1000}]},
        {"sync": "stream", "us": 0},
        {"op": "aten::add", "us": 0, "body": [{"kernel": "add", "us": 1}]},
        {"host": 100},
        {"op": "aten::add", "us": 0, "body": [{"kernel": "add", "us": 1000}]},
    ]
    trace = scheduled(*body)
    cost = sync_cost(trace, "explicit")
    assert intervals.duration_ns(cost.idle) == 3 * 8_000
    # launched 110 us behind the wait; the first kernel ran from 8 to 9, the second from 113 on
    assert intervals.duration_ns(cost.refill) == 3 * (8_000 + 101_000)


def test_no_wait_costs_nothing() -> None:
    cost = sync_cost(trace_of([STEP, ["kernel", "gemm", 5, 10]]), "item")
    assert (cost.count, cost.blocked_ns, cost.working_share) == (0, 0, 0.0)
    assert len(cost.idle) == len(cost.refill) == 0
    without_device = trace_of([STEP, wait()])
    assert len(sync_cost(without_device, "explicit").idle) == 0
