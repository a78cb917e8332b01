"""Error of the replay of a trace with typical delays in place of the recorded ones."""

import numpy as np

from stepscope.analyses.core.window import complete_steps, window
from stepscope.analyses.idle.device_waits import LAUNCH_OUTLIER_NS
from stepscope.model.arrays import NONE, Floats, Ints, Mask
from stepscope.model.trace import Trace
from stepscope.replay.edges import Edge
from stepscope.replay.graph import ReplayGraph, replay_graph
from stepscope.replay.points import Point

DELAYS = (Edge.LAUNCHED, Edge.STREAM, Edge.EVENT, Edge.INFERRED, Edge.FULL, Edge.WAITED)
"""Edges whose weights are delays, not work."""
LEAST_OF_CLASS = 5
"""Delays of a kind of edge and a kind of device event; of fewer, the median of the kind of edge."""


def typical_weights(trace: Trace) -> Ints:
    """Return the graph's weights with each delay replaced by the median of its class; shape (m,).

    Classes are by kind of edge and by kernel, copy or memory set. The first work of a stream that
    begins late followed work from before the recording: it keeps its recorded delay.
    """
    graph = replay_graph(trace)
    weight_ns = graph.weight_ns.copy()
    did_delay = _did_delay(graph) & ~_follows_unrecorded_work(graph)
    kind_of_event = np.append(trace.device_events["kind"].to_numpy().astype(np.int64), NONE)
    is_start = graph.kind[graph.target] == Point.DEVICE_START
    kind = kind_of_event[np.where(is_start, graph.row[graph.target], NONE)]
    for of_kind in (np.flatnonzero(did_delay & (graph.edge == delay)) for delay in DELAYS):
        if len(of_kind):
            weight_ns[of_kind] = _median(graph.weight_ns[of_kind])
        for number in np.unique(kind[of_kind]):
            edges = of_kind[kind[of_kind] == number]
            if len(edges) >= LEAST_OF_CLASS:
                weight_ns[edges] = _median(graph.weight_ns[edges])
    return weight_ns


def step_errors(trace: Trace) -> Floats:
    """Return how far off each step's end is with typical delays; shape (steps,), at least one.

    As fractions of the time from the window's start to that end.
    """
    graph, span, steps = replay_graph(trace), window(trace), complete_steps(trace)
    ends = steps.work_end_ns if len(steps) else np.array([span.device_end_ns])
    points = np.flatnonzero(is_end(graph))
    points = points[np.argsort(graph.time_ns[points], kind="stable")]
    times = graph.times(typical_weights(trace))
    recorded, simulated = (np.maximum.accumulate(of[points]) for of in (graph.time_ns, times))
    if not len(points):
        return np.zeros(len(ends))
    last = np.searchsorted(recorded, ends, side="right") - 1
    elapsed_ns = np.maximum(1, recorded[last] - span.device_start_ns)
    return np.asarray((simulated[last] - recorded[last]) / elapsed_ns)


def is_end(graph: ReplayGraph) -> Mask:
    """Return which points end work: all but the starts of device events, and batches."""
    return np.asarray((graph.kind != Point.DEVICE_START) & (graph.kind != Point.READY))


def _did_delay(graph: ReplayGraph) -> Mask:
    """Return the delays that determine their target: of several, the one with the last source."""
    binds = graph.is_binding(graph.weight_ns, graph.time_ns) & np.isin(graph.edge, DELAYS)
    edges, since_ns = np.flatnonzero(binds), graph.time_ns[graph.source]
    latest_ns = np.full(len(graph.time_ns), np.iinfo(np.int64).min)
    np.maximum.at(latest_ns, graph.target[edges], since_ns[edges])
    return np.asarray(binds & (since_ns == latest_ns[graph.target]))


def _follows_unrecorded_work(graph: ReplayGraph) -> Mask:
    has_work_before = np.zeros(len(graph.time_ns), dtype=bool)
    has_work_before[graph.target[graph.edge == Edge.STREAM]] = True
    is_late = graph.weight_ns > LAUNCH_OUTLIER_NS
    return np.asarray((graph.edge == Edge.LAUNCHED) & is_late & ~has_work_before[graph.target])


def _median(weight_ns: Ints) -> int:
    return int(np.median(weight_ns))
