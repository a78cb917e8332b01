"""Damaged traces: a stated refusal, or times that agree with the trace; never a hang."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from loading import trace_of
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace
from stepscope.replay.changes import ScaleAllHost, ScaleDevice, Unblock
from stepscope.replay.edges import Edges, Numbering, all_edges
from stepscope.replay.graph import replay_graph
from stepscope.replay.launches import remove
from stepscope.replay.loading import MoveLoading
from stepscope.replay.simulation import simulate
from stepscope.replay.what_if import WhatIf, predict

Row = list[Any]
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
times = st.integers(0, 30)
durations = st.integers(0, 12)
ids = st.integers(1, 6)
threads = st.sampled_from((1, 2))


def call(category: str, name: str) -> st.SearchStrategy[Row]:
    def row(at: int, duration: int, number: int, thread: int) -> Row:
        return [category, name, at, duration, {"correlation": number, "tid": thread}]

    return st.builds(row, times, durations, ids, threads)


def kernel(at: int, duration: int, number: int, stream: int) -> Row:
    return ["kernel", "gemm", at, duration, {"correlation": number, "stream": stream}]


rows = st.lists(
    st.one_of(
        call("cuda_runtime", "cudaLaunchKernel"),
        call("cuda_runtime", "cudaStreamSynchronize"),
        call("cpu_op", "aten::mm"),
        call("user_annotation", LOADER),
        call("user_annotation", "ProfilerStep#1"),
        st.builds(kernel, times, durations, ids, st.sampled_from((7, 8))),
    ),
    min_size=1,
    max_size=14,
)


@examples(40)
@given(rows)
def test_any_events_give_a_refusal_or_the_recorded_times(events: list[Row]) -> None:
    trace = trace_of(events)
    try:
        graph = replay_graph(trace)
    except MissingDataError:
        return
    assert np.array_equal(graph.times(graph.weight_ns), graph.time_ns)
    assert_bounded(trace)


def assert_bounded(trace: Trace) -> None:
    """Every change gives a time of the window, whose parts sum to it; or the trace is refused."""
    every = np.arange(len(trace.device_events))
    try:
        unchanged = simulate(trace, [])
    except MissingDataError:
        return
    fixes = [
        ScaleAllHost(factor=0.5),
        ScaleDevice(rows=every, factor=0),
        Unblock(calls=synchronizations(trace).calls),
        remove(trace, every),
    ]
    result, ends = unchanged, [unchanged.simulated_ns]
    for fix in fixes:
        result = result.with_changes([fix])
        ends.append(result.simulated_ns)
        assert sum(result.simulated_path_ns().values()) == result.simulated_ns
    assert min(ends) >= 0
    assert ends == sorted(ends, reverse=True)
    moved = unchanged.with_changes([MoveLoading(workers=2, cores=4)])
    assert sum(moved.simulated_path_ns().values()) == moved.simulated_ns


@pytest.mark.parametrize(
    "events",
    [
        [["kernel", "gemm", 0, 10, {"correlation": 1}]],
        [["cpu_op", "aten::mm", 0, 0]],
        [["user_annotation", "ProfilerStep#1", 0, 0]],
        [["cuda_runtime", "cudaDeviceSynchronize", 5, 5, {"correlation": 1}]],
    ],
)
def test_a_trace_of_one_event_is_replayed(events: list[Row]) -> None:
    prediction = predict(trace_of(events), WhatIf())
    assert prediction.simulated_ns == prediction.recorded_ns


def test_kernels_without_launches_keep_their_order_on_the_stream() -> None:
    kernels = [["kernel", "gemm", at, 10, {"correlation": at + 1}] for at in (0, 12, 24)]
    trace = trace_of(kernels)
    faster = simulate(trace, [ScaleDevice(rows=np.arange(3), factor=0.5)])
    assert (faster.recorded_ns, faster.simulated_ns) == (34_000, 19_000)


def test_a_kernel_before_its_launch_does_not_wait_for_it() -> None:
    launch = ["cuda_runtime", "cudaLaunchKernel", 100, 5, {"correlation": 1}]
    trace = trace_of([launch, ["kernel", "gemm", 20, 10, {"correlation": 1}]])
    assert replay_graph(trace).time_ns.min() == 0
    assert simulate(trace, []).saved_ns == 0


def test_links_in_a_circle_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def circle(trace: Trace, numbering: Numbering) -> list[Edges]:
        chain, *others = all_edges(trace, numbering)
        return [chain, replace(chain, source=chain.target, target=chain.source), *others]

    monkeypatch.setattr("stepscope.replay.graph.all_edges", circle)
    with pytest.raises(MissingDataError, match="form a circle"):
        simulate(trace_of([["cpu_op", "aten::mm", 0, 10]]), [])
