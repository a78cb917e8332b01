"""When chosen collectives kept the device waiting, and which were asked for where."""

import re

import numpy as np
import pytest

import tracebuild
from loading import trace_of
from stepscope.analyses.communication.collective_events import requested_in_calls
from stepscope.analyses.core.exposed_communication import HOST, computing_times, exposed_times
from stepscope.analyses.steps.step_breakdown import exclusive_times
from stepscope.model import intervals
from stepscope.model.trace import Trace

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def of(*rows: list[object]) -> Trace:
    return trace_of(document=tracebuild.document(rows=rows))


def test_what_a_chosen_collective_does_beside_computing_is_exposed_but_for_the_computing() -> None:
    trace = of(
        ["user_annotation", "ProfilerStep#1", 0, 100],
        ["cuda_runtime", "cudaLaunchKernel", 1, 1, {"correlation": 1}],
        ["cuda_runtime", "cudaLaunchKernel", 3, 1, {"correlation": 2}],
        ["cuda_runtime", "cudaLaunchKernel", 5, 1, {"correlation": 3}],
        ["kernel", "gemm", 10, 20, {"correlation": 1}],
        ["kernel", REDUCE, 20, 30, {"correlation": 2, "stream": 20}],
        ["kernel", REDUCE, 60, 10, {"correlation": 3, "stream": 20}],
    )
    every = np.ones(2, dtype=bool)
    assert exposed_times(trace, every).tolist() == [[30_000, 50_000], [60_000, 70_000]]
    second = np.array([False, True])
    assert exposed_times(trace, second).tolist() == [[60_000, 70_000]]


@pytest.mark.parametrize("category", ["user_annotation", "cpu_op"])
def test_on_the_host_it_is_what_no_operator_hides(category: str) -> None:
    trace = of(
        ["user_annotation", "ProfilerStep#1", 0, 100],
        ["cpu_op", "aten::mm", 10, 20],
        [category, "gloo:all_reduce", 20, 30, {"tid": 7}],
    )
    assert exposed_times(trace, np.array([True])).tolist() == [[30_000, 50_000]]
    assert intervals.duration_ns(exclusive_times(trace)["communication"]) == 20_000
    assert intervals.duration_ns(computing_times(trace)[HOST]) == 20_000


def test_a_collective_was_asked_for_within_the_call_that_went_on_when_the_host_asked() -> None:
    trace = of(
        ["user_annotation", "DistributedDataParallel.forward", 0, 20],
        ["user_annotation", "nccl:broadcast", 5, 5],
        ["cuda_runtime", "cudaLaunchKernel", 6, 1, {"correlation": 1}],
        ["user_annotation", "nccl:all_reduce", 30, 5],
        ["cuda_runtime", "cudaLaunchKernel", 31, 1, {"correlation": 2}],
        ["kernel", "ncclDevKernel_Broadcast_RING_LL", 40, 5, {"correlation": 1}],
        ["kernel", REDUCE, 50, 5, {"correlation": 2}],
    )
    forward = re.compile(r"DistributedDataParallel\.forward")
    assert requested_in_calls(trace, forward).tolist() == [True, False]
    assert requested_in_calls(trace, re.compile("nothing")).tolist() == [False, False]
