"""What each recording is of its job: on which machine, in which groups, for whom it waits."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from stepscope.advice.trace_advice import TraceAdvice
from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.communication.rank_table import rank_table_of
from stepscope.analyses.communication.ranked_run import RankRun, rank_run
from stepscope.analyses.communication.representative_ranks import representatives
from stepscope.analyses.communication.run_groups import RunGroup, run_groups
from stepscope.analyses.communication.run_steps import run_steps
from stepscope.analyses.core import group_statistics as statistics
from stepscope.base.report import RepresentativeTrace, WorkerReport

PIPELINE, TENSOR = "PP", "TP"
STAGE = "pipeline stage"
SURE = ("high", "medium")
MOST_UNMATCHED_SHARE = 0.01
"""Of the step, in collectives that were found on no other rank."""

Recorded = tuple[str, str]
"""Worker and span."""


def worker_reports(recordings: Sequence[TraceAdvice]) -> tuple[WorkerReport, ...]:
    """Return the recordings' reports with what only all of them together tell."""
    parts = _of_several(recordings)
    if not parts:
        return tuple(_alone(each.worker, each.part) for each in recordings)
    waits = _waits(parts)
    groups = _groups(rank_run(parts))
    return tuple(
        msgspec.structs.replace(
            _alone(each.worker, each.part),
            groups=groups.get((each.worker.name, each.worker.span), ()),
            wait_ns=waits.get((each.worker.name, each.worker.span)),
        )
        for each in recordings
    )


def representative_recordings(
    recordings: Sequence[TraceAdvice],
) -> tuple[RepresentativeTrace, ...]:
    """Return the few recordings of several ranks to look at."""
    parts = _of_several(recordings)
    if not parts:
        return ()
    run = rank_run(parts)
    traces = {(each.worker.name, each.worker.span): each.worker.trace for each in recordings}
    return tuple(
        RepresentativeTrace(
            kind=each.kind,
            trace=traces[evidence.worker, evidence.span],
            rank=run.ranks[each.index].rank,
            name=evidence.worker,
            reason=each.reason,
        )
        for each in representatives(run)
        for evidence in [run.parts[each.index].evidence]
    )


def _of_several(recordings: Sequence[TraceAdvice]) -> list[RankSummary]:
    """Return what the ranks have to say beside each other; nothing of a single process."""
    parts = [each.part for each in recordings if each.part is not None]
    return parts if len({part.evidence.worker for part in parts}) > 1 else []


def _alone(worker: WorkerReport, part: RankSummary | None) -> WorkerReport:
    if part is None:
        return worker
    size = part.world_size
    if size is None and not len(part.collectives) and not part.groups:
        size = 1
    return msgspec.structs.replace(worker, host=part.host or "", world_size=size)


def _waits(parts: Sequence[RankSummary]) -> dict[Recorded, int]:
    """Return how long recordings wait a step, of those nearly all of whose collectives matched.

    It is waiting that no computing hides: of the rest a rank loses nothing. Where those whom a rank
    met were not recorded, its waiting for them cannot be told.
    """
    run = rank_run(parts)
    table, steps = rank_table_of(run), run_steps(run)
    waits_ns = statistics.mean(steps.of("waiting"), steps.trace_index, len(parts))
    unmatched_ns = table["communication_ns"] - table["transfer_ns"] - table["wait_ns"]
    is_known = (unmatched_ns <= MOST_UNMATCHED_SHARE * table["step_ns"]) & ~np.isnan(waits_ns)
    recorded = zip(table["worker"], table["span"], waits_ns.tolist(), is_known, strict=True)
    return {
        (str(worker), str(span)): round(wait_ns)
        for worker, span, wait_ns, known in recorded
        if known
    }


def _groups(run: RankRun) -> dict[Recorded, tuple[str, ...]]:
    """Return the names of the stage and of the tensor-parallel group that recordings belong to."""
    found = [group for group in run_groups(run) if group.role_confidence in SURE]
    stages = _stages([group.ranks for group in found if group.role == PIPELINE])
    tensor = _numbered([group for group in found if group.role == TENSOR])
    return {
        (part.evidence.worker, part.evidence.span): tuple(
            of[rank.rank] for of in (stages, tensor) if rank.rank is not None and rank.rank in of
        )
        for part, rank in zip(run.parts, run.ranks, strict=True)
    }


def _stages(pipelines: Iterable[tuple[int, ...]]) -> Mapping[int, str]:
    """Return the ranks' stages: a pipeline's group names its ranks in the order of the stages."""
    distinct = set(pipelines)
    sizes = {len(ranks) for ranks in distinct}
    members = [rank for ranks in distinct for rank in ranks]
    if len(sizes) != 1 or len(members) != len(set(members)) or sizes == {1}:
        return {}
    return {
        rank: f"{STAGE} {place} of {len(ranks)}"
        for ranks in distinct
        for place, rank in enumerate(ranks, start=1)
    }


def _numbered(groups: Iterable[RunGroup]) -> Mapping[int, str]:
    """Return the ranks' tensor-parallel groups, numbered by their first ranks."""
    distinct = sorted({group.ranks for group in groups if len(group.ranks) > 1})
    members = [rank for ranks in distinct for rank in ranks]
    if len(distinct) < 2 or len(members) != len(set(members)):
        return {}
    return {
        rank: f"tensor-parallel group {place} of {len(distinct)}"
        for place, ranks in enumerate(distinct, start=1)
        for rank in ranks
    }
