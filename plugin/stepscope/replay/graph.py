"""Dependency graph of a trace: its points in time, and the edges that each of them waits for.

A point is a moment of a host thread (a launch, the entry into or the return from a blocking call, a
step's start or end) or the start or end of a device event. It happens as soon as all its edges
allow: at the latest of `time of the edge's source + the edge's weight`. So a weight is the time that
something takes: host work between two points of a thread, a device event, the delay from a launch
to its kernel. With the recorded weights the graph gives the recorded times back exactly.

The model is that of Daydream (Zhu et al., USENIX ATC 2020) and Lumos (Liang et al., MLSys 2025).
Threads that take turns (the loop and autograd's thread) form one chain: each runs while the others
are idle.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.host_activity import main_thread
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.devices.launch_order import stream_numbers
from stepscope.analyses.idle.device_waits import INFERRED, device_waits, event_waits, stream_predecessors
from stepscope.analyses.idle.host_waits import Activities, awaited_work, host_waits
from stepscope.model import intervals
from stepscope.model.trace import Trace, computed

NONE = -1
TAKES_TURNS = 0.05
"""Threads that overlap for less than this fraction of the shorter one's activity take turns."""
QUEUE_LENGTH = 1024
"""Launches that a CUDA device queues; a further launch blocks until one has started."""


class Point(IntEnum):
    """Kinds of points."""

    STEP = 0
    """A step's start or end."""
    LAUNCH = 1
    """A runtime call that launches device work begins."""
    ENTER = 2
    """A blocking call begins."""
    RETURN = 3
    """A blocking call returns."""
    EDGE = 4
    """The first or the last activity of a chain."""
    DEVICE_START = 5
    DEVICE_END = 6


