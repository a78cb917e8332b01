"""Ranks that are late to collectives: since which step, at which cost to the others, and the cause.

A rank's lateness in a collective is the median rank's duration less its duration: ranks leave
together, so a short stay is a late arrival. This needs no common clock. A slow rank makes the other
ranks of a group late in their other groups, so of the sets of ranks that meet, the one counts in
which a rank is least late.

Where all ranks of a group are slow (those of a machine), none is late in it. So a rank is also a
straggler by its compute time (`compute_time`): its step less exposed communication.

A slow machine makes each of its ranks a straggler, and a slow rank each of its traces. The saving
of a fix depends on the other ranks: a step ends with the slowest of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from stepscope.analyses.communication.matched_collectives import last_arrivals
from stepscope.analyses.communication.rank_metrics import ComputeTime, compute_time, step_excess_ns
from stepscope.analyses.communication.rank_summary import RankSummary, rank_summary
from stepscope.analyses.communication.ranked_run import (
    IDENTITY,
    RankRun,
    computed_per_run,
    several_ranks,
)
from stepscope.analyses.communication.run_groups import run_groups
from stepscope.analyses.communication.run_steps import run_steps
from stepscope.analyses.core import group_statistics as statistics
from stepscope.analyses.core.robust_slope import OUTLIER, group_median, modified_zscores
from stepscope.model.arrays import Floats, Ints, Mask
from stepscope.model.frames import Column, Schema
from stepscope.model.table import run_table, to_frame

LEAST_SHARE = 0.01
"""Lateness and excess compute time below this fraction of a step are not worth reporting."""
MOSTLY, COSTLY = 0.6, 0.05
"""Few ranks have no outlier: a straggler is last mostly, costly enough, and late steadily."""
MOST_WAITING = 0.75
"""Of many small collectives, a straggler is last in fewer, but causes this fraction of waiting."""
STEADY = 1.96
"""Least steadiness: the sum of lateness over the steps by the root of its sum of squares. By chance
it has mean 0 and deviation 1; it exceeds 1.96 in less than 1 case of 20."""
CAUSE_SHARE = 0.3
"""Fraction of a rank's lateness that a cause must explain."""
CAUSES: dict[str, tuple[str, ...]] = {
    "copies": ("memcpy", "memset"),
    "data loading": ("dataloader",),
    "host": ("runtime", "cpu", "other"),
}
"""Causes other than computing, and the categories of `step_breakdown` that grow with them."""
SCHEMA: Schema = (
    *IDENTITY[:3],
    Column("is_straggler", "bool", "", "Whether it is an outlier among the ranks and late by 1 % of"
           " a step or more, or is last mostly, steadily late, and costs others 5 % of a step."),
    Column("score", "float64", "", "Modified z-score over the ranks (Iglewicz and Hoaglin) of its"
           " lateness or of its compute time, the larger: beyond 3.5 is an outlier; NaN with fewer"
           " than 3 ranks."),
    Column("works_longer", "bool", "", "Whether it is a straggler by its compute time."),
    Column("own_excess_ns", "float64", "ns", "Its compute time (the step less exposed"
           " communication) beyond the median rank's (in a pipeline: of its stage); NaN: no"
           " collective matches another rank's."),
    Column("lateness_ns", "float64", "ns", "The median rank's duration less its own: the mean over"
           " the collectives with those ranks among which it is least late."),
    Column("collective_count", "int64", "count", "Matched collectives that ranks leave together."),
    Column("last_count", "int64", "count", "Collectives that it was the last to enter."),
    Column("last_share", "float64", "share", "Their fraction."),
    Column("wait_caused_ns", "int64", "ns", "Sum of the others' waiting in those."),
    Column("wait_caused_share", "float64", "share", "Of all waiting in its span."),
    Column("wait_ns", "int64", "ns", "Sum of its waiting for others."),
    Column("since_step", "int64", "id", "First step since which it is late in every step; -1: not a"
           " straggler, or no steps."),
    Column("cause", "object", "text", "The part of the step that is longer than the median rank's:"
           " `computing`, `copies`, `data loading` or `host`; None: none explains the lateness."),
    Column("cause_ns", "float64", "ns", "Its excess per step."),
)  # fmt: skip


