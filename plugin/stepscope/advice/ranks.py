"""Each trace's part in its job: machine, groups, waiting for other ranks."""

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
"""Of the step, in collectives without a match on another rank."""

TraceKey = tuple[str, str]
"""Worker and span."""


def worker_reports(traces: Sequence[TraceAdvice]) -> tuple[WorkerReport, ...]:
    """Return the reports of traces, with waiting and groups that all traces together show."""
    parts = _summaries(traces)
    if not parts:
        return tuple(_with_host(advice.worker, advice.part) for advice in traces)
    waits = _waits(parts)
    groups = _groups(rank_run(parts))
    return tuple(
        msgspec.structs.replace(
            _with_host(advice.worker, advice.part),
            groups=groups.get((advice.worker.name, advice.worker.span), ()),
            wait_ns=waits.get((advice.worker.name, advice.worker.span)),
        )
        for advice in traces
    )


def representative_traces(
    traces: Sequence[TraceAdvice],
) -> tuple[RepresentativeTrace, ...]:
    """Return the traces that represent several ranks."""
    parts = _summaries(traces)
    if not parts:
        return ()
    run = rank_run(parts)
    ids = {(advice.worker.name, advice.worker.span): advice.worker.trace for advice in traces}
    return tuple(
        RepresentativeTrace(
            kind=selected.kind,
            trace=ids[evidence.worker, evidence.span],
            rank=run.ranks[selected.index].rank,
            name=evidence.worker,
            reason=selected.reason,
        )
        for selected in representatives(run)
        for evidence in [run.parts[selected.index].evidence]
    )


def _summaries(traces: Sequence[TraceAdvice]) -> list[RankSummary]:
    """Return the ranks' summaries; empty for a single process."""
    parts = [advice.part for advice in traces if advice.part is not None]
    return parts if len({part.evidence.worker for part in parts}) > 1 else []


def _with_host(worker: WorkerReport, part: RankSummary | None) -> WorkerReport:
    if part is None:
        return worker
    size = part.world_size
    if size is None and not len(part.collectives) and not part.groups:
        size = 1
    return msgspec.structs.replace(worker, host=part.host or "", world_size=size)


def _waits(parts: Sequence[RankSummary]) -> dict[TraceKey, int]:
    """Return the exposed waiting per step of traces with nearly all collectives matched.

    Waiting for ranks that were not recorded is unknown.
    """
    run = rank_run(parts)
    table, steps = rank_table_of(run), run_steps(run)
    waits_ns = statistics.mean(steps.of("waiting"), steps.trace_index, len(parts))
    unmatched_ns = table["communication_ns"] - table["transfer_ns"] - table["wait_ns"]
    is_matched = (unmatched_ns <= MOST_UNMATCHED_SHARE * table["step_ns"]) & ~np.isnan(waits_ns)
    rows = zip(table["worker"], table["span"], waits_ns.tolist(), is_matched, strict=True)
    return {
        (str(worker), str(span)): round(wait_ns)
        for worker, span, wait_ns, matched in rows
        if matched
    }


def _groups(run: RankRun) -> dict[TraceKey, tuple[str, ...]]:
    """Return the names of the stage and the tensor-parallel group of each trace."""
    groups = [group for group in run_groups(run) if group.role_confidence in SURE]
    stages = _stages([group.ranks for group in groups if group.role == PIPELINE])
    tensor = _numbered([group for group in groups if group.role == TENSOR])
    return {
        (part.evidence.worker, part.evidence.span): tuple(
            of[rank.rank] for of in (stages, tensor) if rank.rank is not None and rank.rank in of
        )
        for part, rank in zip(run.parts, run.ranks, strict=True)
    }


def _stages(pipelines: Iterable[tuple[int, ...]]) -> Mapping[int, str]:
    """Return the ranks' stages: a pipeline group lists its ranks in the order of the stages."""
    distinct = set(pipelines)
    sizes = {len(ranks) for ranks in distinct}
    members = [rank for ranks in distinct for rank in ranks]
    if len(sizes) != 1 or len(members) != len(set(members)) or sizes == {1}:
        return {}
    return {
        rank: f"{STAGE} {number} of {len(ranks)}"
        for ranks in distinct
        for number, rank in enumerate(ranks, start=1)
    }


def _numbered(groups: Iterable[RunGroup]) -> Mapping[int, str]:
    """Return the ranks' tensor-parallel groups, numbered by their first ranks."""
    distinct = sorted({group.ranks for group in groups if len(group.ranks) > 1})
    members = [rank for ranks in distinct for rank in ranks]
    if len(distinct) < 2 or len(members) != len(set(members)):
        return {}
    return {
        rank: f"tensor-parallel group {number} of {len(distinct)}"
        for number, ranks in enumerate(distinct, start=1)
        for rank in ranks
    }
