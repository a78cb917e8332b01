"""Edges between the points of a trace: the reasons why each of them is not earlier."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
import pandas as pd

from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.idle import device_waits
from stepscope.analyses.idle.host_waits import awaited_work
from stepscope.analyses.idle.ledger import SYNC_SLACK_NS
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.trace import Trace
from stepscope.replay.full_devices import TAIL_NS, filling_work
from stepscope.replay.points import HostPoints, Point

QUEUE_LENGTH = 1024
"""Launches that a CUDA device queues; the next one blocks the host until one has begun."""


class Edge(IntEnum):
    """Kinds of edges, by what the target waits for."""

    HOST = 0
    """The host's time since the point before on its chain."""
    LAUNCHED = 1
    """The launch of a device event."""
    STREAM = 2
    """The end of the work before on the stream."""
    EVENT = 3
    """The end of work of another stream, by a recorded event."""
    INFERRED = 4
    """The same, inferred from times, where the trace has no synchronization records."""
    RUNS = 5
    """The start of a device event, for its end."""
    WAITED = 6
    """The end of device work, for the return of the call that waits for it."""
    QUEUED = 7
    """The start of the work launched `QUEUE_LENGTH` launches before, for a launch."""
    FETCHING = 8
    """The call for a batch, for the batch: the loop makes it, as recorded."""
    MADE = 9
    """The batch before, for the next one: workers make them. Dormant, as recorded."""
    LOADED = 10
    """The batch, for the return of the call for it. Dormant, as recorded."""
    ANCHORED = 11
    """The main thread's latest point, for a point that nothing else explains."""
    FULL = 12
    """The end of long work of another stream, which filled the device (see `full_devices`)."""


NEVER_NS = np.iinfo(np.int64).min // 4
"""Weight of an edge that does not hold its target back: it is dormant, or a change dropped it."""


OVERLAP_NS = 5_000
"""A kernel may begin before the one before it on its stream has ended (programmatic dependent
launch, from Hopper on): up to 2.1 µs in recordings of an H200. It waits for it all the same."""
LEAST_WEIGHT_NS = {
    Edge.STREAM: -OVERLAP_NS,
    Edge.WAITED: -SYNC_SLACK_NS,
    Edge.FULL: -TAIL_NS,
}
"""Kinds of edges whose weight may be negative."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Edges:
    """Edges of one kind; all arrays have shape (n,)."""

    kind: Edge
    source: Ints
    """Index of a point."""
    target: Ints
    weight_ns: Ints
    """Least time from source to target; `NEVER_NS` where it is dormant.

    It is negative only of waits, by at most `SYNC_SLACK_NS`: the call returns before the work that
    it waited for ends, since the clocks of host and device differ; of full devices, by less than
    `TAIL_NS`; and of streams, by at most `OVERLAP_NS`. The work has always begun before the target,
    so that no circle arises.
    """


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbering:
    """Numbers of all points: the host's, device events' starts, their ends, then batches."""

    host: HostPoints
    time_ns: Ints
    device_count: int

    @property
    def first_start(self) -> int:
        """Number of the first device event's start."""
        return len(self.host.time_ns)

    @property
    def first_end(self) -> int:
        """Number of the first device event's end."""
        return self.first_start + self.device_count

    @property
    def first_batch(self) -> int:
        """Number of the first batch."""
        return self.first_end + self.device_count


def all_edges(trace: Trace, numbering: Numbering) -> list[Edges]:
    """Return the edges of a trace by kind; those that lead back in time are left out."""
    chain, waits = _host_edges(trace, numbering)
    edges = [chain, waits, *_batch_edges(numbering)]
    if numbering.device_count:
        launch = _launch_points(trace, numbering)
        edges += [_running(numbering), *_device_edges(trace, numbering, launch)]
        edges.append(_queue_edges(trace, numbering, launch))
    edges = [_forward(numbering, part) for part in edges]
    return [*edges, _anchors(numbering, edges)]


def _anchors(numbering: Numbering, edges: list[Edges]) -> Edges:
    """Return an edge from the main thread to each point that nothing else explains.

    Such are work whose launch was not recorded, and other threads: they follow the main thread as
    far behind its last point as they were recorded.
    """
    host, time_ns = numbering.host, numbering.time_ns
    is_explained = np.zeros(len(time_ns), dtype=bool)
    for part in edges:
        is_explained[part.target] = True
    main = np.flatnonzero(host.chain == 0)
    is_explained[main] = True
    orphans = np.flatnonzero(~is_explained)
    before = np.searchsorted(time_ns[main], time_ns[orphans], side="left") - 1
    orphans, source = orphans[before >= 0], main[before[before >= 0]]
    lag_ns = time_ns[orphans] - time_ns[source]
    return Edges(kind=Edge.ANCHORED, source=source, target=orphans, weight_ns=lag_ns)


