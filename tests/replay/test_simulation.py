"""Simulated steps of schedules whose true answer is known by hand, and laws of all changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import SHARED_TRACES, shared_trace_names, trace_at, trace_of
from replay.test_graph import GEMM, recorded
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.replay.changes import (
    Change,
    Part,
    ScaleAllHost,
    ScaleDevice,
    ScaleHost,
    Shorten,
    Unblock,
)
from stepscope.replay.edges import Edge
from stepscope.replay.simulation import PART_OF_EDGE, Simulation, simulate


def all_kernels(trace: Trace, factor: float) -> ScaleDevice:
    return ScaleDevice(rows=np.arange(len(trace.device_events)), factor=factor)


def test_without_changes_the_recorded_end_is_met_exactly() -> None:
    assert simulate(recorded(GEMM, {"item": 4}, {"host": 200}), []).saved_ns == 0


def test_a_read_in_the_middle_costs_the_idle_time_behind_it() -> None:
    # the case of tests/rules/item_sync.yml: 217 us in each step, and 1 us for the copy's end
    reading = (GEMM, {"item": 4}, {"host": 200}, GEMM, {"host": 900})
    trace = recorded(*reading)
    freed = simulate(trace, [Unblock(calls=synchronizations(trace).calls)])
    assert freed.saved_ns == pytest.approx(4 * 217_000, abs=4_000)


def test_faster_kernels_save_nothing_where_the_host_never_waits() -> None:
    small = {"op": "aten::add", "body": [{"kernel": "add", "us": 4}]}
    trace = recorded({"repeat": 50, "body": [small, {"host": 20}]})
    assert simulate(trace, [all_kernels(trace, 0)]).saved_ns < 10_000


def test_a_faster_host_saves_nothing_where_the_device_is_the_limit() -> None:
    trace = recorded({"repeat": 20, "body": [GEMM]})
    recorded_ns = simulate(trace, []).recorded_ns
    assert simulate(trace, [ScaleAllHost(factor=0.5)]).saved_ns < 0.001 * recorded_ns
    assert simulate(trace, [all_kernels(trace, 0.5)]).saved_ns > 0.49 * recorded_ns


def test_host_work_is_taken_out_where_it_lies() -> None:
    trace = recorded(GEMM, {"item": 4}, {"host": 2_000})
    steps = trace.steps
    ends = steps["end_ns"].to_numpy()
    last_ms = intervals.union(ends - 1_000_000, ends)
    assert simulate(trace, [ScaleHost(times=last_ms, factor=0)]).saved_ns == pytest.approx(
        4_000_000, rel=0.01
    )


def shorten(trace: Trace, times: Intervals, share: float, *, device: bool = True) -> Shorten:
    parts = (Part(times, share),)
    host = () if device else parts
    return Shorten(device=parts, host=host, reference_ns=simulate(trace, []).weight_ns)


def test_device_work_is_shortened_as_far_as_it_lies_in_the_times() -> None:
    trace = recorded({"repeat": 10, "body": [GEMM]})
    start = trace.device_events["start_ns"].to_numpy()
    halves = intervals.union(start, start + 500_000)
    saved_ns = simulate(trace, [shorten(trace, halves, 0.5)]).saved_ns
    assert saved_ns == len(start) * 250_000


def test_parts_of_one_stretch_of_host_work_are_taken_each_by_itself() -> None:
    trace = recorded({"host": 1000})
    start, end = (trace.steps[name].to_numpy() for name in ("start_ns", "end_ns"))
    middle = (start + end) // 2
    first, last = intervals.union(start, middle), intervals.union(middle, end)
    halves = [shorten(trace, times, 0.5, device=False) for times in (first, last)]
    whole = shorten(trace, intervals.merged(first, last), 0.5, device=False)
    assert simulate(trace, halves).saved_ns == simulate(trace, [whole]).saved_ns > 0


def test_more_than_all_of_a_stretch_is_never_taken() -> None:
    trace = recorded({"host": 1000})
    whole = intervals.union(*(trace.steps[name].to_numpy() for name in ("start_ns", "end_ns")))
    all_of_it = shorten(trace, whole, 1.0, device=False)
    assert simulate(trace, [all_of_it, all_of_it]).simulated_ns == 0


def test_times_of_all_chains_scale_every_thread() -> None:
    trace = MIXED
    whole = intervals.union(np.array([0]), np.array([10**12]))
    by_times = simulate(trace, [ScaleHost(times=whole, factor=0.5, chain=None)])
    assert np.array_equal(by_times.time_ns, simulate(trace, [ScaleAllHost(factor=0.5)]).time_ns)


def test_time_before_the_window_stays_as_recorded() -> None:
    before, inside = (["cpu_op", "aten::mm", at, 40] for at in (0, 100))
    trace = trace_of([before, ["user_annotation", "ProfilerStep#1", 100, 50], inside])
    result = simulate(trace, [ScaleAllHost(factor=0)])
    assert (result.begin_ns, result.recorded_ns, result.simulated_ns) == (100_000, 50_000, 0)


factors = st.floats(0, 1)


def fixes_of(trace: Trace, host: float, device: float, cut: int) -> list[Change]:
    kernels = ScaleDevice(rows=np.arange(cut), factor=device)
    return [
        ScaleAllHost(factor=host),
        kernels,
        Unblock(calls=synchronizations(trace).calls[:cut]),
    ]


def test_of_work_that_reaches_into_the_window_only_the_part_inside_is_saved() -> None:
    step = ["user_annotation", "ProfilerStep#1"]
    launch = ["cuda_runtime", "cudaLaunchKernel", 0, 5, {"correlation": 1}]
    kernel = ["kernel", "gemm", 10, 1_000, {"correlation": 1}]
    work = ["cpu_op", "aten::mm", 910, 50]
    trace = trace_of([launch, kernel, work, [*step, 900, 300]])
    faster = simulate(trace, [all_kernels(trace, 0)])
    [end] = faster.graph.edges_into(Edge.RUNS)
    assert faster.time_ns[faster.graph.target[end]] == 900_000


@given(host=factors, device=factors, unblocked=st.booleans(), cut=st.integers(0, 20))
def test_a_further_fix_never_makes_a_step_longer(
    host: float, device: float, *, unblocked: bool, cut: int
) -> None:
    fixes = fixes_of(MIXED, host, device, cut)[: 3 if unblocked else 2]
    ends = [simulate(MIXED, fixes[:count]).simulated_ns for count in range(len(fixes) + 1)]
    assert ends == sorted(ends, reverse=True)


@given(host=factors, device=factors, cut=st.integers(0, 20))
def test_changes_one_after_another_are_changes_at_once(
    host: float, device: float, cut: int
) -> None:
    fixes = fixes_of(MIXED, host, device, cut)
    result = simulate(MIXED, [])
    for fix in fixes:
        result = result.with_changes([fix])
    assert np.array_equal(result.time_ns, simulate(MIXED, fixes).time_ns)


@given(host=factors, device=factors, cut=st.integers(0, 20))
def test_the_parts_of_a_path_are_those_of_walking_it(host: float, device: float, cut: int) -> None:
    result = simulate(MIXED, fixes_of(MIXED, host, device, cut))
    path = result.simulated_path_ns()
    assert path == path_by_walking(result)
    assert sum(path.values()) == result.simulated_ns
    assert sum(result.recorded_path_ns().values()) == result.recorded_ns


def path_by_walking(result: Simulation) -> dict[str, int]:
    """Return the parts of the path to the end, from one point to the one that it waits for."""
    graph, time_ns = result.graph, result.time_ns
    point = int(result.points[time_ns[result.points].argmax()])
    begin_ns = result.begin_ns
    parts = dict.fromkeys(result.recorded_path_ns(), 0)
    while time_ns[point] > begin_ns:
        edges = range(int(graph.first_edge[point]), int(graph.first_edge[point + 1]))
        since = {edge: int(time_ns[graph.source[edge]]) for edge in edges}
        edge = max(edges, key=lambda it: (since[it] + result.weight_ns[it], since[it], it))
        before = int(graph.source[edge])
        since_ns = max(begin_ns, int(time_ns[before]))
        parts[PART_OF_EDGE[Edge(int(graph.edge[edge]))]] += int(time_ns[point]) - since_ns
        point = before
    return parts


MIXED = recorded(GEMM, {"host": 300}, GEMM, {"item": 4}, {"host": 700}, steps=5)


@pytest.mark.parametrize("name", shared_trace_names("kineto"))
def test_on_a_real_trace_the_host_is_the_limit_and_faster_kernels_save_little(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    result = simulate(trace, [all_kernels(trace, 0)])
    assert 0 <= result.saved_ns < 0.02 * result.recorded_ns
