"""Simulated times of a trace's window and steps after changes."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.window import window
from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace, computed
from stepscope.replay.changes import Change, Costs
from stepscope.replay.edges import Edge
from stepscope.replay.fidelity import DELAYS, is_end, typical_weights
from stepscope.replay.graph import ReplayGraph, replay_graph

MOST_ERROR = 0.02
"""Traces whose replay with typical delays misses the recorded end by more are not simulated."""
HOST, DEVICE, WAITING, LOADING = PARTS = (
    "host",
    "device",
    "launches and waits",
    "waiting for workers",
)
PART_OF_EDGE = {
    Edge.HOST: HOST,
    Edge.RUNS: DEVICE,
    **dict.fromkeys((*DELAYS, Edge.QUEUED, Edge.ANCHORED), WAITING),
    **dict.fromkeys((Edge.FETCHING, Edge.MADE, Edge.LOADED), LOADING),
}
"""Part of the path that an edge belongs to."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation:
    """A trace replayed with changes; the time before the window stays as recorded."""

    graph: ReplayGraph
    weight_ns: Ints
    """Weights of the graph's edges with the changes; shape (m,)."""
    time_ns: Ints
    """Simulated time of each of the graph's points; shape (n,)."""
    points: Ints
    """The points in the window."""
    earlier: Ints
    """Edges to points up to the start of the window's device work, which keep their weights."""
    reaching: Ints
    """Work that begins before the first step and ends in it: changes shorten only the part in it.

    Without steps there is none: the window begins with the device, and the host before it.
    """
    outside_ns: Ints
    """The other part of each."""
    begin_ns: int
    """The start of the window's device work."""
    step_count: int
    recorded_ns: int
    """Recorded time from there to the end of the window's work on host and devices."""
    simulated_ns: int
    costs: Costs = field(default_factory=dict)
    """Cost of recording that the weights do not contain."""

    @property
    def saved_ns(self) -> int:
        """Time that the changes save in the window; negative if they cost time."""
        return self.recorded_ns - self.simulated_ns

    def with_changes(self, changes: Iterable[Change]) -> "Simulation":
        """Return the simulation with further changes, which apply one after the other."""
        weight_ns = self.weight_ns
        for change in changes:
            weight_ns = change.apply(self.graph, weight_ns)
        return self.with_weights(weight_ns)

    def with_weights(self, weight_ns: Ints) -> "Simulation":
        """Return the simulation with other weights of the graph's edges; shape (m,)."""
        if len(self.earlier) or len(self.reaching):
            weight_ns = weight_ns.copy()
            weight_ns[self.earlier] = self.graph.weight_ns[self.earlier]
            weight_ns[self.reaching] = np.maximum(weight_ns[self.reaching], self.outside_ns)
        time_ns = self.graph.times(weight_ns)
        simulated_ns = _extent_ns(time_ns[self.points], self.begin_ns)
        return replace(self, weight_ns=weight_ns, time_ns=time_ns, simulated_ns=simulated_ns)

    def recorded_path_ns(self) -> dict[str, int]:
        """Return the time of each of `PARTS` on the path to the recorded end; they sum to it."""
        return self._path_ns(self.graph.weight_ns, self.graph.time_ns)

    def simulated_path_ns(self) -> dict[str, int]:
        """Return the time of each of `PARTS` on the path to the simulated end; they sum to it."""
        return self._path_ns(self.weight_ns, self.time_ns)

    def simulated_path(self) -> "PathTimes":
        """Return the edges of the path to the simulated end, with their times."""
        return self._path(self.weight_ns, self.time_ns)

    def _path_ns(self, weight_ns: Ints, time_ns: Ints) -> dict[str, int]:
        """Return the time of each part on the longest path to the last point in the window."""
        result = dict.fromkeys(PARTS, 0)
        path = self._path(weight_ns, time_ns)
        spent_ns = sums(path.spent_ns, self.graph.edge[path.edges], len(Edge))
        for kind, part in PART_OF_EDGE.items():
            result[part] += int(spent_ns[kind])
        result[WAITING] += path.before_ns
        return result

    def _path(self, weight_ns: Ints, time_ns: Ints) -> "PathTimes":
        if not len(self.points):
            return PathTimes(edges=self.points, spent_ns=self.points, before_ns=0)
        end = int(self.points[time_ns[self.points].argmax()])
        path, edges = self.graph.path(end, weight_ns, time_ns)
        at_ns = np.minimum.accumulate(np.maximum(time_ns[path], self.begin_ns))
        return PathTimes(
            edges=edges,
            spent_ns=at_ns[:-1] - at_ns[1:],
            before_ns=int(at_ns[-1]) - self.begin_ns,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class PathTimes:
    """Edges of a path to the end of the window, from the last to the first."""

    edges: Ints
    """Edges of the graph; shape (n,)."""
    spent_ns: Ints
    """Time in the window between the two points of each edge; shape (n,)."""
    before_ns: int
    """Time in the window before the path's first point."""


def simulate(trace: Trace, changes: Iterable[Change]) -> Simulation:
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
    return _unchanged(trace).with_changes(changes)


@computed
def replay_error(trace: Trace) -> float:
    """Return how far off the window's simulated end is with typical delays (see `typical_weights`).

    A fraction of the window; 0 for a trace in which the model explains every delay.
    """
    result = _unchanged(trace).with_weights(typical_weights(trace))
    return -result.saved_ns / max(1, result.recorded_ns)


@computed
def _unchanged(trace: Trace) -> Simulation:
    """Return the replay without changes, which has the recorded times."""
    span, graph = window(trace), replay_graph(trace)
    inside = (graph.time_ns >= span.device_start_ns) & (graph.time_ns <= span.device_end_ns)
    points = np.flatnonzero(inside & is_end(graph))
    recorded_ns = _extent_ns(graph.time_ns[points], span.device_start_ns)
    ends_ns, is_work = graph.time_ns[graph.target], np.isin(graph.edge, (Edge.HOST, Edge.RUNS))
    begins_ns = ends_ns - graph.weight_ns
    reaches = is_work & (begins_ns < span.device_start_ns) & (ends_ns > span.device_start_ns)
    reaching = np.flatnonzero(reaches & span.has_steps)
    return Simulation(
        graph=graph,
        weight_ns=graph.weight_ns,
        time_ns=graph.time_ns,
        points=points,
        earlier=np.flatnonzero(ends_ns <= span.device_start_ns),
        reaching=reaching,
        outside_ns=span.device_start_ns - begins_ns[reaching],
        begin_ns=span.device_start_ns,
        step_count=span.step_count,
        recorded_ns=recorded_ns,
        simulated_ns=recorded_ns,
    )


def _extent_ns(time_ns: Ints, begin_ns: int) -> int:
    return max(0, int(time_ns.max()) - begin_ns) if len(time_ns) else 0
