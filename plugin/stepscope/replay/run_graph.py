"""Graph of a run: the chains of its ranks, joined by their collectives.

It is made from the ranks' summaries, some kilobytes a step each. A collective starts on a rank when
its data is ready and the one before in its group has ended; the ranks leave it together, its
transfer after the last one has come. So clocks only matter for the ranks' first steps.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.communication.collective_matching import Matches
from stepscope.analyses.communication.rank_summary import Key
from stepscope.analyses.communication.ranked_run import RankRun, computed_per_run
from stepscope.analyses.core import group_statistics as statistics
from stepscope.model.arrays import NONE, Floats, Ints, Mask
from stepscope.replay.operations import OperationGraph, Operations, operation_graph
from stepscope.replay.rank_chain import Arrivals, Cut, RankChain, rank_chain
from stepscope.replay.run_checks import require_equal_collectives, require_equal_steps


@dataclass(frozen=True, kw_only=True, eq=False)
class Pieces:
    """Pieces of work of all ranks, by rank, then time; arrays have shape (w,)."""

    trace_index: Ints
    cut: Ints
    """`Cut` at the end of each piece."""
    member: Ints
    """The collective of that cut, as a row of `RunGraph`'s members; -1: none."""
    segment: Ints
    """Number of the stretch up to a collective's start that each piece is a part of."""
    alike: Ints
    """For each segment, a number that is equal for that stretch of other ranks; shape (k,)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunGraph:
    """Operations of a run: pieces of work, then collectives on ranks, then delays between these."""

    graph: OperationGraph
    duration_ns: Ints
    """Recorded time of each operation, without waiting for other ranks."""
    typical_ns: Ints
    """The same if ranks leave each collective together, its shortest duration after the last."""
    pieces: Pieces
    member: Ints
    """Row of the run's `matches` of each collective; shape (c,)."""
    join: Ints
    """Number of each collective's match, from 0; -1: on this rank alone; shape (c,)."""
    step_ns: Ints
    """Recorded time of each rank's steps; shape (ranks, steps)."""
    begin_ns: Ints
    """Start of each rank's first step after that of the first rank; shape (ranks,)."""

    @property
    def work_count(self) -> int:
        """Number of pieces of work."""
        return len(self.pieces.cut)

    @property
    def members(self) -> slice:
        """The operations that are collectives."""
        return slice(self.work_count, self.work_count + len(self.member))


@computed_per_run
def run_graph(run: RankRun) -> RunGraph:
    """Return the graph of a run.

    Raises:
        MissingDataError: the run has one rank, ranks differ in their steps or collectives, or their
            collectives form a circle.
    """
    require_equal_steps(run)
    row = _rows(run)
    require_equal_collectives(run, row)
    matches = run.matches
    trace_index = matches.trace_index[row]
    bounds = np.searchsorted(trace_index, np.arange(len(run.parts) + 1))
    chains = [
        rank_chain(part.steps, _arrivals(matches, row[bounds[at] : bounds[at + 1]]))
        for at, part in enumerate(run.parts)
    ]
    return _joined(run, chains, row)


def _rows(run: RankRun) -> Ints:
    """Return the members of matches in the recorded steps, by trace, then start."""
    matches = run.matches
    numbers = run.parts[0].steps.number
    is_inside = np.isin(matches.step, numbers) | (not run.parts[0].steps.has_steps)
    end_ns = np.array([int((p.steps.start_ns + p.steps.duration_ns).max()) for p in run.parts])
    begin_ns = np.array([int(part.steps.start_ns[0]) for part in run.parts])
    start_ns, trace_index = matches.start_ns, matches.trace_index
    is_inside &= (start_ns >= begin_ns[trace_index]) & (start_ns < end_ns[trace_index])
    row = np.flatnonzero(is_inside)
    return row[np.lexsort((start_ns[row], trace_index[row]))]


def _arrivals(matches: Matches, row: Ints) -> Arrivals:
    return Arrivals(
        start_ns=matches.start_ns[row],
        ready_ns=matches.ready_ns[row],
        end_ns=matches.end_ns[row],
        group=matches.group[row],
    )


