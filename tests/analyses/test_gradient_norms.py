"""Norms between the backward pass and the optimizer's step."""

from loading import trace_of
from stepscope.analyses.host.optimizer_updates import gradient_norms

US = 1000
STEP = ["user_annotation", "ProfilerStep#1", 0, 1000]
BACKWARD = ["cpu_op", "autograd::engine::evaluate_function: MmBackward0", 100, 100, {"tid": 101}]
UPDATE = ["user_annotation", "Optimizer.step#SGD.step", 500, 100]
NORM = "aten::linalg_vector_norm"


def test_clipping_goes_from_the_first_norm_to_the_last_scaling_before_the_step() -> None:
    trace = trace_of(
        [
            STEP,
            ["cpu_op", NORM, 50, 10],
            BACKWARD,
            ["cpu_op", "aten::mul_", 210, 10],
            ["cpu_op", NORM, 300, 10],
            ["cpu_op", NORM, 320, 10],
            ["cpu_op", "aten::mul_", 400, 10],
            UPDATE,
            ["cpu_op", NORM, 510, 10],
            ["cpu_op", NORM, 700, 10],
        ]
    )
    found = gradient_norms(trace)
    assert trace.host_calls["start_ns"].iloc[found.rows].tolist() == [300 * US, 320 * US]
    assert found.times.tolist() == [[300 * US, 410 * US]]


def test_norms_of_a_list_are_not_of_single_tensors() -> None:
    trace = trace_of(
        [
            STEP,
            BACKWARD,
            ["cpu_op", "aten::_foreach_norm", 300, 50],
            ["cpu_op", NORM, 310, 9],
            UPDATE,
        ]
    )
    found = gradient_norms(trace)
    assert (len(found.rows), len(found.times)) == (0, 0)


def test_without_a_backward_pass_nothing_lies_behind_it() -> None:
    found = gradient_norms(trace_of([STEP, ["cpu_op", NORM, 300, 10], UPDATE]))
    assert (len(found.rows), len(found.times)) == (0, 0)
