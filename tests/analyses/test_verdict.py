"""The sentence above all advice, whole."""

from typing import Any

import pytest

import tracebuild
from loading import trace_of
from stepscope.advice import worker_report
from stepscope.advice.step_summary import step_summary
from stepscope.advice.trace_advice import advise_trace, advised_verdict
from stepscope.base.report import UnrecordedStepReport, WorkerReport

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def said(*rows: list[Any]) -> str:
    return step_summary(trace_of(list(rows)))


def steps(*durations_us: int) -> list[list[Any]]:
    start, found = 0, []
    for number, duration in enumerate(durations_us):
        found.append(["user_annotation", f"ProfilerStep#{number}", start, duration])
        start += duration
    return found


def test_measured_steps_without_the_profiler_are_in_the_sentence() -> None:
    quartiles = {"first_quartile_ns": 930_000, "third_quartile_ns": 1_000_000}
    recorder = {"unrecorded_steps": {"count": 40, "median_ns": 980_000, **quartiles}}
    rows = [*steps(1000, 2000), ["cpu_op", "aten::mm", 0, 2990]]
    trace = trace_of(rows, stepscope_recorder=recorder)
    assert step_summary(trace) == (
        "Recorded steps take 1.50 ms (± 33.3 %, 2 steps), unrecorded steps 980 µs; nearly all of it"
        " is operators on the CPU."
    )
    assert worker_report(trace).step.unrecorded == UnrecordedStepReport(
        count=40, median_ns=980_000, first_quartile_ns=930_000, third_quartile_ns=1_000_000
    )


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            [*steps(1000), ["kernel", "gemm", 0, 400], ["user_annotation", LOADER, 400, 600]],
            "Step 1.00 ms (one step); the GPU is busy 40.0 %; besides computing, the largest"
            " part is waiting for data: 600 µs (60.0 %).",
        ),
        (
            [*steps(1000, 2000), ["cpu_op", "aten::mm", 0, 2990]],
            "Step 1.50 ms (± 33.3 %, 2 steps); nearly all of it is operators on the CPU.",
        ),
        (
            [*steps(1000), ["kernel", "gemm", 0, 950], ["gpu_memcpy", "Memcpy HtoD", 950, 50]],
            "Step 1.00 ms (one step); the GPU is busy 100.0 % and is the limit; besides computing,"
            " the largest part is exposed copies: 50.0 µs (5.0 %).",
        ),
        (
            [["kernel", "gemm", 0, 300], ["kernel", "ncclDevKernel_AllReduce", 300, 700]],
            "No steps are marked; the window is 1.00 ms long; the GPU is busy 100.0 %;"
            " besides computing, the largest part is exposed communication: 700 µs (70.0 %).",
        ),
        (
            [*steps(1000), ["cpu_op", "aten::mm", 0, 100]],
            "Step 1.00 ms (one step); besides operators on the CPU, the largest part is host"
            " code outside torch operators: 900 µs (90.0 %).",
        ),
        (
            [["overhead", "Buffer Flush", 5, 1]],
            "The trace contains no timed events.",
        ),
    ],
    ids=["loading", "cpu", "copies", "no steps", "python", "nothing"],
)
def test_the_sentence(rows: list[list[Any]], sentence: str) -> None:
    launch = ["cuda_runtime", "cudaLaunchKernel", 0, 1]  # by which the device is known as a GPU
    has_device = any(row[0] == "kernel" for row in rows)
    assert said(*rows, *([launch] if has_device else [])) == sentence


def test_a_device_is_called_what_its_users_call_it() -> None:
    unknown = said(*steps(1000), ["kernel", "gemm", 0, 400])
    assert "; the accelerator is busy 40.0 %;" in unknown


def test_a_simulated_training_is_summed_up() -> None:
    """next() 3,000 us, then 13 us to a kernel of 7,000 us at whose end the step ends."""
    schedule = [
        {
            "steps": 3,
            "body": [
                {"dataloader": 0, "us": 3000},
                {"op": "aten::mm", "body": [{"kernel": "gemm", "us": 7000}]},
                {"sync": "device", "us": 0},
            ],
        }
    ]
    assert step_summary(trace_of(document=tracebuild.document(schedule=schedule))) == (
        "Step 10.0 ms (± 0.0 %, 3 steps); the GPU is busy 69.9 %; besides computing, the largest"
        " part is waiting for data: 3.00 ms (30.0 %)."
    )


def advice_on(*rows: list[Any]) -> WorkerReport:
    return advise_trace(trace_of(list(rows))).worker


SAVE = "torch/serialization.py(944): save"


def test_a_loop_in_which_a_phase_takes_much_is_not_called_healthy() -> None:
    rows = [
        *steps(1000),
        ["python_function", "train.py(3): main", 0, 1000],
        ["cpu_op", "aten::mm", 0, 900],
        ["python_function", "train.py(9): report", 900, 100],
    ]
    worker = advice_on(*rows)
    takes = (
        "host code outside operators takes 100 µs per step (10.0 %), most of it in"
        " train.py(9): report."
    )
    assert worker.verdict.endswith(f"besides the model, {takes}")
    assert worker.standing is not None
    assert worker.standing.state == "cannot-tell"
    assert worker.standing.message.endswith(f"found no cause that costs 5 % or more, but {takes}")


def test_a_phase_below_5_percent_leaves_a_loop_healthy() -> None:
    worker = advice_on(*steps(1000), ["cpu_op", "aten::mm", 0, 951])
    assert "and the loop is healthy" in worker.verdict
    assert worker.standing is not None
    assert worker.standing.state == "healthy"


def test_loading_without_a_finding_is_named_by_its_category() -> None:
    rows = [*steps(1000), ["cpu_op", "aten::mm", 0, 900], ["user_annotation", LOADER, 900, 100]]
    trace = trace_of(rows)
    verdict = advised_verdict(trace, ())
    assert verdict == step_summary(trace)
    assert "the largest part is waiting for data" in verdict


def test_a_checkpoint_in_each_step_is_the_cause() -> None:
    rows = [*steps(1000), ["cpu_op", "aten::mm", 0, 700], ["python_function", SAVE, 700, 300]]
    assert "saving the model's state alone costs 270–300 µs of it" in advice_on(*rows).verdict
