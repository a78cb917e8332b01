"""The traces of a run together: ranks, missing ranks, matched collectives, aligned clocks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, wraps
from itertools import pairwise
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.communication.clock_alignment import Alignment, align_clocks
from stepscope.analyses.communication.collective_matching import Matches, match_collectives
from stepscope.analyses.communication.rank_assignment import (
    RecordedRank,
    rank_named_like,
    recorded_ranks,
)
from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.base.errors import MissingDataError
from stepscope.model import intervals
from stepscope.model.arrays import Ints, Objects
from stepscope.model.frames import Column, Schema
from stepscope.model.intervals import Intervals

IDENTITY: Schema = (
    Column("rank", "float64", "id", "The rank; NaN: unknown."),
    Column("worker", "object", "text", "The trace's worker."),
    Column("span", "object", "text", "The trace's span."),
    Column("host", "object", "text", "The machine's name (torch's `host_name`); None: unknown."),
)
ONE_RANK = "only one rank was recorded"
REMEDY = (
    "torch.profiler.tensorboard_trace_handler(folder, worker_name=f'rank{rank}')"
    "  # on every rank, into one folder"
)
KEPT_RUNS = 2
"""Number of most recent runs whose results stay cached."""
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, eq=False)
class RankRun:
    """Summaries of a run's traces by rank, then span; results are computed on request."""

    parts: tuple[RankSummary, ...]
    ranks: tuple[RecordedRank, ...]
    results: dict[str, Any] = field(default_factory=dict, repr=False)
    """Cached results of analyses: `computed_per_run`."""

    @cached_property
    def matches(self) -> Matches:
        """Matched collectives of the ranks."""
        return match_collectives(self.parts)

    @cached_property
    def identity(self) -> dict[str, NDArray[Any]]:
        """Columns `rank` (NaN: unknown), `worker`, `span` and `host`, a row per trace."""
        ranks = [np.nan if rank.rank is None else rank.rank for rank in self.ranks]
        return {
            "rank": np.array(ranks, dtype=np.float64),
            "worker": text_column([part.evidence.worker for part in self.parts]),
            "span": text_column([part.evidence.span for part in self.parts]),
            "host": text_column([part.host for part in self.parts]),
        }

    def identity_of(self, index: Ints) -> dict[str, NDArray[Any]]:
        """Return the `identity` of traces by index; NaN and None for -1."""
        missing = {"rank": np.nan}
        return {
            name: np.array([*values, missing.get(name)], dtype=values.dtype)[index]
            for name, values in self.identity.items()
        }

    @cached_property
    def alignment(self) -> Alignment:
        """Alignment of the ranks' clocks."""
        return align_clocks(self.parts, self.ranks, self.matches)

    @cached_property
    def waits(self) -> tuple[Intervals, ...]:
        """Waiting times of each trace in matched collectives, on its clock.

        Waiting lasts from a collective's start until only the transfer is left.
        """
        matches = self.matches
        order = np.flatnonzero(matches.is_matched)
        order = order[np.argsort(matches.trace_index[order], kind="stable")]
        bounds = np.searchsorted(matches.trace_index[order], np.arange(len(self.parts) + 1))
        rows = [order[low:high] for low, high in pairwise(bounds)]
        start, wait_ns = matches.start_ns, matches.wait_ns
        return tuple(intervals.union(start[at], start[at] + wait_ns[at]) for at in rows)


def text_column(texts: Iterable[str | None]) -> Objects:
    """Return texts as a column of objects, also where there are none."""
    return np.array([*texts, None], dtype=object)[:-1]


def computed_per_run(analysis: Callable[[RankRun], T]) -> Callable[[RankRun], T]:
    """Cache the result of an analysis with its run."""
    key = f"{analysis.__module__}.{analysis.__qualname__}"

    @wraps(analysis)
    def cached(run: RankRun) -> T:
        try:
            result: T = run.results[key]
        except KeyError:
            result = run.results[key] = analysis(run)
        return result

    return cached


def rank_run(parts: Sequence[RankSummary]) -> RankRun:
    """Return the run of some traces, in any order."""
    return _rank_run(tuple(parts))


