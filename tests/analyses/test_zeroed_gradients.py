"""Fills within an optimizer's `zero_grad`."""

import pytest

from loading import trace_of
from stepscope.analyses.idle.call_cost import zeroed_gradients
from stepscope.base.errors import NotApplicableError

US = 1000
STEP = ["user_annotation", "ProfilerStep#1", 0, 1000]


def test_fills_outside_zero_grad_or_the_window_are_others() -> None:
    trace = trace_of(
        [
            STEP,
            ["user_annotation", "Optimizer.zero_grad#SGD.zero_grad", 100, 100],
            ["cpu_op", "aten::_foreach_zero_", 110, 50],
            ["cpu_op", "aten::zero_", 120, 10],
            ["cpu_op", "aten::zero_", 300, 10],
            ["user_annotation", "Optimizer.zero_grad#SGD.zero_grad", 1100, 100],
            ["cpu_op", "aten::zero_", 1110, 10],
        ]
    )
    found = zeroed_gradients(trace)
    start = trace.host_calls["start_ns"].to_numpy()
    assert start[found.fills].tolist() == [110 * US], "one list of tensors is one fill"
    assert start[found.zeroing].tolist() == [100 * US]
    assert found.is_listwise
    assert found.cost.host_ns == 50 * US


def test_only_the_first_pass_after_a_fill_adds_to_zeros() -> None:
    trace = trace_of(
        [
            STEP,
            ["cpu_op", "torch::autograd::AccumulateGrad", 10, 50],
            ["cpu_op", "aten::add_", 20, 10],
            ["user_annotation", "Optimizer.zero_grad#SGD.zero_grad", 100, 100],
            ["cpu_op", "aten::_foreach_zero_", 110, 50],
            ["cpu_op", "aten::zero_", 120, 10],
            ["cpu_op", "aten::add_", 210, 10],
            ["cpu_op", "torch::autograd::AccumulateGrad", 300, 50],
            ["cpu_op", "aten::add_", 310, 10],
            ["cpu_op", "torch::autograd::AccumulateGrad", 400, 50],
            ["cpu_op", "aten::add_", 410, 10],
        ]
    )
    starts = trace.host_calls["start_ns"].to_numpy()
    assert starts[zeroed_gradients(trace).additions].tolist() == [310 * US]


def test_where_nothing_is_zeroed_there_is_nothing_to_tell() -> None:
    with pytest.raises(NotApplicableError, match="no optimizer's zero_grad was recorded"):
        zeroed_gradients(trace_of([STEP, ["cpu_op", "aten::zero_", 300, 10]]))
