"""Events named for people, and the line of the user's that led to them."""

from typing import Any

import pytest

from loading import trace_of
from stepscope.analyses.core import event_references
from stepscope.analyses.core.host_activity import NOTHING, activity_during, call_during, main_thread
from stepscope.base.findings import EventReference

US = 1000


def frame(name: str, start: int, duration: int, **more: Any) -> list[Any]:
    return ["python_function", name, start, duration, more]


# Whose code a frame is


@pytest.mark.parametrize(
    "name",
    [
        "train.py(42): forward",
        "./src/model.py(1): __init__",
        "/home/someone/project/train.py(3): main",
        "vllm/model_executor/layers/linear.py(1388): forward",
        "C:\\work\\train.py(7): step",
    ],
)
def test_these_frames_are_the_users(name: str) -> None:
    assert event_references.is_user_code(name)


@pytest.mark.parametrize(
    "name",
    [
        "<built-in method acquire of _thread.lock object>",
        "<frozen importlib._bootstrap>(100): _load",
        "<string>(1): <module>",
        "nn.Module: Linear_0",
        "torch/nn/modules/module.py(1736): _wrapped_call_impl",
        "/opt/venv/lib/python3.11/site-packages/numpy/core.py(2): f",
        "/usr/lib/python3/dist-packages/yaml/__init__.py(5): load",
        "/opt/conda/lib/python3.10/threading.py(300): wait",
        "contextlib.py(79): inner",
        "multiprocessing/connection.py(11): poll",
        "Python GC",
    ],
)
def test_these_frames_are_not(name: str) -> None:
    assert not event_references.is_user_code(name)


# Source lines


def test_the_innermost_frame_of_the_users_around_a_call_is_its_line() -> None:
    trace = trace_of(
        [
            frame("train.py(1): main", 0, 1000),
            frame("train.py(20): step", 100, 500),
            frame("torch/nn/functional.py(9): linear", 150, 300),
            frame("other.py(5): worker", 0, 1000, tid=7),
            ["cpu_op", "aten::mm", 200, 50],
            ["cpu_op", "aten::mm", 700, 50],
        ]
    )
    assert event_references.line_of_host_call(trace, 0) == "train.py(20): step"
    assert event_references.line_of_host_call(trace, 1) == "train.py(1): main"
    assert event_references.line_of_host_call(trace, -1) == ""


def test_a_stack_of_2021_is_read_from_its_innermost_frame() -> None:
    stack = "torch/nn/functional.py(1753): linear;./model.py(12): forward;train.py(40): <module>"
    trace = trace_of([["Operator", "aten::mm", 0, 10, {"Call stack": stack}]])
    assert event_references.line_of_host_call(trace, 0) == "./model.py(12): forward"
    foreign = trace_of([["Operator", "aten::mm", 0, 10, {"Call stack": "torch/a.py(1): b"}]])
    assert event_references.line_of_host_call(foreign, 0) == ""


def test_without_stacks_no_line_is_known() -> None:
    assert event_references.line_of_host_call(trace_of([["cpu_op", "aten::mm", 0, 10]]), 0) == ""


# What the host was at


def during(*rows: list[Any], start: int = 100, end: int = 200) -> str:
    """What the host did from 100 to 200 us."""
    step = ["user_annotation", "ProfilerStep#1", 0, 1000]
    return activity_during(trace_of([step, *rows]), start * US, end * US)


def test_the_users_frame_that_fills_a_time_names_it() -> None:
    loop = frame("train.py(1): main", 0, 1000)
    augment = frame("train.py(41): augment", 95, 110)
    inner = frame("train.py(50): noise", 110, 80)
    assert during(loop, augment, inner) == "train.py(41): augment"
    assert during(loop) == NOTHING, "the loop itself says nothing"
    assert during(loop, frame("train.py(60): brief", 100, 49)) == NOTHING


def test_else_the_operator_or_range_that_covers_most_of_it() -> None:
    assert during(["cpu_op", "aten::topk", 90, 120]) == "aten::topk"
    assert during(["user_annotation", "## data ##", 50, 600]) == "## data ##"
    assert during(["user_annotation", "x", 50, 600], ["cpu_op", "y", 90, 120]) == "y"
    assert during(["cpu_op", "aten::topk", 100, 49]) == NOTHING
    assert during(["cpu_op", "aten::topk", 90, 120, {"tid": 7}]) == "aten::topk", "another thread"
    assert during() == NOTHING, "the step itself says nothing"


def test_a_runtime_call_is_named_with_its_caller() -> None:
    call = ["cuda_runtime", "cudaFree", 100, 90]
    assert during(call) == "cudaFree"
    assert during(call, ["cpu_op", "aten::conv2d", 90, 120]) == "cudaFree, called from aten::conv2d"
    trace = trace_of([["user_annotation", "ProfilerStep#1", 0, 1000], call])
    assert call_during(trace, 100 * US, 200 * US) == "cudaFree"
    assert call_during(trace, 300 * US, 400 * US) == ""


def test_the_main_thread_is_the_steps_else_the_busiest() -> None:
    step = ["user_annotation", "ProfilerStep#1", 0, 1000, {"tid": 1}]
    ops = [["cpu_op", "aten::mm", n * 10, 5, {"tid": 2}] for n in range(3)]
    assert main_thread(trace_of([step, *ops])).endswith("/1")
    assert main_thread(trace_of([["cpu_op", "aten::mm", 0, 5, {"tid": 1}], *ops])).endswith("/2")
    assert main_thread(trace_of([["cuda_runtime", "cudaFree", 0, 5, {"tid": 3}]])).endswith("/3")
    assert main_thread(trace_of([["kernel", "gemm", 0, 5]])) == ""


# References


def test_references_say_what_where_and_when() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::mm", 0, 10, {"tid": 4711}],
            ["cuda_runtime", "cudaLaunchKernel", 2, 3, {"correlation": 1, "tid": 4711}],
            ["kernel", "gemm", 20, 30, {"correlation": 1, "device": 2, "stream": 9}],
        ]
    )
    assert event_references.host_call(trace, 0) == EventReference(
        name="aten::mm", track="thread 4711", start_ns=0, duration_ns=10 * US, event=0
    )
    assert event_references.runtime_call(trace, 0, detail="why") == EventReference(
        name="cudaLaunchKernel",
        track="thread 4711",
        start_ns=2 * US,
        duration_ns=3 * US,
        detail="why",
        event=1,
    )
    assert event_references.device_event(trace, 0) == EventReference(
        name="gemm", track="GPU 2 stream 9", start_ns=20 * US, duration_ns=30 * US, event=2
    )


@pytest.mark.parametrize(
    ("name", "is_users"),
    [
        ("train.py(42): forward", True),
        ("models/transformers.py(3): forward", True),
        ("transformers/models/llama.py(3): forward", False),
        ("diffusers\\unet.py(3): forward", False),
        ("/opt/lib/python3.10/site-packages/mine/net.py(3): forward", False),
        ("torch/nn/modules/linear.py(3): forward", False),
        ("contextlib.py(75): inner", False),
        ("<__array_function__ internals>(2): dot", False),
    ],
)
def test_a_file_of_a_library_is_not_the_users(name: str, *, is_users: bool) -> None:
    assert event_references.is_users_file(name) == is_users