class Edge(IntEnum):
    """Kinds of edges."""

    HOST = 0
    """Time of the host between two points of a chain."""
    LAUNCHED = 1
    """From a launch to the start of its work."""
    STREAM = 2
    """From the end of the work before on the stream."""
    EVENT = 3
    """From the end of another stream's work, by a recorded event."""
    INFERRED = 4
    """The same, inferred from times where the trace has no synchronization records."""
    RUNS = 5
    """From a device event's start to its end."""
    WAITED = 6
    """From the end of device work to the return of the call that waits for it."""
    QUEUED = 7
    """From the start of the work launched `QUEUE_LENGTH` launches before, to a launch."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplayGraph:
    """Points and edges; arrays of points have shape (n,), arrays of edges shape (m,)."""

    time_ns: NDArray[np.int64]
    """Recorded time of each point, on the trace's clock."""
    kind: NDArray[np.int8]
    """`Point` of each point."""
    row: NDArray[np.int64]
    """Row of `device_events`, `runtime_calls` or `steps`; -1 for `EDGE`."""
    chain: NDArray[np.int64]
    """Chain of a host point; -1 for the device's."""
    source: NDArray[np.int64]
    """The point that an edge comes from."""
    target: NDArray[np.int64]
    """The point that it leads to; edges are in the order of their targets."""
    weight_ns: NDArray[np.int64]
    edge: NDArray[np.int8]
    """`Edge` of each edge."""
    crossing_count: int
    """Edges left out since they lead back in time: clocks that cross, or damage."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Points:
    time_ns: NDArray[np.int64]
    kind: NDArray[np.int8]
    row: NDArray[np.int64]
    chain: NDArray[np.int64]


_Edges = list[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]
"""Edge kind, sources, targets and weights."""


@computed
def replay_graph(trace: Trace) -> ReplayGraph:
    """Return the dependency graph of a trace, whose replay gives the recorded times back."""
    host = _host_points(trace)
    count, device_count = len(host.time_ns), len(trace.device_events)
    start, end = (trace.device_events[name].to_numpy() for name in ("start_ns", "end_ns"))
    rows = np.arange(device_count)
    times = np.concatenate((host.time_ns, start, end))
    edges: _Edges = [_chains(host)]
    edges += _device_edges(trace, host, times)
    waits = _wait_edges(trace, host, times, edges[0])
    edges += waits
    return _graph(
        times,
        np.concatenate((host.kind, np.full(device_count, Point.DEVICE_START, np.int8), np.full(device_count, Point.DEVICE_END, np.int8))),
        np.concatenate((host.row, rows, rows)),
        np.concatenate((host.chain, np.full(2 * device_count, NONE))),
        edges,
    )


def chains_of_threads(active: Activities, first: int) -> dict[int, int]:
    """Return the chain of each thread: threads that take turns share one."""
    times = {
        int(thread): intervals.union(active.start_ns[active.thread == thread], active.end_ns[active.thread == thread])
        for thread in np.unique(active.thread)
    }
    busy = {thread: intervals.duration_ns(each) for thread, each in times.items()}
    order = sorted(times, key=lambda thread: (thread != first, -busy[thread]))
    chains: list[intervals.Intervals] = []
    result = {}
    for thread in order:
        for number, chain in enumerate(chains):
            overlap = intervals.duration_ns(intervals.intersection(chain, times[thread]))
            if overlap <= TAKES_TURNS * max(1, min(busy[thread], intervals.duration_ns(chain))):
                chains[number] = intervals.merged(chain, times[thread])
                result[thread] = number
                break
        else:
            result[thread] = len(chains)
            chains.append(times[thread])
    return result


def _host_points(trace: Trace) -> _Points:
    active = host_waits(trace).activities
    calls = trace.runtime_calls
    thread = calls["thread"].cat.codes.to_numpy()
    begin, stop = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    call_of = links(trace).call_of_device_event
    launches = np.unique(call_of[call_of >= 0])
    waits = synchronizations(trace).calls
    steps = trace.steps
    step_thread = steps["thread"].cat.codes.to_numpy()
    step_rows = np.arange(len(steps))
    parts = (
        (Point.STEP, step_thread, steps["start_ns"].to_numpy(), step_rows),
        (Point.STEP, step_thread, steps["end_ns"].to_numpy(), step_rows),
        (Point.LAUNCH, thread[launches], begin[launches], launches),
        (Point.ENTER, thread[waits], begin[waits], waits),
        (Point.RETURN, thread[waits], stop[waits], waits),
        (Point.EDGE, active.thread, active.start_ns, np.full(len(active.thread), NONE)),
        (Point.EDGE, active.thread, active.end_ns, np.full(len(active.thread), NONE)),
    )
    main = _code(trace, main_thread(trace))
    chains = chains_of_threads(active, main)
    known = np.full(max((*chains, int(thread.max(initial=0)), int(step_thread.max(initial=0)))) + 1, NONE)
    for each, number in chains.items():
        known[each] = number
    if (known[step_thread] < 0).any():
        known[step_thread[known[step_thread] < 0]] = 0
    kind = np.concatenate([np.full(len(part[1]), part[0], np.int8) for part in parts])
    chain = known[np.concatenate([part[1] for part in parts]).astype(np.int64)]
    time = np.concatenate([part[2] for part in parts]).astype(np.int64)
    row = np.concatenate([part[3] for part in parts]).astype(np.int64)
    edge = kind == Point.EDGE  # of the activities' ends, the first and the last of a chain are enough
    order = np.lexsort((kind, time, chain))
    order = order[chain[order] >= 0]
    is_end = np.zeros(len(order), dtype=bool)
    if len(order):
        change = np.flatnonzero(np.diff(chain[order])) + 1
        is_end[np.concatenate(([0], change))] = True
        is_end[np.concatenate((change - 1, [len(order) - 1]))] = True
    order = order[~edge[order] | is_end]
    return _Points(time_ns=time[order], kind=kind[order], row=row[order], chain=chain[order])


def _code(trace: Trace, thread: str) -> int:
    for frame in (trace.host_calls, trace.runtime_calls):
        categories = frame["thread"].cat.categories
        if thread in categories:
            return int(categories.get_loc(thread))
    return NONE


def _chains(host: _Points) -> tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    source = np.flatnonzero(host.chain[1:] == host.chain[:-1])
    weight = np.diff(host.time_ns)[source]
    return Edge.HOST, source, source + 1, weight


def _device_edges(trace: Trace, host: _Points, times: NDArray[np.int64]) -> _Edges:
    count, device_count = len(host.time_ns), len(trace.device_events)
    if not device_count:
        return []
    rows = np.arange(device_count)
    start, end = times[count : count + device_count], times[count + device_count :]
    point_of_call = np.full(len(trace.runtime_calls) + 1, NONE)
    is_launch = host.kind == Point.LAUNCH
    point_of_call[host.row[is_launch]] = np.flatnonzero(is_launch)
    launch = point_of_call[links(trace).call_of_device_event]
    before = stream_predecessors(trace)
    by_event = event_waits(trace)
    inferred = np.full(device_count, NONE)
    waits = device_waits(trace)
    inferred[waits.edge == INFERRED] = waits.awaited[waits.edge == INFERRED]
    candidates = [
        (Edge.LAUNCHED, launch),
        *((kind, np.where(work >= 0, work + count + device_count, NONE)) for kind, work in ((Edge.STREAM, before), (Edge.EVENT, by_event), (Edge.INFERRED, inferred))),
    ]
    edges: _Edges = [(Edge.RUNS, rows + count, rows + count + device_count, end - start)]
    padded = np.append(times, np.iinfo(np.int64).min // 2)
    ready = np.stack([padded[source] for _, source in candidates])
    ready = np.where(ready <= start, ready, np.iinfo(np.int64).min // 2)  # leads back in time
    binding = ready.argmax(axis=0)
    for number, (kind, source) in enumerate(candidates):
        valid = np.flatnonzero((source >= 0) & (ready[number] > np.iinfo(np.int64).min // 2))
        slack = start[valid] - ready[number][valid]
        is_binding = binding[valid] == number
        typical = int(np.median(slack[is_binding])) if is_binding.any() else 0
        weight = np.where(is_binding, slack, np.minimum(slack, typical))
        edges.append((kind, source[valid], valid + count, weight))
    edges.append(_queue_edges(trace, launch, times, count))
    return edges


def _queue_edges(trace: Trace, launch: NDArray[np.int64], times: NDArray[np.int64], count: int) -> tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    device = pd.factorize(trace.device_events["device"].to_numpy())[0]
    sources, targets = [], []
    for number in np.unique(device):
        rows = np.flatnonzero((device == number) & (launch >= 0))
        rows = rows[np.argsort(times[launch[rows]], kind="stable")]
        sources.append(rows[:-QUEUE_LENGTH] + count)
        targets.append(launch[rows[QUEUE_LENGTH:]])
    source, target = np.concatenate(sources), np.concatenate(targets)
    valid = times[source] <= times[target]
    return Edge.QUEUED, source[valid], target[valid], np.zeros(int(valid.sum()), dtype=np.int64)


def _wait_edges(trace: Trace, host: _Points, times: NDArray[np.int64], chain: tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]) -> _Edges:
    count, device_count = len(host.time_ns), len(trace.device_events)
    syncs = synchronizations(trace).calls
    if not device_count or not len(syncs):
        return []
    awaited = awaited_work(trace)
    point_of_call = np.full(len(trace.runtime_calls), NONE)
    is_return = np.flatnonzero(host.kind == Point.RETURN)
    point_of_call[host.row[is_return]] = is_return
    target = point_of_call[syncs]
    waited = (awaited >= 0) & (target >= 0)
    source, target_waited = awaited[waited] + count + device_count, target[waited]
    tail = times[target_waited] - times[source]
    _, chain_source, chain_target, weight = chain
    into = np.full(count, NONE)
    into[chain_target] = np.arange(len(chain_target))
    own = into[target_waited]
    is_valid = (tail >= 0) & (own >= 0)
    own = own[is_valid]
    weight[own] = np.minimum(weight[own], tail[is_valid])  # the rest of the call is the wait
    edges: _Edges = [(Edge.WAITED, source[is_valid], target_waited[is_valid], tail[is_valid])]
    idle = np.flatnonzero((awaited < 0) & (target >= 0))
    edges.append(_idle_waits(trace, target[idle], times, count))
    return edges


def _idle_waits(trace: Trace, target: NDArray[np.int64], times: NDArray[np.int64], count: int) -> tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return edges to calls that found the device idle: of the work launched last before them."""
    device_count = len(trace.device_events)
    end = times[count + device_count :]
    by_end = np.argsort(end, kind="stable")
    index = np.searchsorted(end[by_end], times[target], side="right") - 1
    valid = index >= 0
    source = by_end[index[valid]] + count + device_count
    return Edge.WAITED, source, target[valid], np.zeros(len(source), dtype=np.int64)


def _graph(times, kind, row, chain, edges: _Edges) -> ReplayGraph:
    source, target, weight = (np.concatenate([edge[field] for edge in edges]).astype(np.int64) for field in (1, 2, 3))
    kinds = np.concatenate([np.full(len(edge[1]), edge[0], np.int8) for edge in edges])
    order = np.argsort(target, kind="stable")
    valid = (times[source] + weight <= times[target])[order]
    order = order[valid]
    return ReplayGraph(
        time_ns=times, kind=kind, row=row, chain=chain, source=source[order], target=target[order],
        weight_ns=weight[order], edge=kinds[order], crossing_count=int((~valid).sum()),
    )
