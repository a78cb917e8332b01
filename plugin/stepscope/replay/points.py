"""Points of a trace: moments of host threads at which something begins to wait, or to run."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.host_activity import main_thread
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.device_waits import LAUNCH, LAUNCH_OUTLIER_NS, device_waits
from stepscope.analyses.idle.host_waits import Activities, host_waits
from stepscope.model import call_tree, intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.spans import spans
from stepscope.model.trace import Trace, computed

MOST_OVERLAP = 0.05
"""Threads that overlap by less than this fraction of the shorter one's activity take turns."""


class Point(IntEnum):
    """Kinds of points; those of the host are in the order in which they follow at one time."""

    FIRST = 0
    """The first activity of a chain begins."""
    RETURN = 1
    """A blocking call returns."""
    FETCHED = 2
    """A call for the next batch returns."""
    STEP = 3
    """A step begins or ends; without steps and devices, the window."""
    FETCH = 4
    """A call for the next batch begins."""
    ENTER = 5
    """A blocking call begins."""
    LAUNCH = 6
    """A runtime call launches device work: at its start, or later if the host is busy in it."""
    LAST = 7
    """The last activity of a chain ends."""
    DEVICE_START = 8
    DEVICE_END = 9
    READY = 10
    """A batch can be fetched, if workers load it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HostPoints:
    """Points of the host by chain, then time; all arrays have shape (n,)."""

    time_ns: Ints
    kind: Ints
    """`Point`."""
    row: Ints
    """Row of `steps`, `host_calls` (fetches) or `runtime_calls`; -1 for `FIRST`, `LAST` and the
    window's ends."""
    chain: Ints
    """Number of the chain: of the threads that take turns with each other."""

    @property
    def fetches(self) -> Ints:
        """The points at which calls for a batch begin."""
        return np.flatnonzero(self.kind == Point.FETCH)

    def of_rows(self, kind: Point, call_count: int) -> Ints:
        """Return, for each row of calls, its point of a kind, or -1."""
        points = np.full(call_count + 1, NONE)  # the last is of row -1
        of_kind = np.flatnonzero(self.kind == kind)
        points[self.row[of_kind]] = of_kind
        return points


def host_points(trace: Trace) -> HostPoints:
    """Return the host's points; threads that neither run operators nor launch work have none."""
    parts = list(_parts(trace))
    thread, time_ns, kind, row = (
        np.concatenate([part[name] for part in parts])
        for name in ("thread", "time_ns", "kind", "row")
    )
    chain = chain_of_thread(trace)[thread]
    order = np.lexsort((row, kind, time_ns, chain))
    order = order[np.searchsorted(chain[order], 0) :]  # chain -1: threads without points
    chain, kind = chain[order], kind[order]
    is_first = np.append(True, chain[1:] != chain[:-1])[: len(chain)]
    is_last = np.append(chain[1:] != chain[:-1], True)[: len(chain)]
    is_extent = (kind == Point.FIRST) | (kind == Point.LAST)
    rows = np.flatnonzero(~is_extent | is_first | is_last)
    order = order[rows]
    return HostPoints(time_ns=time_ns[order], kind=kind[rows], row=row[order], chain=chain[rows])


def chain_of_calls(trace: Trace) -> Ints:
    """Return the chain of each row of `host_calls`; -1: its thread has no points."""
    return chain_of_thread(trace)[trace.host_calls["thread"].cat.codes.to_numpy()]


@computed
def chain_of_thread(trace: Trace) -> Ints:
    """Return the chain of each code of the frames' `thread`, or -1; the last is of no thread."""
    chain_of = _chains_of_threads(host_waits(trace).activities, _code_of_main_thread(trace))
    threads = len(trace.host_calls["thread"].cat.categories)
    chains = np.full(max(threads, *chain_of, 0) + 2, NONE)
    chains[list(chain_of)] = list(chain_of.values())
    return chains