@run_table(
    "stragglers",
    SCHEMA,
    rank_summary,
    "One row per trace: its lateness to collectives compared with the other ranks, since which"
    " step, the cost to the others, and the cause.",
)
def stragglers(parts: Sequence[RankSummary]) -> pd.DataFrame:
    """Return one row per trace with matched collectives, the costliest rank first.

    Raises:
        MissingDataError: the traces are of one rank.
    """
    return stragglers_of(several_ranks(parts)).copy()


@computed_per_run
def stragglers_of(run: RankRun) -> pd.DataFrame:
    """Return the same table for a run; empty for one rank."""
    members = _full(run)
    rows = np.flatnonzero(np.bincount(members["trace_index"], minlength=len(run.parts)))
    work = compute_time(run)
    columns = _waits(run, members) | _lateness(run, members)
    columns |= {
        "own_excess_ns": work.excess_ns,
        "own_score": np.where(work.is_short, np.nan, work.score),
    }
    columns |= _judged(run, members, columns)
    columns["since_step"] = _since(run, members, columns)
    columns |= _causes(run, columns)
    columns |= run.identity
    table = to_frame(SCHEMA, columns).iloc[rows]
    worth = np.where(table["is_straggler"], table["own_excess_ns"].fillna(0.0), 0.0)
    order = np.lexsort((-table["lateness_ns"].to_numpy(), -worth, ~table["is_straggler"]))
    return table.iloc[order].reset_index(drop=True)


def _full(run: RankRun) -> pd.DataFrame:
    matches, rows = run.matches, run.matches.is_full
    return pd.DataFrame(
        {
            "trace_index": matches.trace_index[rows],
            "group": matches.group[rows],
            "step": matches.step[rows],
            "late_ns": matches.late_ns[rows],
            "wait_ns": matches.wait_ns[rows],
        }
    )


def _waits(run: RankRun, members: pd.DataFrame) -> dict[str, Any]:
    matches, count = run.matches, len(run.parts)
    last, _ = last_arrivals(matches)
    has_last = last >= 0
    who = matches.trace_index[last[has_last]]
    total = statistics.sums(matches.wait_ns, matches.match, len(last))
    caused = statistics.sums(total[has_last], who, count)
    together = np.bincount(members["trace_index"], minlength=count)
    spans = pd.factorize(run.identity["span"])[0]
    waiting = statistics.sums(
        members["wait_ns"].to_numpy(), members["trace_index"].to_numpy(), count
    )
    all_ns = statistics.sums(waiting, spans, count)[spans]
    last_count = np.bincount(who, minlength=count)
    return {
        "collective_count": together,
        "last_count": last_count,
        "last_share": last_count / np.maximum(together, 1),
        "wait_caused_ns": caused,
        "wait_caused_share": caused / np.maximum(all_ns, 1),
        "wait_ns": waiting,
    }


def _lateness(run: RankRun, members: pd.DataFrame) -> dict[str, Any]:
    count = len(run.parts)
    traces = _traces_of_groups(members)
    keyed = members["trace_index"] * (int(traces.max(initial=0)) + 1)
    pair, distinct = pd.factorize((keyed + traces).to_numpy())
    late = statistics.mean(members["late_ns"].to_numpy(dtype=np.float64), pair, len(distinct))
    owner = np.zeros(len(distinct), dtype=np.int64)
    owner[pair] = members["trace_index"].to_numpy()
    least = np.full(count, np.inf)
    np.minimum.at(least, owner, late)
    return {"lateness_ns": np.where(np.isfinite(least), least, np.nan)}


def _traces_of_groups(members: pd.DataFrame) -> Ints:
    """Return a number for each row's set of traces: several groups may have the same ones."""
    traces = members.groupby("group")["trace_index"].agg(frozenset)
    codes, _ = pd.factorize(traces)
    return np.asarray(members["group"].map(dict(zip(traces.index, codes, strict=True))), np.int64)


def _is_steady(members: pd.DataFrame, count: int) -> Mask:
    """Return whether each trace is late steadily: over steps; over collectives in few steps."""
    step = members["step"].to_numpy()
    has_steps = len(np.unique(step[step >= 0])) > STEADY**2
    unit = np.where((step >= 0) & has_steps, step, -1 - np.arange(len(step)))
    late = members["late_ns"].groupby([members["trace_index"].to_numpy(), unit]).sum()
    owner = late.index.get_level_values(0).to_numpy(dtype=np.int64)
    value = late.to_numpy(dtype=np.float64)
    total = np.bincount(owner, weights=value, minlength=count)
    spread = np.sqrt(np.bincount(owner, weights=value**2, minlength=count))
    return np.asarray(total / np.where(spread > 0, spread, 1.0) >= STEADY)


