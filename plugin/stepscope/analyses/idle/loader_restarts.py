"""Shutdowns and restarts of the DataLoader's workers at the ends of epochs.

With stacks: `DataLoader.__iter__` (torch/utils/data/dataloader.py) that starts processes after a
batch was loaded, and `_shutdown_workers`. Without stacks: a long last call of an epoch (it shuts
the workers down; with persistent workers it is short), after which only the new iterator's seed is
drawn before the next call.

Workers are forked, mostly: until a new worker ends, the loop copies each page of memory that it
writes first. Where the work after a restart has as many calls as usual, but takes longer, that is
why.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.data_loading import MULTI_PROCESS, data_loading
from stepscope.analyses.core.window import window
from stepscope.model import call_tree, intervals
from stepscope.model.arrays import Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.spans import spans
from stepscope.model.intervals import EMPTY, Intervals
from stepscope.model.trace import Trace

SOURCE = r"(?:^|[/\\])torch[/\\]utils[/\\]data[/\\]dataloader\.py\(\d+\): "
NEW_ITERATOR = re.compile(SOURCE + "__iter__$")
SHUTDOWN = re.compile(SOURCE + "_shutdown_workers$")
PROCESS_START = re.compile(r"(?:^|[/\\])multiprocessing[/\\]process\.py\(\d+\): start$")
SEED = "aten::random_"
OF_ITERATOR = frozenset(
    # torch/utils/data/dataloader.py `_BaseDataLoaderIter.__init__` and sampler.py `__iter__`: seeds
    {SEED, "aten::empty", "aten::item", "aten::_local_scalar_dense", "aten::randperm"}
)
LEAST_SHUTDOWN_NS = 1_000_000
"""Ending a process takes longer; a last call without shutdown takes some 20 µs."""
MOST_END_NS = 200_000
"""A last call without shutdown takes less, and every batch of a worker more."""
LEAST_SLOWDOWN = 0.05
"""Of usual work: less is noise. Measured after a fork of a small job: 0.5 to 0.7."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LoaderRestarts:
    """Restarts in the window, as times of the host; persistent workers save `sure`."""

    count: int
    worker_counts: tuple[int, ...]
    """Number of processes started in each restart; empty without stacks."""
    shutdown: Intervals
    """Waiting for the old workers to end."""
    start: Intervals
    """Creating the new iterator and starting its workers."""
    first_batch: Intervals
    """The first call after a restart, beyond the duration of a usual call."""
    slow_work: Intervals
    """The work on the first batch, with as many calls as usual, beyond its usual duration."""
    batch_count: int
    """Number of calls for a batch from workers."""

    @property
    def sure(self) -> Intervals:
        """Times of shutdown, start and slow work."""
        return intervals.merged(self.shutdown, self.start, self.slow_work)

    @property
    def all(self) -> Intervals:
        """Times of `sure` and of the first batch."""
        return intervals.merged(self.sure, self.first_batch)


NO_RESTART = LoaderRestarts(
    count=0,
    worker_counts=(),
    shutdown=EMPTY,
    start=EMPTY,
    first_batch=EMPTY,
    slow_work=EMPTY,
    batch_count=0,
)


def loader_restarts(trace: Trace) -> LoaderRestarts:
    """Return the restarts of workers in the window."""
    loading = data_loading(trace)
    calls = trace.host_calls.iloc[loading.rows]
    calls = calls[name_mask(calls["name"], MULTI_PROCESS.search)].sort_values("start_ns")
    if not len(calls):
        return NO_RESTART
    restarts = _by_stacks(trace, calls) if _has_stacks(trace) else _by_calls(trace, calls)
    edges = _EpochEdges.of(calls, restarts)
    return replace(
        restarts,
        first_batch=_in_window(trace, edges.first_batches()),
        slow_work=_in_window(trace, edges.slow_work(trace)),
        batch_count=len(calls),
    )


def _has_stacks(trace: Trace) -> bool:
    names = trace.python_calls["name"]
    return any(re.search(SOURCE, str(name)) for name in names.cat.categories)


def _by_stacks(trace: Trace, calls: pd.DataFrame) -> LoaderRestarts:
    python = trace.python_calls
    names = python["name"]
    made = python[name_mask(names, NEW_ITERATOR.search)]
    shut = python[name_mask(names, SHUTDOWN.search)]
    shut = shut[(shut["end_ns"] - shut["start_ns"] >= LEAST_SHUTDOWN_NS).to_numpy()]
    started = python[name_mask(names, PROCESS_START.search)]
    around = call_tree.enclosing(spans(made), spans(started))
    worker_count = np.bincount(around[around >= 0], minlength=len(made))
    # an iterator before the first batch is that of the first epoch
    again = made["start_ns"].to_numpy() > int(calls["start_ns"].iloc[0])
    again &= (worker_count > 0) & _begins_in_window(trace, made)
    return replace(
        NO_RESTART,
        count=int(again.sum()),
        worker_counts=tuple(worker_count[again].tolist()),
        shutdown=_in_window(trace, frame_times.times(shut, frame_times.ALL))
        if again.any()
        else EMPTY,
        start=_in_window(trace, frame_times.times(made, again)),
    )


