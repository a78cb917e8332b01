"""Which ranks come late to collectives, since when, what that costs the others, and why.

A rank's lateness in a collective is by how much shorter it was for that rank than for the median
rank: all leave together, so who stays shortly came late. This needs no common clock. A slow rank
makes the others of one of its groups late in their other groups; so a rank counts as late only by
its lateness in the group where it is least late.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses import group_statistics as statistics
from stepscope.analyses.communication.matched_collectives import last_comers
from stepscope.analyses.communication.rank_part import RankPart
from stepscope.analyses.communication.rank_run import RankRun, several_ranks
from stepscope.analyses.table_columns import framed
from stepscope.frames import Column, Schema

OUTLIER = 3.5
"""Modified z-scores beyond it are outliers (Iglewicz and Hoaglin 1993, "How to detect and handle
outliers")."""
NORMAL_QUARTILE, NORMAL_DEVIATION = 0.6745, 0.7979
"""Median and mean of a standard normal's absolute values: they scale the deviations."""
LEAST_SHARE = 0.01
"""Of a step: lateness below it is not worth a word."""
FEW_RANKS = 3
"""With fewer, no rank is an outlier among the others: it must be last mostly, and cost enough."""
MOSTLY, COSTLY = 0.6, 0.05
CAUSE_SHARE = 0.3
"""What a cause must explain of a rank's lateness."""
CAUSES: dict[str, tuple[str, ...]] = {
    "copies": ("memcpy", "memset"),
    "data loading": ("dataloader",),
    "host": ("runtime", "cpu", "other"),
}
"""Causes beside computing, and the categories of `step_breakdown` that grow with them."""
SCHEMA: Schema = (
    Column("rank", "float64", "id", "The rank; NaN: unknown."),
    Column("worker", "object", "text", "The worker whose recording it is."),
    Column("span", "object", "text", "Which recording of it."),
    Column("is_straggler", "bool", "", "Whether it comes late beyond what is usual among the"
           " ranks, and by 1 % of a step or more."),
    Column("score", "float64", "", "Modified z-score of its lateness over the ranks (Iglewicz and"
           " Hoaglin): beyond 3.5 is an outlier; NaN with fewer than 3 ranks."),
    Column("lateness_ns", "float64", "ns", "Mean over the collectives of the group in which it is"
           " least late: how much shorter they were for it than for the median rank."),
    Column("collective_count", "int64", "count", "Collectives with others that none can leave"
           " before all came."),
    Column("last_count", "int64", "count", "Of how many it was the last to come."),
    Column("last_share", "float64", "share", "The same as a share."),
    Column("wait_caused_ns", "int64", "ns", "Sum of the others' waiting in those."),
    Column("wait_caused_share", "float64", "share", "Of all waiting in its span."),
    Column("wait_ns", "int64", "ns", "Sum of its own waiting for others."),
    Column("since_step", "int64", "id", "First step from which on it was late in each; -1: not a"
           " straggler, or there are no steps."),
    Column("cause", "object", "text", "What takes longer on it than on the median rank:"
           " `computing`, `copies`, `data loading` or `host`; None: nothing that explains it."),
    Column("cause_ns", "float64", "ns", "How much longer, a step."),
)  # fmt: skip


def stragglers(parts: Sequence[RankPart]) -> pd.DataFrame:
    """Return one row a recording that shares collectives with others, the latest rank first.

    Raises:
        MissingDataError: the recordings are of one rank.
    """
    run = several_ranks(parts)
    rows = np.flatnonzero(np.bincount(_full(run)["recording"], minlength=len(run.parts)))
    columns = _waits(run) | _lateness(run)
    columns |= _judged(run, columns)
    columns["since_step"] = _since(run, columns)
    columns |= _causes(run, columns)
    columns |= {
        "rank": np.array([np.nan if of.rank is None else of.rank for of in run.ranks], dtype=float),
        "worker": np.array([*(part.evidence.worker for part in run.parts), None], dtype=object)[
            :-1
        ],
        "span": np.array([*(part.evidence.span for part in run.parts), None], dtype=object)[:-1],
    }
    table = framed(SCHEMA, columns).iloc[rows]
    by = ["is_straggler", "lateness_ns"]
    return table.sort_values(by, ascending=False, kind="stable").reset_index(drop=True)


def _full(run: RankRun) -> pd.DataFrame:
    """Return the members of full matches, with their lateness and waiting."""
    found = run.matches
    match = pd.factorize(found.match[found.is_full])[0]
    duration = found.duration_ns[found.is_full]
    count = int(match.max()) + 1 if len(match) else 0
    middle = statistics.quantile(duration, match, count, 0.5)
    return pd.DataFrame(
        {
            "recording": found.recording[found.is_full],
            "key": _groups(run)[found.key[found.is_full]],
            "step": found.step[found.is_full],
            "late_ns": middle[match] - duration,
            "wait_ns": found.wait_ns[found.is_full],
        }
    )


def _groups(run: RankRun) -> NDArray[np.int64]:
    """Return each key's process group."""
    names = [(key.group, key.ranks) for key in run.matches.keys]
    number = {name: at for at, name in enumerate(dict.fromkeys(names))}
    return np.array([*(number[name] for name in names), -1], dtype=np.int64)[:-1]


def _waits(run: RankRun) -> dict[str, Any]:
    found, count = run.matches, len(run.parts)
    members = _full(run)
    last, _ = last_comers(found)
    is_told = last >= 0
    who = found.recording[last[is_told]]
    total = statistics.sums(found.wait_ns, found.match, len(last))
    caused = statistics.sums(total[is_told], who, count)
    together = np.bincount(members["recording"], minlength=count)
    spans = pd.factorize(np.array([part.evidence.span for part in run.parts], dtype=object))[0]
    own = statistics.sums(members["wait_ns"].to_numpy(), members["recording"].to_numpy(), count)
    all_ns = statistics.sums(own, spans, count)[spans]
    last_count = np.bincount(who, minlength=count)
    return {
        "collective_count": together,
        "last_count": last_count,
        "last_share": last_count / np.maximum(together, 1),
        "wait_caused_ns": caused,
        "wait_caused_share": caused / np.maximum(all_ns, 1),
        "wait_ns": own,
    }


def _lateness(run: RankRun) -> dict[str, Any]:
    """Return each recording's mean lateness in the group in which that is least."""
    members, count = _full(run), len(run.parts)
    keyed = members["recording"] * (int(members["key"].max()) + 1 if len(members) else 1)
    pair, distinct = pd.factorize((keyed + members["key"]).to_numpy())
    late = statistics.mean(members["late_ns"].to_numpy(dtype=np.float64), pair, len(distinct))
    owner = np.zeros(len(distinct), dtype=np.int64)
    owner[pair] = members["recording"].to_numpy()
    least = np.full(count, np.inf)
    np.minimum.at(least, owner, late)
    return {"lateness_ns": np.where(np.isfinite(least), least, np.nan)}


def scores(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return modified z-scores; NaN for fewer than three values, and for what is NaN."""
    known = values[~np.isnan(values)]
    if len(known) < FEW_RANKS:
        return np.full(len(values), np.nan)
    apart = np.abs(known - np.median(known))
    scale = np.median(apart) / NORMAL_QUARTILE or apart.mean() / NORMAL_DEVIATION
    return (values - np.median(known)) / scale if scale else np.where(np.isnan(values), np.nan, 0.0)


def _judged(run: RankRun, columns: dict[str, Any]) -> dict[str, Any]:
    late = columns["lateness_ns"]
    spans = pd.factorize(np.array([part.evidence.span for part in run.parts], dtype=object))[0]
    score = np.full(len(late), np.nan)
    for span in range(int(spans.max()) + 1):
        score[spans == span] = scores(late[spans == span])
    step_ns = np.array([part.totals.step_ns for part in run.parts])
    counts = np.array([max(1, part.totals.step_count) for part in run.parts])
    caused_ns = columns["wait_caused_ns"] / counts
    is_outlier = (score > OUTLIER) & (late > 0)
    is_of_two = np.isnan(score) & (columns["last_share"] >= MOSTLY) & (late > 0)
    is_of_two &= caused_ns >= COSTLY * step_ns
    is_worth = late * columns["collective_count"] / counts >= LEAST_SHARE * step_ns
    return {"score": score, "is_straggler": (is_outlier & is_worth) | is_of_two}


def _since(run: RankRun, columns: dict[str, Any]) -> NDArray[np.int64]:
    """Return the first step of the last unbroken row of steps in which a straggler was late."""
    since = np.full(len(run.parts), -1, dtype=np.int64)
    members = _full(run)
    members = members[members["step"] >= 0]
    for at in np.flatnonzero(columns["is_straggler"]):
        own = members[members["recording"] == at]
        mean = own.groupby("step")["late_ns"].mean()
        is_early = mean.to_numpy() < columns["lateness_ns"][at] / 2
        begin = int(np.flatnonzero(is_early)[-1]) + 1 if is_early.any() else 0
        if begin < len(mean):
            since[at] = int(mean.index[begin])
    return since


def _causes(run: RankRun, columns: dict[str, Any]) -> dict[str, Any]:
    """Return what grows most on each straggler beside the median rank, if that explains it."""
    count = len(run.parts)
    cause, cause_ns = np.full(count, None, dtype=object), np.full(count, np.nan)
    if count:
        spent = {name: _spent(run, categories) for name, categories in CAUSES.items()}
        spent["computing"] = np.array([part.totals.computing_ns for part in run.parts])
        more = {name: own - np.median(own) for name, own in spent.items()}
        for at in np.flatnonzero(columns["is_straggler"]):
            name = max(more, key=lambda of: more[of][at])
            late = columns["lateness_ns"][at] * columns["collective_count"][at]
            late /= max(1, run.parts[at].totals.step_count)
            if more[name][at] > 0 and more[name][at] >= CAUSE_SHARE * late:
                cause[at], cause_ns[at] = name, more[name][at]
    return {"cause": cause, "cause_ns": cause_ns}


def _spent(run: RankRun, categories: Sequence[str]) -> NDArray[np.float64]:
    """Return how much of a mean step each recording spends in some categories.

    Where there is no device, it is the host's operators that compute.
    """
    spent = []
    for part in run.parts:
        own = part.totals.parts_ns
        names = (name for name in categories if part.has_device or name != "cpu")
        spent.append(sum(own.get(name, 0) for name in names))
    return np.array(spent, dtype=np.float64)
