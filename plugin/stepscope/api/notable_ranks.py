"""Stragglers, outliers and representative ranks of a run for the Distributed view."""

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
"""Limits of listed ranks."""


def stragglers(shared: SharedRun) -> tuple[Straggler, ...]:
    """Return the stragglers, then the latest other ranks."""
    table, run = shared.stragglers, shared.run
    at = {part.evidence.worker: index for index, part in enumerate(run.parts)}
    count = min(int(table["is_straggler"].sum()), MOST_STRAGGLERS) + MOST_LATE
    rows = []
    for row in table.head(count).to_dict("records"):
        index = at[row["worker"]]
        steps = max(1, run.parts[index].totals.step_count)
        rows.append(
            Straggler(
                rank=whole(row["rank"]),
                worker=row["worker"],
                is_straggler=bool(row["is_straggler"]),
                score=finite(row["score"]),
                own_excess_ns=finite(row["own_excess_ns"]),
                found_by=_measure(row),
                lateness_ns=finite(row["lateness_ns"]),
                collective_count=int(row["collective_count"]),
                last_count=int(row["last_count"]),
                wait_caused_ns=row["wait_caused_ns"] / steps,
                wait_ns=row["wait_ns"] / steps,
                since_step=row["since_step"] if row["since_step"] >= 0 else None,
                late_steps=_late_steps(shared, index, row),
                cause=row["cause"],
                cause_ns=finite(row["cause_ns"]),
            )
        )
    return tuple(rows)


def _measure(row: Mapping[Any, Any]) -> Literal["", "lateness", "own work"]:
    if not row["is_straggler"]:
        return ""
    return "own work" if row["works_longer"] else "lateness"


def _late_steps(shared: SharedRun, index: int, row: Mapping[Any, Any]) -> tuple[int, ...]:
    """Return the steps in which a straggler exceeds half of its mean lateness or excess."""
    if not row["is_straggler"]:
        return ()
    steps = shared.steps
    late, least = steps.late_ns, row["lateness_ns"]
    if row["works_longer"]:
        late, least = step_excess_ns(shared.run), row["own_excess_ns"]
    is_late = (steps.trace_index == index) & (late > least / 2)
    return tuple(steps.number[is_late].tolist())


def representative_ranks(run: RankRun) -> tuple[Representative, ...]:
    """Return the ranks to examine first."""
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
    """Return ranks and machines with an outlying metric, largest z-score first."""
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
    """Return a process group's name, role and ranks."""
    return GroupInfo(
        name=group.name,
        description=group.description,
        role=group.role,
        role_confidence=group.role_confidence,
        why=group.role_reason,
        size=group.size or None,
        ranks=as_ranges(group.ranks),
    )
