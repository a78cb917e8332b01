"""Ranks of a job without a trace: no file exists, or it could not be read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from stepscope.analyses.communication.rank_assignment import rank_named_like
from stepscope.analyses.communication.ranked_run import RankRun

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
