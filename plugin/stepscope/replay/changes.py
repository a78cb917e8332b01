"""Changes of a program, as changes of its graph's weights.

A change never lengthens a weight unless its factor is above 1, and times are the longest paths of
weights: so one more fix never makes a simulated step longer.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from stepscope.model import intervals
from stepscope.model.arrays import Floats, Ints, Mask
from stepscope.model.intervals import Intervals
from stepscope.replay.edges import Edge
from stepscope.replay.graph import ReplayGraph
from stepscope.replay.points import Point

NEVER_NS = np.iinfo(np.int64).min // 4
"""Weight of an edge that no longer holds its target back."""


class Change(ABC):
    """A difference between the recorded program and the simulated one."""

    @abstractmethod
    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Return the weights with this change; shape (m,), nanoseconds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScaleDevice(Change):
    """Device events that take another time: faster kernels, smaller copies; 0: no time at all."""

    rows: Ints
    """Rows of `device_events`."""
    factor: float

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Scale the events' durations."""
        is_changed = _of_rows(graph, Point.DEVICE_END, self.rows) & (graph.edge == Edge.RUNS)
        return np.where(is_changed, _scaled(weight_ns, self.factor), weight_ns)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScaleHost(Change):
    """Times of the host that take another time: faster Python, moved or removed work."""

    times: Intervals
    """Times in which one chain of threads does the work (shape (n, 2), nanoseconds)."""
    factor: float
    chain: int = 0

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Scale the part of the host's time between two points that lies in `times`."""
        target = graph.target
        edges = np.flatnonzero((graph.edge == Edge.HOST) & (graph.chain[target] == self.chain))
        start, end = graph.time_ns[graph.source[edges]], graph.time_ns[target[edges]]
        inside = intervals.covered_ns(self.times, start, end)
        part = np.where(end > start, inside / np.maximum(1, end - start), 0)
        scaled = weight_ns.copy()
        scaled[edges] = _scaled(weight_ns[edges], 1 - part * (1 - self.factor))
        return scaled


@dataclass(frozen=True, kw_only=True, eq=False)
class ScaleAllHost(Change):
    """A host that is faster or slower throughout, as without a profiler."""

    factor: float

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Scale all of the host's time."""
        return np.where(graph.edge == Edge.HOST, _scaled(weight_ns, self.factor), weight_ns)


@dataclass(frozen=True, kw_only=True, eq=False)
class Unblock(Change):
    """Calls that no longer wait for the device."""

    calls: Ints
    """Rows of `runtime_calls`."""

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Drop the edges from device work to the calls' returns."""
        is_dropped = _of_rows(graph, Point.RETURN, self.calls) & (graph.edge == Edge.WAITED)
        return np.where(is_dropped, NEVER_NS, weight_ns)


def _of_rows(graph: ReplayGraph, kind: Point, rows: Ints) -> Mask:
    """Return a mask of the edges that lead to points of a kind and these rows."""
    is_target = (graph.kind == kind) & np.isin(graph.row, rows)
    return np.repeat(is_target, np.diff(graph.first_edge))


def _scaled(weight_ns: Ints, factor: float | Floats) -> Ints:
    return np.asarray(np.rint(weight_ns * factor), dtype=np.int64)