def _parts(trace: Trace) -> Iterator[dict[str, Ints]]:
    active, steps = host_waits(trace).activities, trace.steps
    thread, start, end = spans(trace.runtime_calls)
    launched_by = links(trace).call_of_device_event
    is_launch = np.zeros(len(start) + 1, dtype=bool)  # the last is of row -1
    is_launch[launched_by] = True
    launches = np.flatnonzero(is_launch[:-1])
    waits = synchronizations(trace).calls
    waits = waits[start[waits] < end[waits]]
    yield _part(Point.LAUNCH, thread[launches], _launch_ns(trace)[launches], launches)
    yield _part(Point.ENTER, thread[waits], start[waits], waits)
    yield _part(Point.RETURN, thread[waits], end[waits], waits)
    fetches = _fetches(trace)
    loading, begin, until = spans(trace.host_calls.iloc[fetches])
    yield _part(Point.FETCH, loading, begin, fetches)
    yield _part(Point.FETCHED, loading, until, fetches)
    no_row = np.full(len(active.thread), NONE)
    yield _part(Point.FIRST, active.thread, active.start_ns, no_row)
    yield _part(Point.LAST, active.thread, active.end_ns, no_row)
    stepping, *extents = spans(steps)
    for time_ns in extents:
        yield _part(Point.STEP, stepping, time_ns, np.arange(len(steps)))
    if not len(steps) and not len(trace.device_events):
        span, main = window(trace), np.full(2, _code_of_main_thread(trace))
        ends = np.array((span.start_ns, span.end_ns))
        yield _part(Point.STEP, main, ends, np.full(2, NONE))


def _launch_ns(trace: Trace) -> Ints:
    """Return the time at which each runtime call launches its work, shape (calls,).

    It is the call's start. Where the work begins long after it with no other reason, the host is
    busy in the call: it stages a copy, allocates memory or loads a module.
    """
    _, start, end = spans(trace.runtime_calls)
    call, waits = links(trace).call_of_device_event, device_waits(trace)
    begin = trace.device_events["start_ns"].to_numpy()
    rows = np.flatnonzero(waits.edge == LAUNCH)
    rows = rows[begin[rows] - start[call[rows]] > LAUNCH_OUTLIER_NS]
    work_ns = np.full(len(start), np.iinfo(np.int64).max)
    np.minimum.at(work_ns, call[rows], begin[rows])
    is_busy = (work_ns < np.iinfo(np.int64).max) & (end - start > LAUNCH_OUTLIER_NS)
    return np.where(is_busy, np.minimum(work_ns, end), start)


def _fetches(trace: Trace) -> Ints:
    """Return the outermost calls for the next batch, as `host_calls` rows."""
    rows = data_loading(trace).rows
    thread, start, end = spans(trace.host_calls.iloc[rows])
    is_outermost = call_tree.nest(thread, start, end - start).parent < 0
    return rows[is_outermost & (start < end)]


def _part(kind: Point, thread: NDArray[np.integer], time_ns: Ints, row: Ints) -> dict[str, Ints]:
    return {
        "kind": np.full(len(row), kind),
        "thread": thread.astype(np.int64),
        "time_ns": time_ns,
        "row": row,
    }


def _code_of_main_thread(trace: Trace) -> int:
    categories = trace.host_calls["thread"].cat.categories
    name = main_thread(trace)
    return categories.tolist().index(name) if name in categories else NONE


def _chains_of_threads(active: Activities, main: int) -> dict[int, int]:
    """Return the chain of each thread that is active, the main thread's first.

    Threads that take turns (the training loop's and autograd's) share a chain: each of them runs
    while the others wait for it. Threads that run at the same time have chains of their own.
    """
    times = {int(code): _times_of(active, int(code)) for code in np.unique(active.thread)}
    busy_ns = {code: intervals.duration_ns(active) for code, active in times.items()}
    chains: list[intervals.Intervals] = []
    chain_of = {main: 0} if main not in times else {}
    for code in sorted(times, key=lambda code: (code != main, -busy_ns[code])):
        number = next(
            (i for i, chain in enumerate(chains) if _take_turns(chain, times[code])), len(chains)
        )
        if number == len(chains):
            chains.append(times[code])
        chains[number] = intervals.merged(chains[number], times[code])
        chain_of[code] = number
    return chain_of


def _times_of(active: Activities, thread: int) -> intervals.Intervals:
    of_thread = active.thread == thread
    return intervals.union(active.start_ns[of_thread], active.end_ns[of_thread])


def _take_turns(left: intervals.Intervals, right: intervals.Intervals) -> bool:
    shorter_ns = min(intervals.duration_ns(left), intervals.duration_ns(right))
    overlap_ns = intervals.duration_ns(intervals.intersection(left, right))
    return overlap_ns <= MOST_OVERLAP * shorter_ns
