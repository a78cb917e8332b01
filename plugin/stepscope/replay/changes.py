"""Changes of a program, as changes of its graph's weights.

A change never lengthens a weight unless its factor is above 1, and times are the longest paths of
weights: so one more fix never makes a simulated step longer.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

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
class ScaleDevice(Change):
    """Device events that take another time: faster kernels, smaller copies; 0: no time at all."""

    rows: Ints
    """Rows of `device_events`."""
    factor: float

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Scale the events' durations."""
        return _scaled(weight_ns, graph.edges_into(Edge.RUNS, self.rows), self.factor)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScaleDeviceTimes(Change):
    """Times of device events that take another time."""

    times: Intervals
    """Times that change, where events run in them (shape (n, 2), nanoseconds)."""
    factor: float
    rows: Ints | None = None
    """Rows of `device_events`; None: all of them."""

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Scale the part of each event's duration that lies in `times`."""
        edges = graph.edges_into(Edge.RUNS, self.rows)
        start, end = graph.time_ns[graph.source[edges]], graph.time_ns[graph.target[edges]]
        return _scaled_inside(weight_ns, Stretches(edges, start, end), self.times, self.factor)


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
        work = graph.host_work
        rows = slice(None) if self.chain is None else np.flatnonzero(work.chain == self.chain)
        stretches = Stretches(work.edges[rows], work.start_ns[rows], work.end_ns[rows])
        return _scaled_inside(weight_ns, stretches, self.times, self.factor)


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


def _scaled_inside(weight_ns: Ints, stretches: Stretches, times: Intervals, factor: float) -> Ints:
    """Return the weights with each edge's multiplied, as far as its stretch lies in `times`."""
    edges, start, end = stretches
    inside = intervals.covered_ns(times, start, end)
    changed = np.flatnonzero(inside)
    part = inside[changed] / (end[changed] - start[changed])
    return _scaled(weight_ns, edges[changed], 1 - part * (1 - factor))
