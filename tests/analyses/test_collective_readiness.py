"""When collectives could have started: after their call, and after the work that they wait for."""

import numpy as np
import pytest

from loading import SHARED_TRACES, trace_at, trace_of
from stepscope.analyses.communication.collective_readiness import end_times, ready_times
from stepscope.model.trace import Trace
from tracebuild import Row

COMM = 20
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def kernel(name: str, launched: float, start: float, took: float, stream: int = 7) -> list[Row]:
    """A kernel, and the call that launched it."""
    correlation = int(launched)
    return [
        ["cuda_runtime", "cudaLaunchKernel", launched, 2, {"correlation": correlation}],
        ["kernel", name, start, took, {"correlation": correlation, "stream": stream}],
    ]


def collective(launched: float, start: float, took: float) -> list[Row]:
    """A collective on its stream, called 3 us before its launch."""
    return [
        ["cpu_op", "record_param_comms", launched - 3, 8, {"Collective name": "allreduce"}],
        *kernel(NCCL, launched, start, took, COMM),
    ]


def early_us(trace: Trace) -> list[float]:
    """Return how long before its start each collective was ready."""
    return ((trace.collectives["start_ns"] - ready_times(trace)) / 1000).tolist()


def test_a_collective_is_ready_when_the_work_launched_before_it_ends() -> None:
    rows = [*kernel("gemm", 10, 20, 100), *collective(30, 125, 50), *kernel("gemm", 40, 120, 90)]
    assert early_us(trace_of(rows)) == [5.0]


def test_a_collective_behind_another_was_ready_before_that_ended() -> None:
    rows = [
        *kernel("gemm", 10, 20, 100),
        *collective(30, 125, 200),
        *kernel("gemm", 40, 120, 30),
        *collective(60, 326, 50),
    ]
    assert early_us(trace_of(rows)) == [5.0, 176.0]


def test_a_late_call_makes_a_collective_ready_late() -> None:
    rows = [*kernel("gemm", 10, 20, 5), *collective(100, 110, 50)]
    assert early_us(trace_of(rows)) == [13.0]


def test_without_work_before_it_a_collective_is_ready_at_its_start() -> None:
    assert early_us(trace_of(collective(30, 60, 50))) == [0.0]


@pytest.mark.skipif(not SHARED_TRACES.exists(), reason="../shared/traces is not there")
def test_real_collectives_start_some_microseconds_after_they_are_ready() -> None:
    """A B200, one process group of one rank: only launches take time."""
    trace = trace_at(SHARED_TRACES / "tracelens" / "b200" / "eager_trace.json.gz")
    early = early_us(trace)
    assert len(early) == 74
    assert min(early) >= 0
    assert 10 < np.median(early) < 30


def late_us(trace: Trace) -> list[float]:
    """Return how long before its recorded end each collective let the host go on."""
    return ((trace.collectives["end_ns"] - end_times(trace)) / 1000).tolist()


def gloo(start: float, took: float, thread: int = 9) -> Row:
    """Return a collective of gloo's, on one of its threads."""
    shape = {"Input type": ["float"], "Input Dims": [[1000]]}
    return ["user_annotation", "gloo:all_reduce", start, took, {"tid": thread, **shape}]


def test_gloos_end_is_late_where_the_waiting_thread_works_before() -> None:
    works = [["cpu_op", "aten::mm", 0, 100], ["cpu_op", "aten::mm", 300, 100]]
    assert late_us(trace_of([*works, gloo(50, 265)])) == [15.0]
    assert late_us(trace_of([*works, gloo(50, 245)])) == [0.0]


def test_a_collective_that_ends_much_later_is_hidden() -> None:
    works = [["cpu_op", "aten::mm", 0, 100], ["cpu_op", "aten::mm", 300, 100]]
    assert late_us(trace_of([*works, gloo(50, 285)])) == [0.0]


def test_a_collective_that_began_after_the_wait_did_not_end_it() -> None:
    works = [["cpu_op", "aten::mm", 0, 100], ["cpu_op", "aten::mm", 300, 100]]
    assert late_us(trace_of([*works, gloo(50, 250), gloo(305, 10, 10)])) == [0.0, 0.0]


def test_kernels_end_when_they_end() -> None:
    rows = [*collective(30, 100, 200), *kernel("gemm", 40, 290, 90)]
    assert late_us(trace_of(rows)) == [0.0]
