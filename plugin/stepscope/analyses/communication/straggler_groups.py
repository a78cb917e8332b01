"""Stragglers grouped by cause: a whole machine, a whole process group, or single ranks.

A slow machine makes each of its ranks a straggler, and a slow rank each of its traces. The saving
of a fix depends on the other ranks: a step ends with the slowest of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from stepscope.analyses.communication.compute_time import ComputeTime, compute_time
from stepscope.analyses.communication.ranked_run import RankRun, computed_per_run
from stepscope.analyses.communication.robust_zscore import OUTLIER
from stepscope.analyses.communication.run_groups import run_groups
from stepscope.analyses.communication.stragglers import stragglers_of

Kind = Literal["rank", "ranks", "host", "group"]
MOST_ALONE = 3
"""More late ranks without a common machine or group are reported together."""
MOST_SHARE = 0.5
"""A machine or group is the cause where a larger fraction of its ranks is late. Groups of more than
this fraction of all ranks do not count."""


class _Set(NamedTuple):
    kind: Kind
    name: str
    members: frozenset[int]


@dataclass(frozen=True, kw_only=True)
class StragglerGroup:
    """Traces that are late for one reason."""

    kind: Kind
    name: str
    """The machine's or the group's; empty of ranks."""
    indexes: tuple[int, ...]
    """Indices of the run's traces, the costliest first."""
    recorded_count: int
    """Recorded ranks of that machine or group, late or not."""
    gain_ns: float
    """This group's part of the saving per step if no straggler took longer than the slowest other
    rank, by its part of the stragglers' excess; 0: they are not late by compute time."""


@computed_per_run
def straggler_groups(run: RankRun) -> tuple[StragglerGroup, ...]:
    """Return the groups of a run's stragglers, the costliest first; each is in one group."""
    table = stragglers_of(run)
    late = table[table["is_straggler"]]
    index_of = {(of.evidence.worker, of.evidence.span): at for at, of in enumerate(run.parts)}
    left = [index_of[key] for key in zip(late["worker"], late["span"], strict=True)]
    cost = {at: number for number, at in enumerate(left)}
    groups: list[tuple[_Set, tuple[int, ...]]] = []
    sets = [*_hosts(run), *_groups(run)] if len(_workers(run, left)) > 1 else []
    while (most := _largest(run, sets, left)) is not None:
        groups.append((most, tuple(at for at in left if at in most.members)))
        left = [at for at in left if at not in most.members]
    alone = list(_workers(run, left).values())
    kind: Kind = "ranks" if len(alone) > MOST_ALONE else "rank"
    alone = [tuple(left)] if kind == "ranks" else alone
    groups += [(_Set(kind, "", frozenset(members)), members) for members in alone if members]
    groups.sort(key=lambda members: cost[members[1][0]])
    return tuple(_with_gains(run, groups))


def _workers(run: RankRun, indexes: Iterable[int]) -> dict[str, tuple[int, ...]]:
    """Return the traces of each worker among some, in order: a rank may have several."""
    workers: dict[str, tuple[int, ...]] = {}
    for at in indexes:
        worker = run.parts[at].evidence.worker
        workers[worker] = (*workers.get(worker, ()), at)
    return workers


def _largest(run: RankRun, sets: Sequence[_Set], left: Sequence[int]) -> _Set | None:
    """Return the machine or group of most remaining stragglers; None: none of two or more."""
    counts = [
        (len(_workers(run, candidate.members.intersection(left))), candidate) for candidate in sets
    ]
    explains = [
        (count, candidate)
        for count, candidate in counts
        if count > 1 and count > MOST_SHARE * len(_workers(run, candidate.members))
    ]
    return max(explains, key=lambda pair: pair[0], default=(0, None))[1]


def _hosts(run: RankRun) -> Iterator[_Set]:
    members: dict[str, list[int]] = {}
    for at, part in enumerate(run.parts):
        if part.host is not None:
            members.setdefault(part.host, []).append(at)
    if len(members) > 1:
        yield from (_Set("host", name, frozenset(positions)) for name, positions in members.items())


def _groups(run: RankRun) -> Iterator[_Set]:
    indexes: dict[int, list[int]] = {}
    for at, of in enumerate(run.ranks):
        if of.rank is not None:
            indexes.setdefault(of.rank, []).append(at)
    for group in run_groups(run):
        positions = frozenset(at for rank in group.ranks for at in indexes.get(rank, ()))
        if 1 < len(positions) <= MOST_SHARE * len(run.parts):
            has_words = group.description not in {"", "undefined"}
            name = f"{group.description} ({group.name})" if has_words else group.name
            yield _Set("group", name, positions)


def _with_gains(
    run: RankRun, groups: Sequence[tuple[_Set, tuple[int, ...]]]
) -> Iterator[StragglerGroup]:
    work = compute_time(run)
    excess = np.nan_to_num(work.excess_ns)
    most = [float(excess[_outlying(work, indexes)].max(initial=0.0)) for _, indexes in groups]
    others = np.delete(excess, [at for _, indexes in groups for at in indexes])
    gain = max(0.0, max(most, default=0.0) - max(0.0, float(others.max(initial=0.0))))
    for (late, indexes), excess_ns in zip(groups, most, strict=True):
        yield StragglerGroup(
            kind=late.kind,
            name=late.name,
            indexes=indexes,
            recorded_count=len(_workers(run, late.members)),
            gain_ns=gain * excess_ns / sum(most) if excess_ns else 0.0,
        )


def _outlying(work: ComputeTime, indexes: Sequence[int]) -> list[int]:
    return [at for at in indexes if work.score[at] > OUTLIER]
