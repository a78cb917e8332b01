"""An optimizer's updates: which calls they are, when they began, what they launched."""

import pytest

from loading import trace_of
from stepscope.analyses.host.optimizer_updates import optimizer_updates
from stepscope.base.errors import NotApplicableError

US = 1000
STEP = ["user_annotation", "ProfilerStep#1", 0, 1000]


def test_the_outer_of_two_steps_counts_and_its_launches_do() -> None:
    trace = trace_of(
        [
            STEP,
            ["user_annotation", "Optimizer.step#EMA.step", 100, 300],
            ["user_annotation", "Optimizer.step#AdamW.step", 110, 200],
            ["cpu_op", "aten::_foreach_add_", 120, 50],
            ["cuda_runtime", "cudaLaunchKernel", 125, 5, {"correlation": 1}],
            ["kernel", "add", 135, 10, {"correlation": 1}],
            ["cuda_runtime", "cudaLaunchKernel", 500, 5, {"correlation": 2}],
            ["kernel", "other", 510, 10, {"correlation": 2}],
        ]
    )
    found = optimizer_updates(trace)
    assert found.optimizer.tolist() == ["EMA"]
    assert (found.begin_ns.tolist(), found.end_ns.tolist()) == ([100 * US], [400 * US])
    assert (found.is_listwise.tolist(), found.is_fused.tolist()) == ([True], [False])
    assert found.work.events.tolist() == [0]
    assert found.work.callers.tolist() == found.rows.tolist()


def test_an_update_begins_with_the_first_change_after_a_closure_on_any_thread() -> None:
    backward = "autograd::engine::evaluate_function: MmBackward0"
    trace = trace_of(
        [
            STEP,
            ["user_annotation", "Optimizer.step#LBFGS.step", 100, 300],
            ["cpu_op", "aten::mm", 110, 50],
            ["cuda_runtime", "cudaLaunchKernel", 115, 5, {"correlation": 1}],
            ["kernel", "gemm", 125, 10, {"correlation": 1}],
            ["cpu_op", backward, 170, 130, {"tid": 101}],
            ["cpu_op", "aten::add_", 320, 50],
            ["cuda_runtime", "cudaLaunchKernel", 325, 5, {"correlation": 2}],
            ["kernel", "add", 335, 10, {"correlation": 2}],
        ]
    )
    found = optimizer_updates(trace)
    assert found.begin_ns.tolist() == [320 * US]
    assert found.work.events.tolist() == [1]


def test_without_a_change_an_update_begins_when_the_closures_backward_pass_is_over() -> None:
    trace = trace_of(
        [
            STEP,
            ["user_annotation", "Optimizer.step#Own.step", 100, 300],
            ["cpu_op", "autograd::engine::evaluate_function: MmBackward0", 170, 130],
            ["cpu_op", "aten::linalg_vector_norm", 320, 50],
        ]
    )
    assert optimizer_updates(trace).begin_ns.tolist() == [300 * US]


def test_steps_outside_the_window_are_left_out() -> None:
    trace = trace_of([STEP, ["user_annotation", "Optimizer.step#SGD.step", 1100, 50]])
    with pytest.raises(NotApplicableError, match="no optimizer's step was recorded"):
        optimizer_updates(trace)


def test_a_graphs_kernels_are_one_launch() -> None:
    trace = trace_of(
        [
            STEP,
            ["user_annotation", "Optimizer.step#SGD.step", 100, 300],
            ["cuda_runtime", "cudaGraphLaunch", 125, 5, {"correlation": 1}],
            ["kernel", "a", 135, 10, {"correlation": 1}],
            ["kernel", "b", 145, 10, {"correlation": 1}],
        ]
    )
    work = optimizer_updates(trace).work
    assert work.events.tolist() == [0, 1]
    assert (len(work.callers), work.launch_of_event.tolist()) == (1, [0, 0])


def test_a_launch_whose_kernel_was_not_recorded_counts() -> None:
    trace = trace_of(
        [
            STEP,
            ["user_annotation", "Optimizer.step#SGD.step", 100, 300],
            ["cuda_runtime", "cudaLaunchKernel", 125, 5, {"correlation": 1}],
            ["cuda_runtime", "cudaMemsetAsync", 135, 5, {"correlation": 2}],
            ["gpu_memset", "Memset (Device)", 145, 5, {"correlation": 2}],
            ["cuda_runtime", "cudaEventRecord", 155, 5, {"correlation": 3}],
            ["cuda_runtime", "cudaLaunchKernel", 500, 5, {"correlation": 4}],
        ]
    )
    work = optimizer_updates(trace).work
    assert (len(work.callers), work.events.tolist()) == (2, [0])
    assert work.launch_of_event.tolist() == [1]
