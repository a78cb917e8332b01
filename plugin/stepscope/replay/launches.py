"""Changes of launched work: removed, launched together, or inserted."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from stepscope.analyses.core import ancestry, frame_times
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.intervals import EMPTY, Intervals
from stepscope.model.trace import Trace
from stepscope.replay.changes import ChainTimes, Change, ScaleHost, Unblock
from stepscope.replay.edges import Edge
from stepscope.replay.graph import ReplayGraph
from stepscope.replay.points import chain_of_calls

STARTS = (Edge.LAUNCHED, Edge.STREAM, Edge.EVENT, Edge.INFERRED, Edge.FULL)
"""Edges to the start of a device event."""
GRAPH_GAP_NS = 1_000
"""Time between kernels of one graph launch, as in `calibration.FEWER_LAUNCHES`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Remove(Change):
    """Device events that no longer run, with or without the host's time for their launches."""

    rows: Ints
    """Rows of `device_events`."""
    host: Intervals = field(default_factory=lambda: EMPTY)
    """Times of the host that go with them (shape (n, 2), nanoseconds)."""

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Let the events take no time, and delay nothing."""
        changed = ScaleHost(times=self.host, factor=0, chain=None).apply(graph, weight_ns)
        for kind in (*STARTS, Edge.RUNS):
            edges = graph.edges_into(kind, self.rows)
            changed[edges] = np.minimum(changed[edges], 0)
        return changed


@dataclass(frozen=True, kw_only=True, eq=False)
class Join(Change):
    """Device events that follow an earlier launch: one graph launch in place of many launches."""

    rows: Ints
    """Rows of `device_events` without launches of their own: all but the first of each stretch."""
    host: Intervals
    """Times of the host that go: further launches, and the operators that make them."""
    gap_ns: int = GRAPH_GAP_NS
    """Time from the end of the work before on the stream to each event's start, at most."""

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Remove the host's time, and the delays of launches and streams."""
        changed = ScaleHost(times=self.host, factor=0, chain=None).apply(graph, weight_ns)
        for kind, most_ns in ((Edge.LAUNCHED, 0), (Edge.STREAM, self.gap_ns)):
            edges = graph.edges_into(kind, self.rows)
            changed[edges] = np.minimum(changed[edges], most_ns)
        return changed


@dataclass(frozen=True, kw_only=True, eq=False)
class InsertDevice(Change):
    """Device work in front of some events, on their streams."""

    rows: Ints
    """Rows of `device_events`."""
    duration_ns: Ints | int

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Add the work to the events' durations."""
        edges = graph.edges_into(Edge.RUNS)
        of_row = graph.row[graph.target[edges]]
        added = np.zeros(of_row.max(initial=-1) + 1, dtype=np.int64)
        np.add.at(added, self.rows, self.duration_ns)
        changed = weight_ns.copy()
        changed[edges] += added[of_row]
        return changed


@dataclass(frozen=True, kw_only=True, eq=False)
class InsertHost(Change):
    """Work of the host at some moments."""

    at_ns: Ints
    """Moments on the trace's clock; those outside the chain's time are without effect."""
    duration_ns: Ints | int
    chain: int = 0
    """The chain of threads that does it."""

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Add the work to the host's time between the points around each moment."""
        work = graph.host_work
        rows = np.flatnonzero(work.chain == self.chain)
        index = np.searchsorted(work.start_ns[rows], self.at_ns, side="right") - 1
        is_inside = (index >= 0) & (self.at_ns < np.append(work.end_ns[rows], 0)[index])
        added = np.broadcast_to(self.duration_ns, is_inside.shape)[is_inside]
        changed = weight_ns.copy()
        np.add.at(changed, work.edges[rows][index[is_inside]], added)
        return changed


def remove(trace: Trace, rows: Ints, *, with_launches: bool = True) -> Remove:
    """Return the removal of rows of `device_events`, and of the calls that launch only them."""
    if not with_launches:
        return Remove(rows=rows)
    is_removed = np.zeros(len(trace.device_events), dtype=bool)
    is_removed[rows] = True
    call = links(trace).call_of_device_event
    return Remove(rows=rows, host=_times(trace, np.setdiff1d(call[rows], call[~is_removed])))


class RemovedCalls(NamedTuple):
    """Calls that go, with all that they launch and wait for."""

    changes: tuple[Change, ...]
    """Changes of device work and of waits."""
    host: tuple[ChainTimes, ...]
    """Times of the calls' threads that go."""


def remove_calls(trace: Trace, rows: Ints) -> RemovedCalls:
    """Return the removal of rows of `host_calls`, with all that they launch and wait for."""
    calls, linked, waits = trace.host_calls, links(trace), synchronizations(trace).calls
    is_removed = np.zeros(len(calls), dtype=bool)
    is_removed[rows] = True
    launching, waiting = (
        ancestry.nearest_of(calls["parent"].to_numpy(), owner, is_removed) >= 0
        for owner in (linked.owner_of_device_event, linked.owner_of_call[waits])
    )
    return RemovedCalls(
        changes=(Remove(rows=np.flatnonzero(launching)), Unblock(calls=waits[waiting])),
        host=tuple(_times_by_chain(trace, rows)),
    )


def _times_by_chain(trace: Trace, rows: Ints) -> Iterator[ChainTimes]:
    chain = chain_of_calls(trace)[rows]
    for number in np.unique(chain[chain >= 0]):
        times = frame_times.times(trace.host_calls, rows[chain == number])
        yield ChainTimes(int(number), times)


def join(trace: Trace, start_ns: int, end_ns: int) -> Join:
    """Return one launch for all device events that calls from `start_ns` to `end_ns` launch.

    The host's time from the end of the first call to `end_ns` goes.
    """
    call = links(trace).call_of_device_event
    begin = np.append(trace.runtime_calls["start_ns"].to_numpy(), -1)[call]
    rows = np.flatnonzero((call >= 0) & (begin >= start_ns) & (begin < end_ns))
    if not len(rows):
        return Join(rows=rows, host=EMPTY)
    first = call[rows[begin[rows].argmin()]]
    until = int(trace.runtime_calls["end_ns"].to_numpy()[first])
    host = intervals.clip(np.array([[until, end_ns]]), until, end_ns)
    return Join(rows=rows[call[rows] != first], host=host)


def _times(trace: Trace, calls: Ints) -> Intervals:
    calls = calls[calls >= 0]
    columns = (trace.runtime_calls[name].to_numpy()[calls] for name in ("start_ns", "end_ns"))
    return intervals.union(*columns)
