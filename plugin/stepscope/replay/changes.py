"""Changes of a program, as changes of its graph's weights.

A change never lengthens a weight unless its factor is above 1, and times are the longest paths of
weights: so one more fix never makes a simulated step longer.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stepscope.analyses.idle.device_waits import LAUNCH_OUTLIER_NS
from stepscope.model import intervals
from stepscope.model.arrays import Floats, Ints
from stepscope.model.intervals import Intervals
from stepscope.replay.edges import NEVER_NS, Edge
from stepscope.replay.graph import ReplayGraph


class Change(ABC):
    """A difference between the recorded program and the simulated one."""

    @abstractmethod
    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Return the weights with this change; shape (m,), nanoseconds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangeRange:
    """The changes with which a fix saves least, and those with which it saves most."""

    least: tuple[Change, ...]
    most: tuple[Change, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class ScaleDevice(Change):
    """Device events that take another time: faster kernels, smaller copies; 0: no time at all."""

    rows: Ints
    """Rows of `device_events`."""
    factor: float

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Scale the events' durations."""
        return _scaled(weight_ns, graph.edges_into(Edge.RUNS, self.rows), self.factor)


@dataclass(frozen=True, kw_only=True, eq=False)
class Shorten(Change):
    """Times of which a fraction goes: of device work, and of the host's.

    Several of them may change one edge, of which each takes its part; disjoint times never take
    more than all of it.
    """

    times: Intervals
    """Times of the trace that are saved (shape (n, 2), nanoseconds)."""
    share: float
    """Fraction (0 to 1) of them that is saved."""
    is_device_work: bool
    """Whether the host stays as it is."""
    reference_ns: Ints
    """Weights before any part was taken; shape (m,)."""

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Take the fraction of the part of each edge that lies in `times`."""
        shortened = weight_ns.copy()
        stretches = [_device_stretches(graph)]
        if not self.is_device_work:
            stretches += [_host_stretches(graph), _late_launches(graph)]
        for stretch in stretches:
            edges, part = _inside(stretch, self.times)
            saved_ns = np.rint(self.reference_ns[edges] * part * self.share).astype(np.int64)
            shortened[edges] = np.maximum(0, weight_ns[edges] - saved_ns)
        return self._without_delays(graph, shortened)

    def _without_delays(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Drop the delays on the stream before device events that go as a whole."""
        if self.share < 1:
            return weight_ns
        edges, part = _inside(_device_stretches(graph), self.times)
        into = graph.edges_into(Edge.STREAM, graph.row[graph.target[edges[part == 1]]])
        weight_ns[into] = np.minimum(weight_ns[into], 0)
        return weight_ns


@dataclass(frozen=True, kw_only=True, eq=False)
class ScaleHost(Change):
    """Times of the host that take another time: faster Python, moved or removed work."""

    times: Intervals
    """Times in which the host does the work (shape (n, 2), nanoseconds)."""
    factor: float
    chain: int | None = 0
    """The chain of threads that does it; None: all chains, since the times are of a clock."""

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Scale the part of the host's time between two points that lies in `times`."""
        edges, part = _inside(_host_stretches(graph, self.chain), self.times)
        return _scaled(weight_ns, edges, 1 - part * (1 - self.factor))


@dataclass(frozen=True, kw_only=True, eq=False)
class ScaleAllHost(Change):
    """A host that is faster or slower throughout, as without a profiler."""

    factor: float

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Scale all of the host's time."""
        return _scaled(weight_ns, graph.host_work.edges, self.factor)


@dataclass(frozen=True, kw_only=True, eq=False)
class Unblock(Change):
    """Calls that no longer wait for the device."""

    calls: Ints
    """Rows of `runtime_calls`."""

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Drop the edges from device work to the calls' returns."""
        freed = weight_ns.copy()
        freed[graph.edges_into(Edge.WAITED, self.calls)] = NEVER_NS
        return freed


class Stretches(NamedTuple):
    """Edges, and the recorded times between their ends; arrays of shape (n,)."""

    edges: Ints
    start_ns: Ints
    end_ns: Ints


def _scaled(weight_ns: Ints, edges: Ints, factor: float | Floats) -> Ints:
    """Return the weights with those of some edges multiplied."""
    scaled = weight_ns.copy()
    scaled[edges] = np.rint(weight_ns[edges] * factor)
    return scaled


def _device_stretches(graph: ReplayGraph) -> Stretches:
    edges = graph.edges_into(Edge.RUNS)
    return Stretches(edges, graph.time_ns[graph.source[edges]], graph.time_ns[graph.target[edges]])


def _host_stretches(graph: ReplayGraph, chain: int | None = None) -> Stretches:
    work = graph.host_work
    rows = slice(None) if chain is None else np.flatnonzero(work.chain == chain)
    return Stretches(work.edges[rows], work.start_ns[rows], work.end_ns[rows])


def _late_launches(graph: ReplayGraph) -> Stretches:
    """Return the launches whose work begins so late that something unrecorded delays it."""
    edges = graph.edges_into(Edge.LAUNCHED)
    edges = edges[graph.weight_ns[edges] > LAUNCH_OUTLIER_NS]
    end_ns = graph.time_ns[graph.target[edges]]
    return Stretches(edges, end_ns - graph.weight_ns[edges], end_ns)


def _inside(stretches: Stretches, times: Intervals) -> tuple[Ints, Floats]:
    """Return the edges that lie in some times, and the part of each that does."""
    edges, start, end = stretches
    inside = intervals.covered_ns(times, start, end)
    changed = np.flatnonzero(inside)
    return edges[changed], inside[changed] / (end[changed] - start[changed])
