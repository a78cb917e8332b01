"""Dependency graph of a trace: its points in time, and the edges that each of them waits for.

A point is as early as all its edges allow: at the latest `time of the source + weight`. A weight is
the time that something takes: host work between two points, a device event, the delay of a launch.
With the recorded weights, the graph gives the recorded times back exactly.

The model is that of Daydream (Zhu et al., "Accurately estimating the efficacy of optimizations for
DNN training", USENIX ATC 2020) and Lumos (Liang et al., MLSys 2025), with points for nodes.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.trace import Trace, computed
from stepscope.replay import scheduler
from stepscope.replay.edges import Edge, Edges, Numbering, all_edges
from stepscope.replay.points import Point, host_points

Codes = NDArray[np.int8]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplayGraph:
    """Points in an order in which sources come before targets; edges by target.

    Arrays of points have shape (n,), arrays of edges shape (m,).
    """

    time_ns: Ints
    """Recorded time, on the trace's clock."""
    kind: Codes
    """`Point`."""
    row: Ints
    """Row of `steps`, `host_calls` (batches), `runtime_calls` or `device_events`; -1: none."""
    chain: Ints
    """Chain of threads; -1 on a device, and of batches."""
    first_edge: Ints
    """Index of each point's first edge, and m at the end; shape (n + 1,)."""
    source: Ints
    """The point that an edge comes from."""
    weight_ns: Ints
    """Least time from source to target; `NEVER_NS` where an edge is dormant."""
    edge: Codes
    """`Edge`."""

    @cached_property
    def target(self) -> Ints:
        """The point that each edge leads to."""
        return np.repeat(np.arange(len(self.time_ns)), np.diff(self.first_edge))

    @cached_property
    def host_work(self) -> "HostWork":
        """The edges of host work, in the order of time; a wait ends before its work begins."""
        edges = np.flatnonzero((self.edge == Edge.HOST) & (self.weight_ns > 0))
        edges = edges[np.argsort(self.time_ns[self.target[edges]], kind="stable")]
        end_ns = self.time_ns[self.target[edges]]
        return HostWork(
            edges=edges,
            chain=self.chain[self.target[edges]],
            start_ns=end_ns - self.weight_ns[edges],
            end_ns=end_ns,
        )

    def edges_into(self, kind: Edge, rows: Ints | None = None) -> Ints:
        """Return the edges of a kind that lead to points of some rows; None: of all rows."""
        edges, of_row = self._edges_by_row(kind)
        if rows is None:
            return edges
        first, last = (np.searchsorted(of_row, rows, side=side) for side in ("left", "right"))
        count = last - first
        before = np.repeat(np.cumsum(count) - count, count)
        return np.asarray(edges[np.repeat(first, count) + np.arange(len(before)) - before])

    def _edges_by_row(self, kind: Edge) -> tuple[Ints, Ints]:
        """Return the edges of a kind, and the rows of the points they lead to, by row."""
        if kind not in self._by_row:
            edges = np.flatnonzero(self.edge == kind)
            of_row = self.row[self.target[edges]]
            order = np.argsort(of_row, kind="stable")
            self._by_row[kind] = edges[order], of_row[order]
        return self._by_row[kind]

    @cached_property
    def _by_row(self) -> dict[Edge, tuple[Ints, Ints]]:
        return {}

    def is_binding(self, weight_ns: Ints, time_ns: Ints) -> Mask:
        """Return which edges determine the time of their target; shape (m,)."""
        return np.asarray(time_ns[self.source] + weight_ns == time_ns[self.target])

    def path(self, end: int, weight_ns: Ints, time_ns: Ints) -> tuple[Ints, Ints]:
        """Return the longest path to a point: its points from the last to the first, and its edges.

        There is one edge less than points. Of edges that bind a point alike, the one with the last
        source counts: delays of others are estimates.
        """
        edges = scheduler.path(self.first_edge, self.source, weight_ns, time_ns, end)
        return np.append(end, self.source[edges]), edges

    def times(self, weight_ns: Ints) -> Ints:
        """Return each point's time with these weights of edges (shape (m,), nanoseconds).

        Points without an edge keep their recorded time.
        """
        return scheduler.times(self.first_edge, self.source, weight_ns, self.time_ns)


@dataclass(frozen=True, kw_only=True, eq=False)
class HostWork:
    """Edges of host work that take time; all arrays have shape (n,), by end."""

    edges: Ints
    chain: Ints
    start_ns: Ints
    end_ns: Ints


@computed
def replay_graph(trace: Trace) -> ReplayGraph:
    """Return the dependency graph of a trace.

    Raises:
        MissingDataError: the recorded links form a circle.
    """
    host, device = host_points(trace), trace.device_events
    count, rows = len(device), np.arange(len(device))
    ends = device["start_ns"].to_numpy(), device["end_ns"].to_numpy()
    fetch = host.fetches
    time_ns = np.concatenate((host.time_ns, *ends, host.time_ns[fetch]))
    numbering = Numbering(host=host, time_ns=time_ns, device_count=count)
    source, target, weight_ns, kind = _joined(all_edges(trace, numbering))
    order = scheduler.topological_order(source, target, len(time_ns))
    if len(order) < len(time_ns):
        msg = "the links of launches, streams and waits form a circle: record the trace again"
        raise MissingDataError(msg)
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    target = position[target]
    by_target = np.argsort(target, kind="stable")
    kinds = np.array([Point.DEVICE_START, Point.DEVICE_END, Point.READY], dtype=np.int8)
    other_kinds = np.repeat(kinds, (count, count, len(fetch)))
    return ReplayGraph(
        time_ns=time_ns[order],
        kind=np.concatenate((host.kind.astype(np.int8), other_kinds))[order],
        row=np.concatenate((host.row, rows, rows, host.row[fetch]))[order],
        chain=np.concatenate((host.chain, np.full(len(other_kinds), NONE)))[order],
        first_edge=scheduler.first_edges(target, len(order)),
        source=position[source][by_target],
        weight_ns=weight_ns[by_target],
        edge=kind[by_target],
    )


def _joined(parts: list[Edges]) -> tuple[Ints, Ints, Ints, Codes]:
    """Return sources, targets, weights and kinds of all edges, so that the parts can be freed."""
    source, target, weight_ns = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("source", "target", "weight_ns")
    )
    kinds = np.array([part.kind for part in parts], dtype=np.int8)
    return source, target, weight_ns, np.repeat(kinds, [len(part.source) for part in parts])
