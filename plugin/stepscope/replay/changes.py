"""Changes of a program, as changes of its graph's weights.

A change never lengthens a weight unless its factor is above 1, and times are the longest paths of
weights: so one more fix never makes a simulated step longer.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
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


class Part(NamedTuple):
    """Times of which a fraction is saved."""

    times: Intervals
    """Times of the trace (shape (n, 2), nanoseconds)."""
    share: float
    """Fraction (0 to 1); above 1 for times that take more than their part of an edge's weight."""


class ChainTimes(NamedTuple):
    """Times of one chain of host threads."""

    chain: int
    times: Intervals
    """Shape (n, 2), nanoseconds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shorten(Change):
    """Times of which a fraction goes: of device work, and of the host's.

    Several of them may change one edge, of which each takes its part; disjoint times never take
    more than all of it.
    """

    device: tuple[Part, ...] = ()
    """Parts of device work; their times are disjoint."""
    host: tuple[Part, ...] = ()
    """Parts of the time of all host threads; their times are disjoint."""
    removed: tuple[ChainTimes, ...] = ()
    """Times that go as a whole, of one entry per chain of host threads."""
    reference_ns: Ints
    """Weights before any part was taken; shape (m,)."""

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Take the fraction of the part of each edge that lies in the times."""
        shortened = weight_ns.copy()
        for parts, stretches in self._stretches(graph):
            edges, fraction = _saved(stretches, parts)
            saved_ns = np.rint(self.reference_ns[edges] * fraction).astype(np.int64)
            shortened[edges] = np.maximum(0, weight_ns[edges] - saved_ns)
        return self._without_delays(graph, shortened)

    def _stretches(self, graph: ReplayGraph) -> Iterator[tuple[tuple[Part, ...], "Stretches"]]:
        """Yield parts with the edges that they change: those of chains with removed times alone."""
        if self.device:
            yield self.device, _device_stretches(graph)
        if self.host:
            yield self.host, _late_launches(graph)
        if not self.host and not self.removed:
            return
        chains = [chain for chain, _ in self.removed]
        yield self.host, _host_stretches(graph, without=chains)
        for chain, gone in self.removed:
            rest = tuple(Part(intervals.difference(of, gone), share) for of, share in self.host)
            yield (*rest, Part(gone, 1.0)), _host_stretches(graph, chain)

    def _without_delays(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Drop the delays on the stream before device events that go as a whole."""
        for times in (part.times for part in self.device if part.share == 1):
            edges, fraction = _inside(_device_stretches(graph), times)
            into = graph.edges_into(Edge.STREAM, graph.row[graph.target[edges[fraction == 1]]])
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


def host_ns(graph: ReplayGraph, weight_ns: Ints, times: Intervals) -> float:
    """Return the host's time in some recorded times, by some weights of the graph's edges."""
    edges, part = _inside(_host_stretches(graph), times)
    return float((weight_ns[edges] * part).sum())


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


def _host_stretches(
    graph: ReplayGraph, chain: int | None = None, without: Collection[int] = ()
) -> Stretches:
    """Return the host's work in one chain, or in all of them but some."""
    work = graph.host_work
    if chain is None and not without:
        return Stretches(work.edges, work.start_ns, work.end_ns)
    is_other = np.isin(work.chain, list(without))
    rows = np.flatnonzero(~is_other if chain is None else work.chain == chain)
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


def _saved(stretches: Stretches, parts: Iterable[Part]) -> tuple[Ints, Floats]:
    """Return the edges of which some time is saved, and the fraction of each."""
    edges, start, end = stretches
    saved_ns = np.zeros(len(edges))
    for times, share in parts:
        saved_ns += share * intervals.covered_ns(times, start, end)
    changed = np.flatnonzero(saved_ns)
    return edges[changed], saved_ns[changed] / (end[changed] - start[changed])
