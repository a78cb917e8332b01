"""Changes of a program, as changes of its graph's weights.

A change never lengthens a weight unless its factor is above 1, and times are the longest paths of
weights: so one more fix never makes a simulated step longer.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from stepscope.analyses.idle.device_waits import LAUNCH_OUTLIER_NS
from stepscope.model import intervals
from stepscope.model.arrays import Floats, Ints
from stepscope.model.intervals import Intervals
from stepscope.replay.edges import NEVER_NS, Edge
from stepscope.replay.graph import ReplayGraph

MOST_SUM_NS = 2**62
"""Largest sum of a graph's weights."""


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
    is_unslowed: bool = False
    """Whether recording slowed the times by their events alone."""


class ChainCosts(NamedTuple):
    """Moments of one chain of host threads at which recording takes time; arrays of shape (n,)."""

    moment_ns: Ints
    """In order."""
    cost_ns: Floats
    """Sum of the costs up to each moment."""

    def until(self, time_ns: Ints, side: Literal["left", "right"] = "right") -> Floats:
        """Return the cost of all moments before times (`left`), or also at them."""
        index = np.searchsorted(self.moment_ns, time_ns, side)
        if not len(self.cost_ns):
            return np.zeros(len(index))
        return np.where(index > 0, self.cost_ns[np.maximum(index - 1, 0)], 0.0)

    def inside(self, times: Intervals, start_ns: Ints, end_ns: Ints) -> Floats:
        """Return the cost of the moments in some times, after each start and up to each end."""
        whole = self.until(times[:, 1]) - self.until(times[:, 0], "left")
        before = np.append(0.0, np.cumsum(whole))

        def up_to(moment_ns: Ints) -> Floats:
            index = np.searchsorted(times[:, 0], moment_ns, side="right") - 1
            start, end = times[index, 0], np.minimum(times[index, 1], moment_ns)
            last = self.until(end) - self.until(start, "left")
            return np.where(index < 0, 0.0, before[index] + last)

        return up_to(end_ns) - up_to(start_ns)


Costs = Mapping[int, ChainCosts]
"""Chain of host threads to its cost of recording."""
NO_COSTS: Costs = {}


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
    costs: Costs = field(default_factory=dict)
    """Cost of recording that the weights no longer contain."""
    event_costs: Costs = field(default_factory=dict)
    """The part of it that recorded events cost, where they are."""

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Take the fraction of the part of each edge that lies in the times."""
        shortened = weight_ns.copy()
        for parts, stretches in self._stretches(graph):
            edges, fraction = _saved(stretches, parts, self.costs, self.event_costs)
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
            rest = tuple(
                part._replace(times=intervals.difference(part.times, gone)) for part in self.host
            )
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


NO_CHAINS: Ints = np.zeros(0, dtype=np.int64)


class Stretches(NamedTuple):
    """Edges, and the recorded times between their ends; arrays of shape (n,)."""

    edges: Ints
    start_ns: Ints
    end_ns: Ints
    chain: Ints = NO_CHAINS
    """Chain of host threads of each; empty for other edges."""

    def cost(self, costs: Costs) -> Floats:
        """Return the cost of recording in each stretch; shape (n,)."""
        result = np.zeros(len(self.edges))
        for rows, of_chain in self._by_chain(costs):
            ends = of_chain.until(self.end_ns[rows]), of_chain.until(self.start_ns[rows])
            result[rows] = ends[0] - ends[1]
        return result

    def cost_inside(self, times: Intervals, costs: Costs) -> Floats:
        """Return the cost of recording in some times of each stretch; shape (n,)."""
        result = np.zeros(len(self.edges))
        for rows, of_chain in self._by_chain(costs) if len(times) else ():
            result[rows] = of_chain.inside(times, self.start_ns[rows], self.end_ns[rows])
        return result

    def _by_chain(self, costs: Costs) -> Iterator[tuple[Ints, ChainCosts]]:
        for chain, of_chain in costs.items():
            rows = np.flatnonzero(self.chain == chain)
            if len(rows):
                yield rows, of_chain


def _scaled(weight_ns: Ints, edges: Ints, factor: float | Floats) -> Ints:
    """Return the weights with those of some edges multiplied, so far as 64 bits hold their sum."""
    scaled = weight_ns.copy()
    most_ns = MOST_SUM_NS // max(1, len(weight_ns))
    scaled[edges] = np.minimum(np.rint(weight_ns[edges] * factor), most_ns)
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
        return Stretches(work.edges, work.start_ns, work.end_ns, work.chain)
    is_other = np.isin(work.chain, list(without))
    rows = np.flatnonzero(~is_other if chain is None else work.chain == chain)
    return Stretches(work.edges[rows], work.start_ns[rows], work.end_ns[rows], work.chain[rows])


def _late_launches(graph: ReplayGraph) -> Stretches:
    """Return the launches whose work begins so late that something unrecorded delays it."""
    edges = graph.edges_into(Edge.LAUNCHED)
    edges = edges[graph.weight_ns[edges] > LAUNCH_OUTLIER_NS]
    end_ns = graph.time_ns[graph.target[edges]]
    return Stretches(edges, end_ns - graph.weight_ns[edges], end_ns)


def _inside(stretches: Stretches, times: Intervals) -> tuple[Ints, Floats]:
    """Return the edges that lie in some times, and the part of each that does."""
    return _saved(stretches, [Part(times, 1.0)])


def _saved(
    stretches: Stretches,
    parts: Iterable[Part],
    costs: Costs = NO_COSTS,
    event_costs: Costs = NO_COSTS,
) -> tuple[Ints, Floats]:
    """Return the edges of which some time is saved, and the fraction of each.

    Both the saved time and the whole are without the costs of recording.
    """
    start_ns, end_ns = stretches.start_ns, stretches.end_ns
    saved_ns = np.zeros(len(stretches.edges))
    for times, share, is_unslowed in parts:
        covered_ns = intervals.covered_ns(times, start_ns, end_ns)
        cost_ns = stretches.cost_inside(times, event_costs if is_unslowed else costs)
        saved_ns += share * np.maximum(0.0, covered_ns - cost_ns)
    changed = np.flatnonzero(saved_ns)
    whole_ns = (end_ns - start_ns - stretches.cost(costs))[changed]
    return stretches.edges[changed], np.minimum(1.0, saved_ns[changed] / np.maximum(1.0, whole_ns))