def _forward(numbering: Numbering, edges: Edges) -> Edges:
    """Leave out edges that contradict the recorded times: clocks that cross, or damage."""
    time_ns, source, target = numbering.time_ns, edges.source, edges.target
    least_ns = LEAST_WEIGHT_NS.get(edges.kind, 0)
    is_forward = time_ns[source] + edges.weight_ns <= time_ns[target]
    is_dormant = edges.weight_ns == NEVER_NS
    index = np.flatnonzero(is_forward & (is_dormant | (edges.weight_ns >= least_ns)))
    weight_ns = edges.weight_ns[index]
    return replace(edges, source=source[index], target=target[index], weight_ns=weight_ns)


def _host_edges(trace: Trace, numbering: Numbering) -> tuple[Edges, Edges]:
    """Return the edges of chains, and those of calls that wait for device work.

    After a wait, the host's time is what the call takes once the device has ended: nothing, if by
    the clocks it returns before.
    """
    host, time_ns = numbering.host, numbering.time_ns
    source = np.flatnonzero(host.chain[1:] == host.chain[:-1])
    weight = time_ns[source + 1] - time_ns[source]
    into = np.full(len(host.time_ns) + 1, NONE)
    into[source + 1] = np.arange(len(source))
    waits = _waits(trace, numbering)
    did_wait = time_ns[waits.source] + waits.weight_ns == time_ns[waits.target]
    into_return = into[waits.target[did_wait]]
    tail_ns = np.maximum(0, waits.weight_ns[did_wait])
    weight[into_return] = np.minimum(weight[into_return], tail_ns)
    chain = Edges(kind=Edge.HOST, source=source, target=source + 1, weight_ns=weight)
    return chain, waits


def _batch_edges(numbering: Numbering) -> Iterator[Edges]:
    """Yield the edges to and from batches: made by the loop, or by workers one after the other."""
    host, fetch = numbering.host, numbering.host.fetches
    batch = np.arange(len(fetch)) + numbering.first_batch
    returns = host.of_rows(Point.FETCHED, int(host.row[fetch].max(initial=NONE)) + 1)
    is_next = np.flatnonzero(host.chain[fetch[1:]] == host.chain[fetch[:-1]])
    for kind, source, target, weight_ns in (
        (Edge.FETCHING, fetch, batch, 0),
        (Edge.MADE, batch[is_next], batch[is_next + 1], NEVER_NS),
        (Edge.LOADED, batch, returns[host.row[fetch]], NEVER_NS),
    ):
        weights = np.full(len(source), weight_ns)
        yield Edges(kind=kind, source=source, target=target, weight_ns=weights)


def _waits(trace: Trace, numbering: Numbering) -> Edges:
    """Return an edge per blocking call: from the work that it waits for.

    A call that did not wait, since the device was idle, would wait for the work that ended last.
    Work that begins when the call returns may follow it: it is not waited for.
    """
    calls = synchronizations(trace).calls
    target = numbering.host.of_rows(Point.RETURN, len(trace.runtime_calls))[calls]
    work, time_ns = awaited_work(trace), numbering.time_ns
    end_ns = time_ns[numbering.first_end : numbering.first_batch]
    by_end = np.argsort(end_ns, kind="stable")
    index = np.searchsorted(end_ns[by_end], time_ns[target], side="right") - 1
    last = np.append(by_end, NONE)[index]
    did_wait = work >= 0
    work = np.where(did_wait, work, last)
    start_ns = np.append(time_ns[numbering.first_start : numbering.first_end], NEVER_NS)
    has_work = (work >= 0) & (target >= 0) & (start_ns[work] < time_ns[target])
    source = work[has_work] + numbering.first_end
    slack = time_ns[target[has_work]] - time_ns[source]
    return Edges(
        kind=Edge.WAITED,
        source=source,
        target=target[has_work],
        weight_ns=_weights(slack, did_wait[has_work]),
    )


