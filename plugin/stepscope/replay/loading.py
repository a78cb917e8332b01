"""Batches made by worker processes in place of the loop."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stepscope.analyses.core.data_loading import (
    LONG_STEP_NS,
    USUAL_TENSORS,
    data_loading,
    handover_ns,
    tensor_count,
)
from stepscope.analyses.core.window import window
from stepscope.analyses.host.short_operator_runs import short_operator_runs
from stepscope.analyses.idle.loader_workers import worker_count
from stepscope.analyses.settings.recorded_settings import recorded_settings, usable_cpus
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.base.formatting import count, duration, share
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace, computed
from stepscope.replay.changes import Change
from stepscope.replay.edges import NEVER_NS, Edge
from stepscope.replay.graph import ReplayGraph, replay_graph

HANDOVER_NS = handover_ns(LONG_STEP_NS, USUAL_TENSORS)
"""The loop's time to take a batch that is ready from a worker, if its steps are long."""
HANDOVER_FACTORS = (0.75, 1.25)
"""The least and the most of it, as multiples: nearly all recorded medians lie between them."""
CONTENTION = 0.1
"""Slowdown of the loop's host per busy worker, although each has a core: they share caches, memory
and, of hyperthreads, the core. Measured: -0.01 and 0.03 in `cifar_resnet18` and `lightning_fetch`,
0.28 and 0.10 in the two spans of Kineto's pair of traces; this is their mean."""
CONTENTIONS = (0.0, 0.3)
"""The least and the most of it that ranges count with. By the step's change in pairs that ran in
turns, less the change of the calls for batches: 0.04 in `super_resolution`, 0.25 in `tabular`, 0.3
in `image_classifier`. Why they differ is unknown: a loop of convolutions or products was not slower
next to a busy process (least times, two cores). The range was fitted on these and the four above.
"""
FEWER_THREADS = (0.25, 1.3)
"""The least and the most by which the loop takes longer if its operators get half of the threads,
as multiples of the long operators' part: with workers on all cores of the threads, operators wait
for threads that wait for a core. Of 14 scripts on two cores the loop alone took 0.25 to 1.3 times
that part longer with one thread in eleven, 1.8 in one, and less in two; each was slower with a
worker beside two threads, by 5 to 29 % of the step, but one."""
LONG_OPERATOR_NS = 250_000
"""Operators that take less mostly run on one thread: they split no work, or little."""

MOST_HANDOVER = 2
"""Calls for a batch that take longer than so many handovers wait for the workers."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MoveLoading(Change):
    """Worker processes make the batches, and the loop takes them from a queue.

    The loop waits where the workers make batches more slowly than it takes them. Where loop and
    workers need more cores than there are, all of them get slower.
    """

    workers: int
    cores: int
    """Cores for the loop and its workers."""
    threads: float = 1
    """Cores that compute in the loop on average: one with a device, else up to those of an
    operator."""
    batch_ns: int | None = None
    """A worker's time for a batch; None: the recorded time, which the loop took itself."""
    handover_ns: int = HANDOVER_NS
    contention: float = CONTENTION
    fewer_threads: float = 1.0
    """Threads of operators now over those that they get, as they leave cores to the workers."""
    loop_factor: float = 1.0
    """Factor of the loop's time between batches, which follows from it."""

    @property
    def assumption(self) -> str:
        """A sentence on the numbers that the change rests on."""
        threads = count(round(self.threads), "computing thread")
        slower = (
            f" instead of {round(self.threads * self.fewer_threads)} (torch.set_num_threads), with "
            f"which it takes {share(self.loop_factor - 1)} longer,"
            if self.fewer_threads > 1
            else ""
        )
        return (
            f"{count(self.workers, 'worker')} and the loop with {threads}{slower} share "
            f"{count(self.cores, 'core')}; the loop takes {duration(self.handover_ns)} to receive "
            "a batch."
        )

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Replace the host's work in the calls by the handover, and let them wait for workers."""
        calls = FetchCalls.of(graph)
        if not len(calls.start_ns):
            return weight_ns
        work, index = graph.host_work, calls.index_of_host_work(graph)
        is_inside = index >= 0
        inside, outside = work.edges[is_inside], work.edges[~is_inside]
        load = self._load(
            calls.mean_ns * _ratio(weight_ns[inside], graph.weight_ns[inside]),
            calls.between_ns * _ratio(weight_ns[outside], graph.weight_ns[outside]),
        )
        changed = weight_ns.copy()
        changed[outside] = np.rint(weight_ns[outside] * load.host_factor)
        duration_ns = calls.duration_ns[index[is_inside]]
        changed[inside] = np.rint(graph.weight_ns[inside] * (self.handover_ns / duration_ns))
        made = graph.edges_into(Edge.MADE)
        is_first = ~np.isin(graph.target[calls.fetching], graph.target[made])
        changed[calls.fetching] = np.where(is_first, weight_ns[calls.fetching], NEVER_NS)
        changed[made] = load.period_ns
        changed[calls.loaded] = self.handover_ns
        return changed

    def step_ns(self, fetching_ns: float, between_ns: float) -> float:
        """Return the time from batch to batch, ns, of recorded times in and between the calls."""
        load = self._load(fetching_ns, between_ns)
        return max(between_ns * load.host_factor + self.handover_ns, load.period_ns)

    def _load(self, fetching_ns: float, between_ns: float) -> "Load":
        """Return the work of loop and workers per batch; without workers it takes two times."""
        batch_ns = fetching_ns if self.batch_ns is None else float(self.batch_ns)
        between_ns *= self.loop_factor
        loop_ns = between_ns + self.handover_ns
        step_ns = max(1.0, loop_ns, batch_ns / self.workers)
        core_ns = between_ns * min(self.threads, self.cores) + self.handover_ns + batch_ns
        crowding = max(1.0, core_ns / (self.cores * step_ns))
        busy_workers = batch_ns / (step_ns * crowding)
        return Load(
            host_factor=self.loop_factor * max(crowding, 1 + self.contention * busy_workers),
            period_ns=round(batch_ns / self.workers * crowding),
        )