def _judged(run: RankRun, members: pd.DataFrame, columns: dict[str, Any]) -> dict[str, Any]:
    late = columns["lateness_ns"]
    spans = pd.factorize(run.identity["span"])[0]
    score = np.full(len(late), np.nan)
    for span in range(int(spans.max()) + 1):
        score[spans == span] = modified_zscores(late[spans == span])
    step_ns = np.array([part.totals.step_ns for part in run.parts])
    counts = np.array([max(1, part.totals.step_count) for part in run.parts])
    caused_ns = columns["wait_caused_ns"] / counts
    is_outlier = (score > OUTLIER) & (late > 0)
    is_mostly = (columns["last_share"] >= MOSTLY) | (columns["wait_caused_share"] >= MOST_WAITING)
    is_worth = late * columns["collective_count"] / counts >= LEAST_SHARE * step_ns
    is_last = is_mostly & (late > 0) & is_worth & (caused_ns >= COSTLY * step_ns)
    is_last &= _is_steady(members, len(late))
    works_longer = columns["own_score"] > OUTLIER
    works_longer &= columns["own_excess_ns"] >= LEAST_SHARE * step_ns
    works_longer &= caused_ns >= LEAST_SHARE * step_ns
    return {
        "score": np.fmax(score, columns["own_score"]),
        "is_straggler": (is_outlier & is_worth) | works_longer | is_last,
        "works_longer": works_longer,
    }


def _since(run: RankRun, members: pd.DataFrame, columns: dict[str, Any]) -> Ints:
    """Return the first of the last consecutive steps in which each straggler was late.

    For stragglers by compute time, the first in which that exceeded its peers'.
    """
    since = np.full(len(run.parts), -1, dtype=np.int64)
    members = members[(members["step"] >= 0) & columns["is_straggler"][members["trace_index"]]]
    late = members.groupby(["trace_index", "step"])["late_ns"].mean()
    steps, excess = run_steps(run), step_excess_ns(run)
    for at in np.flatnonzero(columns["is_straggler"]):
        if columns["works_longer"][at] and run.parts[at].steps.has_steps:
            rows = steps.trace_index == at
            number, more, least = steps.number[rows], excess[rows], columns["own_excess_ns"][at]
        elif at in late.index.get_level_values(0):
            mean, least = late.loc[at], columns["lateness_ns"][at]
            number, more = mean.index.to_numpy(), mean.to_numpy()
        else:
            continue
        begin = int(np.append(-1, np.flatnonzero(more < least / 2))[-1]) + 1
        if begin < len(number):
            since[at] = int(number[begin])
    return since


def _causes(run: RankRun, columns: dict[str, Any]) -> dict[str, Any]:
    """Return the largest excess of each straggler over its median peer, if that explains it."""
    count = len(run.parts)
    cause, cause_ns = np.full(count, None, dtype=object), np.full(count, np.nan)
    if count:
        spent = {name: _spent(run, categories) for name, categories in CAUSES.items()}
        spent["computing"] = np.array([part.totals.computing_ns for part in run.parts])
        peers = compute_time(run).peers
        more = {name: values - group_median(values, peers) for name, values in spent.items()}
        for at in np.flatnonzero(columns["is_straggler"]):
            name = max(more, key=lambda of: more[of][at])
            late = columns["lateness_ns"][at] * columns["collective_count"][at]
            late /= max(1, run.parts[at].totals.step_count)
            if more[name][at] > 0 and more[name][at] >= CAUSE_SHARE * late:
                cause[at], cause_ns[at] = name, more[name][at]
    return {"cause": cause, "cause_ns": cause_ns}


def _spent(run: RankRun, categories: Sequence[str]) -> Floats:
    """Return the time of each trace's mean step in some categories.

    Without a device, operators compute and do not count as `cpu`.
    """
    spent = []
    for part in run.parts:
        categories_ns = part.totals.parts_ns
        names = (name for name in categories if part.has_device or name != "cpu")
        spent.append(sum(categories_ns.get(name, 0) for name in names))
    return np.array(spent, dtype=np.float64)


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
