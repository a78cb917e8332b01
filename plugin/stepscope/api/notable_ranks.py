"""The ranks of a run that stand out, as the Distributed view is told of them."""

from collections.abc import Mapping
from typing import Any, Literal

from stepscope.analyses.communication.outlier_ranks import outlier_ranks_of
from stepscope.analyses.communication.rank_metrics import FIGURES, step_excess_ns
from stepscope.analyses.communication.ranked_run import RankRun, as_ranges
from stepscope.analyses.communication.representative_ranks import representatives
from stepscope.analyses.communication.run_groups import RunGroup
from stepscope.api.distributed_messages import GroupInfo, OutlierRank, Representative, Straggler
from stepscope.api.metrics import finite, whole
from stepscope.api.run_ranks import SharedRun

MOST_LATE, MOST_STRAGGLERS, MOST_OUTLIERS = 20, 100, 100
"""An answer stays small however many ranks there are."""


def stragglers(shared: SharedRun) -> tuple[Straggler, ...]:
    """Return stragglers and who comes nearest to them."""
    table, run = shared.stragglers, shared.run
    at = {part.evidence.worker: place for place, part in enumerate(run.parts)}
    count = min(int(table["is_straggler"].sum()), MOST_STRAGGLERS) + MOST_LATE
    found = []
    for row in table.head(count).to_dict("records"):
        place = at[row["worker"]]
        steps = max(1, run.parts[place].totals.step_count)
        found.append(
            Straggler(
                rank=whole(row["rank"]),
                worker=row["worker"],
                is_straggler=bool(row["is_straggler"]),
                score=finite(row["score"]),
                own_excess_ns=finite(row["own_excess_ns"]),
                found_by=_found_by(row),
                lateness_ns=finite(row["lateness_ns"]),
                collective_count=int(row["collective_count"]),
                last_count=int(row["last_count"]),
                wait_caused_ns=row["wait_caused_ns"] / steps,
                wait_ns=row["wait_ns"] / steps,
                since_step=row["since_step"] if row["since_step"] >= 0 else None,
                late_steps=_late_steps(shared, place, row),
                cause=row["cause"],
                cause_ns=finite(row["cause_ns"]),
            )
        )
    return tuple(found)


def _found_by(row: Mapping[Any, Any]) -> Literal["", "lateness", "own work"]:
    if not row["is_straggler"]:
        return ""
    return "own work" if row["works_longer"] else "lateness"


def _late_steps(shared: SharedRun, place: int, row: Mapping[Any, Any]) -> tuple[int, ...]:
    """Return the steps in which a straggler was so by more than half of what it mostly is."""
    if not row["is_straggler"]:
        return ()
    steps = shared.steps
    late, least = steps.late_ns, row["lateness_ns"]
    if row["works_longer"]:
        late, least = step_excess_ns(shared.run), row["own_excess_ns"]
    is_late = (steps.trace_index == place) & (late > least / 2)
    return tuple(steps.number[is_late].tolist())


def representative_ranks(run: RankRun) -> tuple[Representative, ...]:
    """Return the few ranks to look at."""
    return tuple(
        Representative(
            rank=run.ranks[of.index].rank,
            worker=run.parts[of.index].evidence.worker,
            host=run.parts[of.index].host,
            kind=of.kind,
            figure=of.figure,
            value=of.value,
            usual=of.usual,
            unit=FIGURES[of.figure].unit,
            score=of.score,
            step_ns=run.parts[of.index].totals.step_ns,
            reason=of.reason,
        )
        for of in representatives(run)
    )


def outliers(run: RankRun) -> tuple[OutlierRank, ...]:
    """Return ranks and machines with a figure that lies apart, the farthest first."""
    return tuple(
        OutlierRank(
            rank=whole(row["rank"]),
            worker=row["worker"] or "",
            host=row["host"],
            is_host=bool(row["is_machine"]),
            figure=row["figure"],
            label=FIGURES[row["figure"]].label,
            value=row["value"],
            usual=row["usual"],
            unit=FIGURES[row["figure"]].unit,
            score=row["score"],
            is_sure=row["confidence"] == "high",
            reason=row["reason"],
        )
        for row in outlier_ranks_of(run).head(MOST_OUTLIERS).to_dict("records")
    )


def group_info(group: RunGroup) -> GroupInfo:
    """Return what a process group is."""
    return GroupInfo(
        name=group.name,
        description=group.description,
        role=group.role,
        role_confidence=group.role_confidence,
        why=group.role_reason,
        size=group.size or None,
        ranks=as_ranges(group.ranks),
    )