def move_loading(trace: Trace, workers: int, cores: int | None = None) -> MoveLoading:
    """Return the change to a number of workers, where loop and workers have some cores.

    Without a number of cores it is the recorded one; of an unknown machine with a device, one for
    each worker and one for the loop. Where workers and the threads of operators need more cores
    than there are, operators get fewer threads, if their number was recorded. In a trace with
    workers that the loop waits for, a batch takes a worker the time in which all of them deliver
    one each.

    Raises:
        NotApplicableError: the trace has no call for a batch.
        MissingDataError: the number of cores, or of the recorded workers, is unknown, or the
            recorded workers keep up.
    """
    calls, has_device = fetch_calls(trace), bool(len(trace.device_events))
    if not len(calls.start_ns):
        msg = "no batch was fetched from a DataLoader"
        raise NotApplicableError(msg)
    cores = cores or usable_cpus(trace) or (workers + 1 if has_device else None)
    if cores is None:
        msg = "the number of cores was not recorded, and is not given"
        raise MissingDataError(msg, "stepscope.trace_handler(...)")
    threads = 1 if has_device else recorded_settings(trace).host.thread_count
    left = cores if threads is None else computing_threads(threads, workers, cores)
    fewer = 1.0 if threads is None else min(threads, cores) / left
    return MoveLoading(
        workers=workers,
        cores=cores,
        threads=left,
        fewer_threads=fewer,
        batch_ns=_batch_of_workers_ns(trace, calls),
        handover_ns=handover_ns(calls.between_ns, tensor_count(trace)),
        loop_factor=_loop_factor(trace, fewer, sum(FEWER_THREADS) / 2),
    )


def best_worker_count(trace: Trace, most: int) -> int:
    """Return the number of workers, up to `most`, whose step is the shortest at its worst.

    Raises:
        NotApplicableError: the trace has no call for a batch.
        MissingDataError: the number of cores is unknown.
    """
    calls = fetch_calls(trace)
    steps_ns = [
        move_loading_range(trace, workers)[0].step_ns(calls.mean_ns, calls.between_ns)
        for workers in range(1, most + 1)
    ]
    return 1 + int(np.argmin(steps_ns))


def computing_threads(threads: int, workers: int, cores: int) -> int:
    """Return the threads for the loop's operators: cores that workers need are left to them."""
    return min(threads, max(1, cores - workers))


def _loop_factor(trace: Trace, fewer: float, multiple: float) -> float:
    """Return the factor of the loop's time where its operators have so many times fewer threads."""
    if fewer == 1:
        return 1.0
    return 1 + (fewer - 1) * min(1.0, multiple * _long_operator_share(trace))