def _joined(run: RankRun, chains: list[RankChain], row: Ints) -> RunGraph:
    pieces = _pieces(run, chains, row)
    work_count, count = len(pieces.cut), len(row)
    before = _offset([chain.before for chain in chains])
    delay_ns = np.concatenate([chain.delay_ns for chain in chains])
    queued = np.flatnonzero(before >= 0)
    match = run.matches.match[row]
    size = np.bincount(match, minlength=len(run.matches.first))
    join = np.where(size[match] > 1, match, NONE)
    join[join >= 0] = np.unique(join[join >= 0], return_inverse=True)[1]
    transfers = _transfers(run, row, join)
    source, target = _dependencies(pieces, before, queued, count)
    total = work_count + count + len(queued)
    begin_ns = _begins(run, chains)
    start_ns = np.zeros(total, dtype=np.int64)
    start_ns[:work_count] = begin_ns[pieces.trace_index]
    whole = np.full(total, NONE)
    whole[work_count : work_count + count] = join
    released = np.zeros(total, dtype=bool)
    released[work_count : work_count + count] = transfers.is_released
    operations = Operations(
        join=whole, is_released=released, start_ns=start_ns, source=source, target=target
    )
    work_ns = np.concatenate([chain.work_ns for chain in chains])
    after_ns = delay_ns[queued]
    return RunGraph(
        graph=operation_graph(operations),
        duration_ns=np.concatenate((work_ns, transfers.recorded_ns, after_ns)),
        typical_ns=np.concatenate((work_ns, transfers.typical_ns, after_ns)),
        pieces=pieces,
        member=row,
        join=join,
        step_ns=np.stack([chain.step_ns for chain in chains]),
        begin_ns=begin_ns,
    )


def _pieces(run: RankRun, chains: list[RankChain], row: Ints) -> Pieces:
    counts = [len(chain.cut) for chain in chains]
    cut = np.concatenate([chain.cut for chain in chains])
    first = np.cumsum([0, *(len(chain.before) + 1 for chain in chains)])
    segments = [chain.segment + at for chain, at in zip(chains, first, strict=False)]
    trace_index = np.repeat(np.arange(len(chains)), counts)
    member = _offset([chain.collective for chain in chains], [len(c.before) for c in chains])
    segment = np.concatenate(segments)
    alike = np.full(int(first[-1]), NONE, dtype=np.int64)
    ready = np.flatnonzero(cut == Cut.READY)
    alike[segment[ready]] = _places(run.matches, row)[member[ready]]
    return Pieces(
        trace_index=trace_index,
        cut=cut,
        member=member,
        segment=segment,
        alike=alike,
    )


def _places(matches: Matches, row: Ints) -> Ints:
    """Return a number for each collective that is equal for the same one of other ranks.

    The n-th of its kind, type and size, and of its group's size, in the step.
    """
    sort = _sorts(matches)
    frame = pd.DataFrame(
        {
            "trace": matches.trace_index[row],
            "step": matches.step[row],
            "sort": sort[matches.key[row]],
        }
    )
    frame["turn"] = frame.groupby(["trace", "step", "sort"]).cumcount()
    return frame.groupby(["step", "sort", "turn"]).ngroup().to_numpy().astype(np.int64)


def _sorts(matches: Matches) -> Ints:
    """Return a number for each key that is equal for keys with other ranks of as large a group."""
    sorts = [(of.kind, of.dtype, of.bytes, _size(of)) for of in matches.keys]
    return np.asarray(pd.factorize(pd.Series(sorts, dtype=object))[0], dtype=np.int64)


def _size(key: Key) -> int:
    """Return the number of ranks of a collective, recorded or not; 0: unknown."""
    if key.source >= 0 and key.destination >= 0:
        return 2
    return key.ranks.count(",") + 1 if key.ranks else 0


def _offset(parts: list[Ints], counts: list[int] | None = None) -> Ints:
    """Return indexes of ranks' collectives as indexes of all ranks' collectives."""
    sizes = [len(part) for part in parts] if counts is None else counts
    first = np.cumsum([0, *sizes])
    return np.concatenate(
        [np.where(part >= 0, part + at, NONE) for part, at in zip(parts, first, strict=False)]
    )


