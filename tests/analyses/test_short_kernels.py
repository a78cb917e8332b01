"""Short kernels that could be one."""

from typing import Any

import tracebuild
from loading import trace_of
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.idle.dispatch_gaps import idle_before, short_kernels
from stepscope.model import intervals
from stepscope.model.trace import Trace


def counts(*body: dict[str, Any]) -> tuple[int, int, int, int]:
    found = short_kernels(*recorded(*body), 10_000)
    return len(found.kernels), len(found.short), len(found.fusable), len(found.saved)


def recorded(*body: dict[str, Any]) -> tuple[Trace, Any]:
    trace = trace_of(document=tracebuild.document(schedule=[{"steps": 1, "body": list(body)}]))
    return trace, main_device(trace)


SHORT, LONG = {"kernel": "add", "us": 4}, {"kernel": "gemm", "us": 40}


def test_only_neighbours_can_be_one_kernel() -> None:
    assert counts(SHORT, SHORT, SHORT, LONG, SHORT, LONG) == (6, 4, 3, 2)


def test_a_copy_or_a_collective_ends_a_stretch() -> None:
    assert counts(SHORT, {"copy": "DtoD", "bytes": 64}, SHORT) == (2, 2, 0, 0)
    assert counts(SHORT, {"kernel": "ncclDevKernel_AllReduce", "us": 4}, SHORT) == (3, 2, 0, 0)


def test_streams_have_their_own_neighbours() -> None:
    assert counts(SHORT, {**SHORT, "stream": 20}, SHORT, {**SHORT, "stream": 20}) == (4, 4, 4, 2)


def test_what_a_graph_replays_is_not_counted() -> None:
    assert counts({"graph": [SHORT, SHORT, SHORT]}, SHORT) == (1, 1, 0, 0)


def test_what_began_before_the_steps_is_left_out() -> None:
    actions: list[Any] = [SHORT, {"host": 50}, {"steps": 1, "body": [SHORT, {"host": 50}]}]
    trace = trace_of(document=tracebuild.document(schedule=actions))
    device = main_device(trace)
    assert device is not None
    found = short_kernels(trace, device, 10_000)
    assert trace.device_events["start_ns"].to_numpy()[found.kernels].tolist() == [63_000]


def test_idle_time_is_that_before_the_launches_that_would_be_saved() -> None:
    """Launches take 5 us each: 4 us pass between a kernel of 1 us and the next, twice."""
    trace, device = recorded(*[{"kernel": "add", "us": 1}] * 3)
    found = short_kernels(trace, device, 10_000)
    assert intervals.duration_ns(idle_before(trace, device, found.saved)) == 2 * 4_000