def move_loading_range(
    trace: Trace, workers: int, cores: int | None = None
) -> tuple[MoveLoading, MoveLoading]:
    """Return the change to a number of workers at its worst and at its best.

    They differ in what is unknown: `HANDOVER_FACTORS`, `CONTENTIONS` and `FEWER_THREADS`, and
    whether all operators of the loop use all of its threads or only the long ones do.

    Raises:
        NotApplicableError: the trace has no call for a batch.
        MissingDataError: the number of cores, or of the recorded workers, is unknown, or the
            recorded workers keep up.
    """
    change = move_loading(trace, workers, cores)
    computing = 1 + (change.threads - 1) * _long_operator_share(trace)
    fastest, slowest = (
        _loop_factor(trace, change.fewer_threads, multiple) for multiple in FEWER_THREADS
    )
    fastest_ns, slowest_ns = (round(factor * change.handover_ns) for factor in HANDOVER_FACTORS)
    return (
        replace(change, handover_ns=slowest_ns, contention=CONTENTIONS[1], loop_factor=slowest),
        replace(
            change,
            threads=computing,
            handover_ns=fastest_ns,
            contention=CONTENTIONS[0],
            loop_factor=fastest,
        ),
    )


@computed
def _long_operator_share(trace: Trace) -> float:
    """Return the part of the loop's time between batches that long operators take."""
    span = window(trace)
    loading = intervals.clip(data_loading(trace).times, span.start_ns, span.end_ns)
    short = intervals.difference(short_operator_runs(trace, LONG_OPERATOR_NS).times, loading)
    between_ns = span.host_duration_ns - intervals.duration_ns(loading)
    return max(0.0, 1 - intervals.duration_ns(short) / max(1, between_ns))


def _batch_of_workers_ns(trace: Trace, calls: "FetchCalls") -> int | None:
    """Return the time of a batch in the recorded workers; None: the loop made the batches."""
    loading = data_loading(trace)
    if loading.multi_process_count <= loading.single_process_count:
        return None
    ready_ns = handover_ns(calls.between_ns, tensor_count(trace))
    if calls.mean_ns <= MOST_HANDOVER * ready_ns:
        msg = "the recorded workers keep up: more of them would save nothing"
        raise MissingDataError(msg, "DataLoader(..., num_workers=0)")
    if not (workers := worker_count(trace)):
        msg = "the number of the recorded workers is unknown"
        raise MissingDataError(msg, "stepscope.trace_handler(...)")
    return round((calls.mean_ns + calls.between_ns) * workers)


def _ratio(weight_ns: Ints, recorded_ns: Ints) -> float:
    """Return the time of some of the host's work after earlier changes, over the recorded one."""
    return float(weight_ns.sum()) / max(1.0, float(recorded_ns.sum()))


@dataclass(frozen=True, kw_only=True)
class Load:
    """Effects of workers on the loop."""

    host_factor: float
    """Factor of the loop's host time."""
    period_ns: int
    """Time between batches that all workers together make."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FetchCalls:
    """The loop's calls for a batch, in the order of time; all arrays have shape (n,)."""

    fetching: Ints
    """Edge from a call's begin to its batch."""
    loaded: Ints
    """Edge from the batch to the call's return."""
    chain: Ints
    start_ns: Ints
    end_ns: Ints

    @classmethod
    def of(cls, graph: ReplayGraph) -> "FetchCalls":
        """Return the calls of a trace's graph."""
        fetching, loaded = (graph.edges_into(kind) for kind in (Edge.FETCHING, Edge.LOADED))
        return cls(
            fetching=fetching,
            loaded=loaded,
            chain=graph.chain[graph.source[fetching]],
            start_ns=graph.time_ns[graph.source[fetching]],
            end_ns=graph.time_ns[graph.target[loaded]],
        )

    @cached_property
    def duration_ns(self) -> Ints:
        """The time of each call."""
        return self.end_ns - self.start_ns

    @property
    def mean_ns(self) -> float:
        """Mean time of a call."""
        return float(self.duration_ns.mean())

    @property
    def between_ns(self) -> float:
        """Mean time between the end of a call and the begin of the next; 0 for a single call."""
        gaps = (self.start_ns[1:] - self.end_ns[:-1])[self.chain[1:] == self.chain[:-1]]
        return float(np.maximum(gaps, 0).mean()) if len(gaps) else 0.0

    def index_of_host_work(self, graph: ReplayGraph) -> Ints:
        """Return the call in which each edge of host work lies, or -1."""
        work = graph.host_work
        index = np.searchsorted(self.start_ns, work.start_ns, side="right") - 1
        is_inside = (index >= 0) & (work.end_ns <= self.end_ns[index])
        return np.where(is_inside & (self.chain[index] == work.chain), index, -1)


@computed
def fetch_calls(trace: Trace) -> FetchCalls:
    """Return the recorded calls of the loop for a batch."""
    return FetchCalls.of(replay_graph(trace))
