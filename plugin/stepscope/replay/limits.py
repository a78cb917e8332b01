"""The limit of a simulated step: what takes most of the path that determines its end."""

from typing import Literal, NamedTuple, get_args

import numpy as np

from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.steps.step_breakdown import exclusive_times
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.replay.edges import Edge
from stepscope.replay.simulation import DEVICE, HOST, LOADING, PART_OF_EDGE, PathTimes, Simulation

Limit = Literal["host", "device", "data loading", "collectives", "launches and waits"]
LIMIT_OF_PART: dict[str, Limit] = {HOST: "host", DEVICE: "device", LOADING: "data loading"}


class LimitOfStep(NamedTuple):
    """The part that takes most of a path."""

    part: Limit
    share: float
    """Fraction of the path's time."""


def limit_of(
    trace: Trace, simulation: Simulation, saved: Intervals = intervals.EMPTY
) -> LimitOfStep | None:
    """Return the limit of a simulated window; None where the window takes no time.

    `saved`: recorded times that the simulation's changes shorten.
    """
    parts = limit_parts(trace, simulation, saved)
    total_ns = sum(parts.values())
    if not total_ns:
        return None
    part = max(parts, key=lambda name: parts[name])
    return LimitOfStep(part, parts[part] / total_ns)


def limit_parts(
    trace: Trace, simulation: Simulation, saved: Intervals = intervals.EMPTY
) -> dict[Limit, int]:
    """Return the time of each part on the path to the simulated end; they sum to it.

    Of the host's time, the recorded times of data loading are told apart, and without a device
    those of collectives; what remains of time that is partly `saved` is of the other part.
    """
    path, graph = simulation.simulated_path(), simulation.graph
    result: dict[Limit, int] = dict.fromkeys(get_args(Limit), 0)
    kinds = graph.edge[path.edges]
    for kind in np.unique(kinds).tolist():
        part = LIMIT_OF_PART.get(PART_OF_EDGE[Edge(kind)], "launches and waits")
        result[part] += int(path.spent_ns[kinds == kind].sum())
    result["launches and waits"] += path.before_ns
    moves: list[tuple[Limit, Limit, int]] = [
        ("host", "data loading", _host_ns(simulation, path, data_loading(trace).times, saved)),
        ("device", "collectives", _collectives_ns(trace, simulation, path)),
    ]
    if not len(trace.device_events):
        waits = exclusive_times(trace)["communication"]
        moves.append(("host", "collectives", _host_ns(simulation, path, waits, saved)))
    for source, target, time_ns in moves:
        moved_ns = min(time_ns, result[source])
        result[source] -= moved_ns
        result[target] += moved_ns
    return result


def _host_ns(simulation: Simulation, path: PathTimes, times: Intervals, saved: Intervals) -> int:
    """Return the time that the path spends in the host's work of some recorded times."""
    graph = simulation.graph
    is_host = (graph.edge[path.edges] == Edge.HOST) & (graph.weight_ns[path.edges] > 0)
    edges, spent_ns = path.edges[is_host], path.spent_ns[is_host]
    order = np.argsort(graph.time_ns[graph.target[edges]], kind="stable")
    edges, spent_ns = edges[order], spent_ns[order]
    end_ns = graph.time_ns[graph.target[edges]]
    start_ns = end_ns - graph.weight_ns[edges]
    left_ns = end_ns - start_ns - intervals.covered_ns(saved, start_ns, end_ns)
    inside_ns = intervals.covered_ns(intervals.difference(times, saved), start_ns, end_ns)
    return int((spent_ns * (inside_ns / np.maximum(1, left_ns))).sum())


def _collectives_ns(trace: Trace, simulation: Simulation, path: PathTimes) -> int:
    graph = simulation.graph
    is_run = graph.edge[path.edges] == Edge.RUNS
    rows = graph.row[graph.target[path.edges[is_run]]]
    is_collective = trace.device_events["is_collective"].to_numpy()[rows]
    return int(path.spent_ns[is_run][is_collective].sum())
