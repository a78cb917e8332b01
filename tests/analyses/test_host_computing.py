"""How much of the time a processor computes, and what is said where that is nearly all of it."""

from typing import Any

import pytest

from loading import trace_of
from stepscope.advice import advise
from stepscope.advice.step_summary import is_processor_bound
from stepscope.analyses.host.breakdown import cpu_compute_time
from stepscope.model.trace import Run

Row = list[Any]
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
STEP = ["user_annotation", "ProfilerStep#0", 0, 1000]


def said(*rows: Row) -> str:
    [worker] = advise(Run(name="case", workers=(trace_of([STEP, *rows]),))).workers
    return worker.verdict


def test_own_time_of_long_calls_counts_and_that_of_short_ones_does_not() -> None:
    found = cpu_compute_time(
        trace_of(
            [
                STEP,
                ["cpu_op", "aten::conv2d", 0, 600],  # 10 of its own
                ["cpu_op", "aten::mkldnn_convolution", 10, 590],
                ["cpu_op", "aten::relu", 600, 200],
                ["cpu_op", "aten::add", 800, 19],  # shorter than what counts
                ["cpu_op", "aten::mm", 1000, 500],  # behind the last step
            ]
        )
    )
    assert dict(found.shares) == {"aten::mkldnn_convolution": 0.59, "aten::relu": 0.2}
    assert found.share == pytest.approx(0.79)


def test_of_several_threads_the_busiest_counts() -> None:
    found = cpu_compute_time(
        trace_of(
            [
                STEP,
                ["cpu_op", "aten::mm", 0, 300],
                ["cpu_op", "aten::mm", 0, 400, {"tid": 2}],
                ["cpu_op", "aten::mul", 400, 100, {"tid": 2}],
            ]
        )
    )
    assert dict(found.shares) == {"aten::mm": 0.4, "aten::mul": 0.1}


def test_without_operators_nothing_computes() -> None:
    found = cpu_compute_time(trace_of([STEP]))
    assert (found.share, dict(found.shares)) == (0.0, {})


def test_a_heavy_model_is_called_that_and_nothing_is_said_of_the_loop() -> None:
    rows = [["cpu_op", "aten::convolution_backward", 0, 550], ["cpu_op", "aten::relu", 550, 410]]
    assert said(*rows) == (
        "Step 1.00 ms (one step); computing on the CPU is the limit, and the loop is healthy:"
        " aten::convolution_backward takes 55.0 % of it, aten::relu 41.0 %."
    )
    assert said(rows[0], ["cpu_op", "aten::mm", 600, 360]).endswith("aten::mm 36.0 %.")
    assert said(["cpu_op", "aten::mm", 0, 960]).endswith("healthy: aten::mm takes 96.0 % of it.")


def test_a_loop_with_python_between_operators_is_not_called_healthy() -> None:
    assert said(["cpu_op", "aten::mm", 0, 900]) == (
        "Step 1.00 ms (one step); besides the model, host code outside"
        " operators takes 100 µs per step (10.0 %), most of it after aten::mm."
    )


@pytest.mark.parametrize(
    "rows",
    [
        [["cpu_op", "aten::mm", 0, 799]],
        [["cpu_op", "aten::add", start, 10] for start in range(0, 1000, 10)],
        [["cpu_op", "aten::mm", 0, 700], ["user_annotation", LOADER, 700, 300]],
        [["cpu_op", "aten::mm", 0, 900], ["kernel", "gemm", 0, 100]],
    ],
    ids=["too little", "only calls", "loading", "a device"],
)
def test_where_the_processor_does_not_compute_nearly_always_it_is_not_the_limit(
    rows: list[Row],
) -> None:
    assert not is_processor_bound(trace_of([STEP, *rows]))
    assert "is the limit, and the loop is healthy" not in said(*rows)


GPU = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]}
ON_CPU = {"stepscope_recorder": {"settings": {"model": {"device": "cpu"}}}}


@pytest.mark.parametrize(
    ("operator", "metadata", "expected"),
    [
        ("aten::mm", {}, True),
        ("aten::_local_scalar_dense", {}, False),
        ("aten::cudnn_convolution", {}, False),
        ("aten::mm", GPU, False),
        ("aten::mm", GPU | ON_CPU, True),
    ],
    ids=["a CPU", "a value is read", "a device's operator", "a device", "the model is on the CPU"],
)
def test_a_device_that_was_not_recorded_may_be_what_operators_wait_for(
    operator: str,
    metadata: dict[str, Any],
    expected: bool,  # noqa: FBT001
) -> None:
    trace = trace_of([STEP, ["cpu_op", operator, 0, 900]], **metadata)
    assert is_processor_bound(trace) is expected
