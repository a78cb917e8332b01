"""Device work that waits for room on its device."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from loading import trace_of
from stepscope.analyses.idle.device_waits import device_waits
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace
from stepscope.replay.changes import ScaleDevice
from stepscope.replay.edges import Edge
from stepscope.replay.full_devices import LEAST_NS, PAUSE_NS, TAIL_NS, filling_work
from stepscope.replay.simulation import simulate

Row = list[Any]
RECORD = ["cuda_sync", "Stream Wait Event", 1, 0, {"stream": 9}]
"""With synchronization records, no waits between streams are inferred."""


def launched(*kernels: tuple[int, int, int, int], records: tuple[Row, ...] = ()) -> Trace:
    """Return a trace of kernels: launch, start and duration in microseconds, and stream."""
    rows = list(records)
    for number, (launch, start, duration, stream) in enumerate(kernels, start=1):
        ids = {"correlation": number}
        rows += [
            ["cuda_runtime", "cudaLaunchKernel", launch, 5, ids],
            ["kernel", "gemm", start, duration, {**ids, "stream": stream}],
        ]
    return trace_of(rows)


def start_with_faster_first(trace: Trace) -> int:
    """Return the second event's start if the first one takes half of its time."""
    replay = simulate(trace, [ScaleDevice(rows=np.array([0]), factor=0.5)])
    [run] = replay.graph.edges_into(Edge.RUNS, np.array([1]))
    return int(replay.time_ns[replay.graph.source[run]])


def test_a_kernel_begins_when_the_last_blocks_of_a_long_one_run_out() -> None:
    trace = launched((0, 10, 6_000, 7), (2_000, 5_940, 20, 8))
    assert filling_work(trace).tolist() == [-1, 0]
    assert start_with_faster_first(trace) == 2_940_000


def test_a_device_that_runs_one_program_at_a_time_begins_the_next_behind_it() -> None:
    trace = launched((0, 10, 6_000, 7), (2_000, 6_040, 20, 8), records=(RECORD,))
    assert filling_work(trace).tolist() == [-1, 0]
    assert start_with_faster_first(trace) == 3_040_000


def test_a_kernel_that_begins_right_after_its_launch_waits_for_nothing_else() -> None:
    trace = launched((0, 10, 6_000, 7), (5_935, 5_940, 20, 8))
    assert filling_work(trace).tolist() == [-1, -1]
    assert start_with_faster_first(trace) == 5_940_000


kernels = st.tuples(
    st.integers(0, 2_000), st.integers(0, 1_500), st.integers(1, 900), st.sampled_from((7, 8, 9))
)


@examples(60)
@given(st.lists(kernels, min_size=1, max_size=10), st.sampled_from(((), (RECORD,))))
def test_of_long_work_the_one_that_ends_nearest_filled_the_device(
    drawn: list[tuple[int, int, int, int]], records: tuple[Row, ...]
) -> None:
    rows = [(launch, launch + delay, duration, stream) for launch, delay, duration, stream in drawn]
    trace = launched(*rows, records=records)
    start, end = (trace.device_events[name].to_numpy() for name in ("start_ns", "end_ns"))
    expected, actual = slowly(trace, start, end), filling_work(trace)
    assert np.array_equal(actual >= 0, expected >= 0)
    late = np.flatnonzero(actual >= 0)
    chosen, best = (np.abs(end[of[late]] - start[late]) for of in (actual, expected))
    assert np.array_equal(chosen, best)
    assert (start[actual[late]] < start[late]).all()


def slowly(trace: Trace, start: Ints, end: Ints) -> Ints:
    """Return the work that filled the device, from its definition."""
    result, ready = np.full(len(start), -1), device_waits(trace).ready_ns
    for row in range(len(start)):
        if start[row] - ready[row] <= LEAST_NS:
            continue
        near = [
            other
            for other in range(len(start))
            if end[other] - start[other] >= LEAST_NS
            and -TAIL_NS < start[row] - end[other] <= PAUSE_NS
        ]
        result[row] = min(near, key=lambda other: abs(end[other] - start[row]), default=-1)
    return result