def _dependencies(pieces: Pieces, before: Ints, queued: Ints, count: int) -> tuple[Ints, Ints]:
    """Return sources and targets among pieces of work, collectives and delays."""
    work_count = len(pieces.cut)
    rows = np.arange(work_count)
    follows = np.flatnonzero(pieces.trace_index[1:] == pieces.trace_index[:-1])
    ready = rows[pieces.cut == Cut.READY]
    resumed = rows[pieces.cut == Cut.RESUMED]
    delay = work_count + count + np.arange(len(queued))
    source = (
        follows,
        ready,
        work_count + pieces.member[resumed],
        work_count + before[queued],
        delay,
    )
    target = (
        follows + 1,
        work_count + pieces.member[ready],
        resumed + 1,
        delay,
        work_count + queued,
    )
    return np.concatenate(source), np.concatenate(target)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Transfers:
    """Times of collectives on each rank after the last rank has come; arrays have shape (c,)."""

    recorded_ns: Ints
    """With each rank's own time of leaving, on one clock."""
    typical_ns: Ints
    is_released: Mask
    """Whether it ends before the last rank comes."""


def _transfers(run: RankRun, row: Ints, join: Ints) -> _Transfers:
    """Return the collectives' transfers.

    Ranks leave a collective together, its shortest duration after the last has come. A sender may
    leave before its receiver comes.
    """
    matches = run.matches
    duration_ns, is_full = matches.duration_ns[row], matches.is_full[row]
    after_ns, error_ns = _after_last(run, row, join)
    is_direct = ~np.isnan(after_ns) & ~is_full
    is_whole = _is_whole(matches)[matches.match[row]]
    is_timed = ~np.isnan(after_ns) & (is_direct | (is_whole & (error_ns == 0)))
    is_released = is_direct & (after_ns < -error_ns)
    late_ns = np.clip(np.nan_to_num(after_ns), 0, duration_ns).astype(np.int64)
    late_ns = np.where(is_released, duration_ns, late_ns)
    shortest_ns = _shortest(matches)[matches.match[row]]
    return _Transfers(
        recorded_ns=np.where(is_timed, late_ns, shortest_ns),
        typical_ns=np.where(is_direct, late_ns, shortest_ns),
        is_released=is_released,
    )


def _after_last(run: RankRun, row: Ints, join: Ints) -> tuple[Floats, Floats]:
    """Return the time from the last rank's start to each one's end, and the clocks' error.

    NaN for collectives on one rank, and where clocks are not aligned.
    """
    matches, meets = run.matches, join >= 0
    start_ns = _aligned(run, row)
    count = int(join.max(initial=NONE)) + 1
    last, error = np.full(count + 1, -np.inf), np.zeros(count + 1)
    with np.errstate(invalid="ignore"):  # NaN: clocks that are not aligned
        np.maximum.at(last, join[meets], start_ns[meets])
        np.maximum.at(error, join, run.alignment.error_ns[matches.trace_index[row]])
    after_ns = start_ns + matches.duration_ns[row] - last[join]
    is_aligned = meets & ~np.isnan(error[join])
    return np.where(is_aligned, after_ns, np.nan), error[join]


def _shortest(matches: Matches) -> Ints:
    """Return each match's shortest duration, on its last rank.

    Where ranks were not recorded, which may have been the last, it is at most the median of those
    of like collectives whose ranks are all recorded.
    """
    transfer_ns, sort = matches.transfer_ns, _sorts(matches)
    key, is_whole = matches.key[matches.first], _is_whole(matches)
    usual_ns = statistics.quantile(
        transfer_ns[is_whole], sort[key[is_whole]], int(sort.max(initial=0)) + 1, 0.5
    )[sort[key]]
    has_usual = ~is_whole & ~np.isnan(usual_ns)
    return np.where(has_usual, np.fmin(transfer_ns, usual_ns), transfer_ns).astype(np.int64)


def _is_whole(matches: Matches) -> Mask:
    """Return which matches have all their ranks."""
    size = np.array([_size(of) for of in matches.keys], dtype=np.int64)
    return np.asarray(matches.size >= size[matches.key[matches.first]])


def _aligned(run: RankRun, row: Ints) -> Floats:
    """Return the collectives' starts on the reference's clock, after their run's first."""
    matches = run.matches
    start_ns = matches.start_ns[row]
    added = run.alignment.added_ns(matches.trace_index[row], start_ns)
    return (start_ns - int(start_ns.min())) + added


def _begins(run: RankRun, chains: list[RankChain]) -> Ints:
    """Return each rank's start after the first one's, on aligned clocks."""
    begin_ns = np.array([chain.begin_ns for chain in chains], dtype=np.int64)
    added = run.alignment.added_ns(np.arange(len(chains)), begin_ns)
    aligned = (begin_ns - begin_ns.min()) + np.nan_to_num(added)
    return np.asarray(np.rint(aligned - aligned.min()), dtype=np.int64)