@lru_cache(maxsize=KEPT_RUNS)
def _rank_run(parts: tuple[RankSummary, ...]) -> RankRun:
    ranks = recorded_ranks([part.evidence for part in parts])
    order = sorted(range(len(parts)), key=lambda at: _sort_key(parts[at], ranks[at]))
    return RankRun(parts=tuple(parts[at] for at in order), ranks=tuple(ranks[at] for at in order))


def several_ranks(parts: Sequence[RankSummary]) -> RankRun:
    """Return the run of some traces.

    Raises:
        MissingDataError: they are of one rank.
    """
    if len({part.evidence.worker for part in parts}) < 2:
        raise MissingDataError(ONE_RANK, REMEDY)
    return rank_run(parts)


def _sort_key(part: RankSummary, rank: RecordedRank) -> tuple[int, str, int, str]:
    span = part.evidence.span
    number = rank.rank if rank.rank is not None else 2**62
    return (number, part.evidence.worker, int(span) if span.isdecimal() else 0, span)


def as_ranges(ranks: Iterable[int]) -> str:
    """Return ranks as text: `0-3, 7`."""
    ordered = sorted(set(ranks))
    breaks = [at for at, (one, next_one) in enumerate(pairwise(ordered), 1) if next_one > one + 1]
    bounds = [0, *breaks, len(ordered)]
    runs = [ordered[low:high] for low, high in pairwise(bounds) if high > low]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


MOST_RANKS = 1_000_000
"""Missing ranks of larger jobs are not listed."""
Source = Literal["header", "process groups", "ranks"]


@dataclass(frozen=True, kw_only=True)
class MissingRanks:
    """A job's size, and its ranks without a trace."""

    world_size: int | None
    """None: unknown."""
    source: Source
    """`header` (distributedInfo.world_size), `process groups`, or the highest of the `ranks`."""
    missing: tuple[int, ...]
    """Ranks without a file; ascending."""
    unreadable: tuple[int, ...]
    """Ranks with an unreadable file."""
    nameless: tuple[str, ...]
    """Unreadable files of unknown rank."""

    @property
    def absent(self) -> frozenset[int]:
        """Missing and unreadable ranks."""
        return frozenset(self.missing) | frozenset(self.unreadable)


def missing_ranks(run: RankRun, unreadable: Sequence[str] = ()) -> MissingRanks:
    """Return the ranks without a trace; `unreadable` are names of unreadable files.

    None are listed where a trace's rank is unknown: it may be any of them.
    """
    here = {of.rank for of in run.ranks if of.rank is not None}
    size, source = _world(run, here)
    lacks_rank = any(of.rank is None for of in run.ranks)
    if size is None or lacks_rank or size > MOST_RANKS:
        return MissingRanks(
            world_size=size, source=source, missing=(), unreadable=(), nameless=tuple(unreadable)
        )
    others = {
        part.evidence.name: of.rank
        for part, of in zip(run.parts, run.ranks, strict=True)
        if of.rank is not None
    }
    damaged = {name: rank_named_like(others, name) for name in unreadable}
    lost = set(range(size)) - here
    return MissingRanks(
        world_size=size,
        source=source,
        missing=tuple(sorted(lost - set(damaged.values()))),
        unreadable=tuple(sorted(lost & set(damaged.values()))),
        nameless=tuple(name for name, rank in damaged.items() if rank is None),
    )


def _world(run: RankRun, here: set[int]) -> tuple[int | None, Source]:
    declared = max((part.world_size or 0 for part in run.parts), default=0)
    grouped = max(_highest_members(run), default=-1) + 1
    seen = max(here, default=-1) + 1
    sizes: tuple[tuple[int, Source], ...] = (
        (declared, "header"),
        (grouped, "process groups"),
        (seen, "ranks"),
    )
    size, source = max(sizes, key=lambda one: one[0])
    return size or None, source


def _highest_members(run: RankRun) -> Iterator[int]:
    for ranks in {group.ranks for part in run.parts for group in part.groups}:
        last = ranks.rstrip("]").rpartition(",")[2].lstrip("[")  # they ascend
        if last.isdecimal():
            yield int(last)
