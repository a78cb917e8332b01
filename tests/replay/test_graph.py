"""The graph of a trace gives the recorded times back, and waits for what the recorder saw."""

from typing import Any

import numpy as np
import pytest

import tracebuild
from loading import SHARED_TRACES, shared_trace_names, trace_at, trace_of
from stepscope.model.trace import Trace
from stepscope.replay.changes import ScaleDevice
from stepscope.replay.edges import LEAST_WEIGHT_NS, NEVER_NS, Edge
from stepscope.replay.graph import replay_graph
from stepscope.replay.points import Point
from stepscope.replay.simulation import simulate

GEMM = {"op": "aten::mm", "body": [{"kernel": "gemm", "us": 1000}]}


def recorded(*body: dict[str, Any], steps: int = 4) -> Trace:
    schedule = {"machine": "h100", "actions": [{"steps": steps, "body": list(body)}]}
    return trace_of(document=tracebuild.document(schedule=schedule))


def kinds_into(trace: Trace, point: Point) -> list[str]:
    graph = replay_graph(trace)
    is_target = np.repeat(graph.kind == point, np.diff(graph.first_edge))
    return sorted({Edge(kind).name for kind in graph.edge[is_target]})


def test_a_kernel_waits_for_its_launch_and_for_the_work_before_it() -> None:
    trace = recorded(GEMM, GEMM, {"host": 100})
    assert kinds_into(trace, Point.DEVICE_START) == ["LAUNCHED", "STREAM"]
    assert kinds_into(trace, Point.DEVICE_END) == ["RUNS"]


def test_a_blocking_call_returns_after_the_host_came_to_it_and_the_device_ended() -> None:
    assert kinds_into(recorded(GEMM, {"item": 4}), Point.RETURN) == ["HOST", "WAITED"]


@pytest.mark.parametrize("early_us", [0, 3])
def test_a_call_waits_for_work_that_by_the_devices_clock_ends_later(early_us: int) -> None:
    trace = trace_of(
        [
            ["cuda_runtime", "cudaLaunchKernel", 0, 5, {"correlation": 1}],
            ["kernel", "gemm", 10, 1_000, {"correlation": 1}],
            ["cuda_runtime", "cudaDeviceSynchronize", 20, 990 - early_us, {"correlation": 2}],
            ["cpu_op", "aten::mm", 1_010 - early_us, 90],
        ]
    )
    faster = simulate(trace, [ScaleDevice(rows=np.array([0]), factor=0.5)])
    assert (faster.graph.edge == Edge.WAITED).sum() == 1
    [end] = faster.time_ns[faster.graph.kind == Point.LAST]
    assert end == 600_000 - early_us * 1_000


def test_a_kernel_that_begins_early_by_programmatic_launch_still_follows_the_one_before() -> None:
    trace = trace_of(
        [
            ["cuda_runtime", "cudaLaunchKernel", 0, 5, {"correlation": 1}],
            ["cuda_runtime", "cudaLaunchKernelExC", 5, 5, {"correlation": 2}],
            ["kernel", "gemm", 10, 1_000, {"correlation": 1}],
            ["kernel", "splitKreduce", 1_008, 102, {"correlation": 2}],
            ["cuda_runtime", "cudaDeviceSynchronize", 20, 1_100, {"correlation": 3}],
        ]
    )
    faster = simulate(trace, [ScaleDevice(rows=np.array([0]), factor=0.5)])
    assert faster.saved_ns == 500_000


def test_a_trace_without_a_device_is_a_chain_of_the_host() -> None:
    trace = trace_of([["cpu_op", "aten::mm", 0, 50], ["cpu_op", "aten::add", 60, 40]])
    graph = replay_graph(trace)
    kinds = [Point(kind).name for kind in graph.kind.tolist()]
    assert kinds == ["FIRST", "STEP", "STEP", "LAST"]
    assert (graph.time_ns.tolist(), graph.weight_ns.tolist()) == (
        [0, 0, 100_000, 100_000],
        [0, 100_000, 0],
    )


def test_work_whose_launch_is_unknown_follows_the_main_thread() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::mm", 0, 50],
            ["kernel", "gemm", 60, 40, {"stream": 7, "device": 0}],
        ]
    )
    assert kinds_into(trace, Point.DEVICE_START) == ["ANCHORED"]


def test_a_trace_of_nothing_is_an_empty_graph() -> None:
    assert len(replay_graph(trace_of([["cpu_op", "aten::mm", 0, 0]])).source) <= 1


@pytest.mark.parametrize("name", shared_trace_names())
def test_unchanged_the_graph_gives_every_recorded_time_back(name: str) -> None:
    graph = replay_graph(trace_at(SHARED_TRACES / name))
    assert np.array_equal(graph.times(graph.weight_ns), graph.time_ns)
    is_dormant = np.isin(graph.edge, (Edge.MADE, Edge.LOADED))
    least_ns = np.array([LEAST_WEIGHT_NS.get(kind, 0) for kind in Edge])
    assert (graph.weight_ns >= least_ns[graph.edge])[~is_dormant].all()
    assert (graph.weight_ns[is_dormant] == NEVER_NS).all()
