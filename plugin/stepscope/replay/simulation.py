"""Simulated times of a trace's window and steps after changes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.window import window
from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace, computed
from stepscope.replay.changes import Change
from stepscope.replay.edges import Edge
from stepscope.replay.graph import ReplayGraph, replay_graph
from stepscope.replay.points import Point

MOST_ERROR = 0.02
"""Traces whose replay with typical delays misses the recorded end by more are not simulated."""
HOST, DEVICE, WAITING = PARTS = ("host", "device", "launches and waits")
PART_OF_EDGE = {Edge.HOST: HOST, Edge.RUNS: DEVICE} | dict.fromkeys(
    (Edge.LAUNCHED, Edge.STREAM, Edge.EVENT, Edge.INFERRED, Edge.WAITED, Edge.QUEUED), WAITING
)
"""Part of the path that an edge belongs to."""
DELAYS = (Edge.LAUNCHED, Edge.STREAM, Edge.EVENT, Edge.INFERRED, Edge.WAITED)
"""Edges whose weights are delays, not work."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation:
    """A trace replayed with changes."""

    graph: ReplayGraph
    weight_ns: Ints
    """Weights of the graph's edges with the changes; shape (m,)."""
    time_ns: Ints
    """Simulated time of each of the graph's points; shape (n,)."""
    points: Ints
    """The points in the window."""
    step_count: int
    recorded_ns: int
    """Recorded time from the window's start to the end of its work on host and devices."""
    simulated_ns: int

    @property
    def saved_ns(self) -> int:
        """Time that the changes save in the window; negative if they cost time."""
        return self.recorded_ns - self.simulated_ns

    @property
    def saved_ns_per_step(self) -> float:
        """Saved time per step; without steps, of the window."""
        return self.saved_ns / max(1, self.step_count)

    def recorded_path_ns(self) -> dict[str, int]:
        """Return the time of each of `PARTS` on the path to the recorded end; they sum to it."""
        return _path_ns(self.graph, self.graph.weight_ns, self.graph.time_ns, self.points)

    def simulated_path_ns(self) -> dict[str, int]:
        """Return the time of each of `PARTS` on the path to the simulated end; they sum to it."""
        return _path_ns(self.graph, self.weight_ns, self.time_ns, self.points)


def _path_ns(graph: ReplayGraph, weight_ns: Ints, time_ns: Ints, points: Ints) -> dict[str, int]:
    """Return the time of each part on the longest path to the last point in the window."""
    result = dict.fromkeys(PARTS, 0)
    if not len(points):
        return result
    point = int(points[time_ns[points].argmax()])
    begin_ns = int(time_ns[points].min())
    while time_ns[point] > begin_ns:
        first, last = graph.first_edge[point : point + 2]
        ready = time_ns[graph.source[first:last]] + weight_ns[first:last]
        if not len(ready):
            break
        edge = first + int(ready.argmax())
        before = int(graph.source[edge])
        since_ns = max(begin_ns, int(time_ns[before]))
        result[PART_OF_EDGE[Edge(int(graph.edge[edge]))]] += int(time_ns[point]) - since_ns
        point = before
    result[WAITING] += max(0, int(time_ns[point]) - begin_ns)
    return result


def simulate(trace: Trace, changes: Sequence[Change]) -> Simulation:
    """Replay a trace with changes, which apply one after the other.

    Raises:
        MissingDataError: the model does not describe this trace: with typical delays, its replay
            misses the recorded end by more than 2 %.
    """
    error = replay_error(trace)
    if abs(error) > MOST_ERROR:
        msg = f"replayed with typical delays, the trace ends {error:+.1%} off its recorded end"
        raise MissingDataError(
            msg, "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"
        )
    graph = replay_graph(trace)
    weight_ns = graph.weight_ns
    for change in changes:
        weight_ns = change.apply(graph, weight_ns)
    return _simulation(trace, graph, weight_ns)


@computed
def replay_error(trace: Trace) -> float:
    """Return how far off the window's simulated end is if each delay is the median of its kind.

    A fraction of the window; 0 for a trace in which the model explains every delay.
    """
    graph = replay_graph(trace)
    is_binding = graph.time_ns[graph.source] + graph.weight_ns == graph.time_ns[graph.target]
    weight_ns = graph.weight_ns.copy()
    for kind in DELAYS:
        edges = np.flatnonzero(is_binding & (graph.edge == kind))
        if len(edges):
            weight_ns[edges] = int(np.median(weight_ns[edges]))
    result = _simulation(trace, graph, weight_ns)
    return -result.saved_ns / max(1, result.recorded_ns)


def _simulation(trace: Trace, graph: ReplayGraph, weight_ns: Ints) -> Simulation:
    span, time_ns = window(trace), graph.times(weight_ns)
    inside = (graph.time_ns >= span.start_ns) & (graph.time_ns <= span.device_end_ns)
    points = np.flatnonzero(inside & (graph.kind != Point.DEVICE_START))
    recorded, simulated = (
        int(times[points].max() - times[points].min()) if len(points) else 0
        for times in (graph.time_ns, time_ns)
    )
    return Simulation(
        graph=graph,
        weight_ns=weight_ns,
        time_ns=time_ns,
        points=points,
        step_count=span.step_count,
        recorded_ns=recorded,
        simulated_ns=simulated,
    )