def _by_calls(trace: Trace, calls: pd.DataFrame) -> LoaderRestarts:
    """Return the restarts by calls that shut workers down, before only a new iterator is made."""
    begin, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    ended, following = end[:-1], begin[1:]
    is_edge = (end - begin)[:-1] >= LEAST_SHUTDOWN_NS
    is_edge &= calls["thread"].to_numpy()[:-1] == calls["thread"].to_numpy()[1:]
    is_edge &= _begins_in_window(trace, calls)[:-1]
    for is_named, has_any in ((SEED.__eq__, True), (_is_not_of_iterator, False)):
        if not is_edge.any():
            return NO_RESTART
        is_edge &= (_count_between(trace, ended, following, is_named) > 0) == has_any
    return replace(
        NO_RESTART,
        count=int(is_edge.sum()),
        shutdown=_in_window(trace, intervals.union(begin[:-1][is_edge], ended[is_edge])),
        start=_in_window(trace, intervals.union(ended[is_edge], following[is_edge])),
    )


def begins_epoch(trace: Trace, rows: Ints) -> Mask:
    """Return whether some calls for a batch, in the order of time, begin an epoch.

    The call before each then only ends the epoch before: it is short, and nothing is computed
    between the two. No worker can make a batch ahead of it.
    """
    calls = trace.host_calls.iloc[rows]
    begin_ns, end_ns = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    begins = np.zeros(len(rows), dtype=bool)
    if len(rows) > 1:
        computed_count = _count_between(trace, end_ns[:-1], begin_ns[1:], _is_not_of_iterator)
        begins[1:] = ((end_ns - begin_ns)[:-1] <= MOST_END_NS) & (computed_count == 0)
    return begins


def _is_not_of_iterator(name: str) -> bool:
    return name not in OF_ITERATOR


def _count_between(
    trace: Trace,
    after_ns: Ints,
    before_ns: Ints,
    is_named: Callable[[str], object],
) -> Ints:
    calls = trace.host_calls
    selected = name_mask(calls["name"], is_named) & calls["is_operator"].to_numpy()
    start = np.sort(calls["start_ns"].to_numpy()[selected], kind="stable")
    counts = np.searchsorted(start, before_ns) - np.searchsorted(start, after_ns)
    return np.asarray(counts, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class _EpochEdges:
    """The calls for a batch of a loop that restarts its workers; all arrays have shape (n,)."""

    begin_ns: Ints
    end_ns: Ints
    first: Ints
    """Indices of the first calls after a restart."""
    is_usual: Mask
    """Neither the first call of an epoch nor the one that ends it."""

    @classmethod
    def of(cls, calls: pd.DataFrame, restarts: LoaderRestarts) -> "_EpochEdges":
        """Return the calls, in the order of time."""
        begin_ns, end_ns = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
        first = np.searchsorted(begin_ns, restarts.start[:, 1])
        first = first[first < len(begin_ns)]
        last = np.searchsorted(begin_ns, restarts.shutdown[:, 0], side="right") - 1
        is_usual = ~np.isin(np.arange(len(begin_ns)), np.concatenate((first, last)))
        return cls(begin_ns=begin_ns, end_ns=end_ns, first=first, is_usual=is_usual)

    def first_batches(self) -> Intervals:
        """Return the first calls beyond the median duration of usual calls."""
        usual_ns = self._median_ns(self.end_ns - self.begin_ns, self.is_usual)
        return self._beyond(self.begin_ns, self.end_ns, self.first, usual_ns)

    def slow_work(self, trace: Trace) -> Intervals:
        """Return the times after the first calls beyond the median time after usual calls."""
        if len(self.begin_ns) < 2:
            return EMPTY
        begin_ns, end_ns = self.end_ns[:-1], self.begin_ns[1:]
        count, is_usual = _count_between(trace, begin_ns, end_ns, bool), self.is_usual[:-1]
        if not is_usual.any():
            return EMPTY
        first = np.setdiff1d(self.first, [*(self.first - 1), len(begin_ns)])  # no other restart
        first = first[count[first] == np.median(count[is_usual])]
        usual_ns = self._median_ns(end_ns - begin_ns, is_usual)
        is_slow = (end_ns - begin_ns)[first] >= (1 + LEAST_SLOWDOWN) * usual_ns
        return self._beyond(begin_ns, end_ns, first[is_slow], usual_ns)

    @staticmethod
    def _median_ns(duration_ns: Ints, is_usual: Mask) -> int:
        return int(np.median(duration_ns[is_usual] if is_usual.any() else duration_ns))

    @staticmethod
    def _beyond(begin_ns: Ints, end_ns: Ints, index: Ints, usual_ns: int) -> Intervals:
        after_ns = np.minimum(begin_ns[index] + usual_ns, end_ns[index])
        return intervals.union(after_ns, end_ns[index])


def _begins_in_window(trace: Trace, frame: pd.DataFrame) -> Mask:
    span, start = window(trace), frame["start_ns"].to_numpy()
    return np.asarray((start >= span.start_ns) & (start < span.end_ns))


def _in_window(trace: Trace, times: Intervals) -> Intervals:
    span = window(trace)
    return intervals.clip(times, span.start_ns, span.end_ns)