def _weights(slack_ns: Ints, is_binding: Mask, is_typical: Mask | None = None) -> Ints:
    """Return weights: the slack of edges that bound their target, else at most a typical one.

    The typical slack is the median of those that bound, in `is_typical` if it is given.
    """
    sample = slack_ns[is_binding if is_typical is None else is_typical]
    typical = max(0, int(np.median(sample))) if len(sample) else 0
    return np.where(is_binding, slack_ns, np.minimum(slack_ns, typical))


def _launch_points(trace: Trace, numbering: Numbering) -> Ints:
    """Return, for each device event, the point of its launch, or -1."""
    of_call = numbering.host.of_rows(Point.LAUNCH, len(trace.runtime_calls))
    return of_call[links(trace).call_of_device_event]


def _running(numbering: Numbering) -> Edges:
    source = np.arange(numbering.first_start, numbering.first_end)
    target = source + numbering.device_count
    weight = numbering.time_ns[target] - numbering.time_ns[source]
    return Edges(kind=Edge.RUNS, source=source, target=target, weight_ns=weight)


def _device_edges(trace: Trace, numbering: Numbering, launch: Ints) -> list[Edges]:
    """Return the edges to device events' starts: of each, one binds, which explains its time.

    It is the one whose source, with the typical delay of its kind, is latest; but that from the
    work that filled the device, if there is one.
    """
    waits = device_waits.device_waits(trace)
    inferred = np.where(waits.edge == device_waits.INFERRED, waits.awaited, NONE)
    sources = {Edge.LAUNCHED: launch}
    for kind, work in (
        (Edge.STREAM, device_waits.stream_predecessors(trace)),
        (Edge.EVENT, device_waits.event_predecessors(trace)),
        (Edge.INFERRED, inferred),
    ):
        sources[kind] = np.where(work >= 0, work + numbering.first_end, NONE)
    start = np.arange(numbering.first_start, numbering.first_end)
    never = np.iinfo(np.int64).min // 2
    time_ns = np.append(numbering.time_ns, never)
    ready = np.stack([time_ns[source] for source in sources.values()])
    overlap_ns = [-LEAST_WEIGHT_NS.get(kind, 0) for kind in sources]
    ready[ready > time_ns[start] + np.array(overlap_ns)[:, None]] = never
    slack = time_ns[start] - ready
    filling = filling_work(trace)
    latest = np.where((launch >= 0) & (filling < 0), ready.argmax(axis=0), NONE)
    typical = [_quartile(slack[number, latest == number]) for number in range(len(sources))]
    binding = (ready + np.array(typical)[:, None]).argmax(axis=0)
    binding[filling >= 0] = NONE
    edges = [_full(numbering, filling)]
    for number, (kind, source) in enumerate(sources.items()):
        index = np.flatnonzero(ready[number] > never)
        is_binding = binding[index] == number
        weight = _weights(slack[number, index], is_binding, is_binding & (launch[index] >= 0))
        edges.append(Edges(kind=kind, source=source[index], target=start[index], weight_ns=weight))
    return edges


def _full(numbering: Numbering, filling: Ints) -> Edges:
    rows = np.flatnonzero(filling >= 0)
    source, target = filling[rows] + numbering.first_end, rows + numbering.first_start
    delay_ns = numbering.time_ns[target] - numbering.time_ns[source]
    return Edges(kind=Edge.FULL, source=source, target=target, weight_ns=delay_ns)


def _quartile(delay_ns: Ints) -> int:
    """Return the first quartile of delays: those above it may have waited for something else."""
    return int(np.percentile(delay_ns, 25)) if len(delay_ns) else 0


def _queue_edges(trace: Trace, numbering: Numbering, launch: Ints) -> Edges:
    """Return edges that keep the host from launching more than a device's queue holds."""
    device, _ = pd.factorize(trace.device_events["device"].to_numpy())
    source, target = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for number in range(device.max(initial=NONE) + 1):
        rows = np.flatnonzero((device == number) & (launch >= 0))
        rows = rows[np.argsort(numbering.time_ns[launch[rows]], kind="stable")]
        source.append(rows[:-QUEUE_LENGTH] + numbering.first_start)
        target.append(launch[rows[QUEUE_LENGTH:]])
    sources, targets = np.concatenate(source), np.concatenate(target)
    weight = np.zeros(len(sources), dtype=np.int64)
    return Edges(kind=Edge.QUEUED, source=sources, target=targets, weight_ns=weight)
