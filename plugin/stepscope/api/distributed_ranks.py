"""Ranks and steps of a run for the Distributed view."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.communication.outlier_ranks import outlier_ranks_of
from stepscope.analyses.communication.process_groups import EXCHANGE
from stepscope.analyses.communication.rank_metrics import compute_of_steps
from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.communication.ranked_run import RankRun, as_ranges, missing_ranks
from stepscope.analyses.communication.run_steps import CATEGORIES, RunSteps
from stepscope.analyses.steps.step_breakdown import whole_parts
from stepscope.api import notable_ranks as notable
from stepscope.api.distributed_messages import (
    Distributed,
    Metric,
    RankBreakdown,
    RankInfo,
    RankRow,
    RankSteps,
    RunClocks,
)
from stepscope.api.endpoint import Group
from stepscope.api.messages import Category
from stepscope.api.metrics import finite, whole
from stepscope.api.run_ranks import SharedRun
from stepscope.base import urls
from stepscope.base.findings import Unit

MOST_GROUPS = 2_048
MOST_CELLS = 1_000_000
MOST_STEPS = 2_000
DIGITS = 10_000_000
"""Values of a heat map are sent as integers below this."""
SHARE_SCALE = 1e-4
METRICS: dict[Metric, tuple[str, str, Unit, bool]] = {
    "own": (
        "Compute time",
        "Step time without exposed communication. Others wait for the rank with the most.",
        "ns",
        True,
    ),
    "late": (
        "Lateness",
        "Mean arrival at a collective after the median rank, in the group with the least.",
        "ns",
        True,
    ),
    "step": (
        "Step time",
        "From the step's start to the end of the work launched in it.",
        "ns",
        True,
    ),
    "computing": (
        "Computing",
        "A device computes, collectives overlapped or not; without a device, operators run.",
        "ns",
        True,
    ),
    "waiting": (
        "Waiting for other ranks",
        "A collective runs, nothing computes, and other ranks have not arrived. They wait for the"
        " rank that waits least.",
        "ns",
        True,
    ),
    "exposed": (
        "Exposed communication",
        "A collective runs and nothing computes, waiting included.",
        "ns",
        True,
    ),
    "overlap": (
        "Overlap",
        "Fraction of the communication during which a device computes.",
        "share",
        False,
    ),
    "idle": ("Device idle", "The rank's busiest device is idle.", "ns", True),
    "loading": (
        "Data loading",
        "The host waits for the next batch and no device works.",
        "ns",
        True,
    ),
    "copies": ("Copies", "A device only copies or sets memory.", "ns", True),
}
"""Label, meaning and unit by metric, and whether high values are bad."""
UNKNOWN = {
    "own": "No collective is recorded on several ranks.",
    "late": "No collective that synchronizes all ranks is recorded on several ranks.",
    "waiting": "No collective is recorded on several ranks.",
    "overlap": "No step has communication.",
    "idle": "No device was recorded.",
    "copies": "No device was recorded.",
}

Floats = NDArray[np.float64]


def distributed(shared: SharedRun, group: Group[RankSummary]) -> Distributed:
    """Return a run's ranks, missing ranks, clocks, stragglers, outliers and groups."""
    run, steps = shared.run, shared.steps
    ranks = missing_ranks(run, [urls.name(problem.path) for problem in group.problems])
    missing = ranks.absent
    has_steps = any(part.steps.has_steps for part in run.parts)
    return Distributed(
        span=run.parts[0].evidence.span,
        world_size=ranks.world_size,
        ranks=_ranks(run),
        missing_count=len(missing),
        missing_ranks=as_ranges(missing),
        waiting_count=group.waiting_count,
        problems=tuple(group.problems),
        host_count=len({part.host for part in run.parts if part.host is not None}),
        has_device=any(part.has_device for part in run.parts),
        group_count=len(shared.groups),
        steps=tuple(np.unique(steps.number).tolist()) if has_steps else (),
        mean_step_ns=float(steps.duration_ns.mean()) if len(steps.duration_ns) else 0.0,
        collective_count=len(run.matches.first),
        matched_count=int((run.matches.size > 1).sum()),
        clocks=_clocks(run),
        stragglers=notable.stragglers(shared),
        straggler_count=int(shared.stragglers["is_straggler"].sum()),
        representatives=notable.representative_ranks(run),
        outliers=notable.outliers(run),
        outlier_count=len(outlier_ranks_of(run)),
        groups=tuple(
            notable.group_info(process_group) for process_group in shared.groups[:MOST_GROUPS]
        ),
        unreadable_ranks=as_ranges(ranks.unreadable),
        has_all_to_all=any(
            not EXCHANGE.isdisjoint(group.kinds) for part in run.parts for group in part.groups
        ),
    )


def _ranks(run: RankRun) -> tuple[RankInfo, ...]:
    return tuple(
        RankInfo(
            rank=of.rank,
            rank_source=of.source,
            rank_confidence=of.confidence,
            worker=part.evidence.worker,
            host=part.host,
            device_name=part.device_name,
            step_count=part.totals.step_count,
        )
        for part, of in zip(run.parts, run.ranks, strict=True)
    )


def _clocks(run: RankRun) -> RunClocks:
    clocks = run.alignment
    used = clocks.reference[clocks.reference >= 0]
    if not len(used):
        return RunClocks(
            reference="",
            machine_count=0,
            collective_count=0,
            lost_count=len(run.parts),
            error_ns=None,
            likely_error_ns=None,
            drift_count=0,
        )
    reference = int(np.bincount(used).argmax())
    is_aligned = clocks.reference == reference
    linked = is_aligned & (clocks.link == "collectives")
    return RunClocks(
        reference=run.parts[reference].evidence.worker,
        machine_count=int((is_aligned & ~linked).sum()),
        collective_count=int(linked.sum()),
        lost_count=int((~is_aligned).sum()),
        error_ns=finite(clocks.error_ns[is_aligned].max()),
        likely_error_ns=finite(clocks.likely_error_ns[is_aligned].max()),
        drift_count=int((clocks.drift[is_aligned] != 0).sum()),
    )


def heat(shared: SharedRun, metric: Metric, group: Group[RankSummary]) -> RankSteps:
    """Return one metric of every rank and step."""
    run, steps = shared.run, shared.steps
    label, meaning, unit, is_high_bad = METRICS[metric]
    numbers = np.unique(steps.number)
    most = max(1, min(MOST_STEPS, MOST_CELLS // max(1, len(run.parts))))
    shown = numbers[-most:]
    column = np.searchsorted(shown, steps.number)
    is_shown = steps.number >= (shown[0] if len(shown) else 0)
    figures = _figures(steps, metric)
    grid = np.full((len(run.parts), len(shown)), np.nan)
    grid[steps.trace_index[is_shown], column[is_shown]] = figures[is_shown]
    scale = SHARE_SCALE if unit == "share" else _scale(grid)
    return RankSteps(
        metric=metric,
        label=label,
        help=meaning,
        unit=unit,
        is_high_bad=is_high_bad,
        scale=scale,
        workers=tuple(part.evidence.worker for part in run.parts),
        ranks=tuple(of.rank for of in run.ranks),
        hosts=tuple(part.host for part in run.parts),
        steps=tuple(shown.tolist()),
        values=[_row(row) for row in grid / scale],
        left_out_count=len(numbers) - len(shown),
        waiting_count=group.waiting_count,
        empty="" if not np.isnan(grid).all() else UNKNOWN.get(metric, "No step was recorded."),
    )


def _row(values: Floats) -> list[int | None]:
    rounded = np.round(values)
    if not np.isnan(rounded).any():
        return list(rounded.astype(np.int64).tolist())
    return [None if value != value else int(value) for value in rounded.tolist()]  # noqa: PLR0124 (NaN)


def _scale(grid: Floats) -> float:
    """Return the power of ten that divides the values to fewer digits than `DIGITS`."""
    most = np.nanmax(np.abs(grid)) if not np.isnan(grid).all() else 0.0
    scale = 1.0
    while most / scale >= DIGITS:
        scale *= 10.0
    return scale


def _figures(steps: RunSteps, metric: Metric) -> Floats:
    """Return a metric of each row of `RunSteps`."""
    if metric == "overlap":
        return overlap_share(steps)
    figures: dict[str, NDArray[np.int64] | Floats] = {
        "own": compute_of_steps(steps),
        "late": steps.late_ns,
        "idle": steps.idle_ns,
        "step": steps.duration_ns,
        "waiting": np.where(steps.is_matched, steps.of("waiting"), np.nan),
        "computing": steps.of("computing") + steps.of("overlapped"),
        "exposed": steps.of("transfer") + steps.of("waiting"),
        "loading": steps.of("loading"),
        "copies": np.where(np.isnan(steps.idle_ns), np.nan, steps.of("copies")),  # no device
    }
    return figures[metric].astype(np.float64)


def overlap_share(steps: RunSteps) -> Floats:
    """Return the overlapped fraction of each row's communication; NaN where there is none."""
    sent = steps.communication_ns
    share: Floats = np.full(len(sent), np.nan)
    np.divide(steps.of("overlapped"), sent, out=share, where=sent > 0)
    return share


def breakdown(shared: SharedRun, step: int | None, group: Group[RankSummary]) -> RankBreakdown:
    """Return the time by category of each rank's mean step, or of one step."""
    run, steps = shared.run, shared.steps
    selected = np.arange(len(steps.number))
    if step is not None:
        selected = np.flatnonzero(steps.number == step)
    bounds = np.searchsorted(steps.trace_index[selected], np.arange(len(run.parts) + 1))
    of_rank = [selected[low:high] for low, high in pairwise(bounds)]
    sent = steps.communication_ns
    return RankBreakdown(
        step=step,
        categories=tuple(
            Category(id=key, label=label, help=meaning)
            for key, (label, meaning) in CATEGORIES.items()
        ),
        rows=tuple(
            _rank_row(run, steps, at, rows, sent[rows])
            for at, rows in enumerate(of_rank)
            if len(rows)
        ),
        without_step=tuple(
            part.evidence.worker
            for part, rows in zip(run.parts, of_rank, strict=True)
            if not len(rows)
        ),
        waiting_count=group.waiting_count,
    )


def _rank_row(
    run: RankRun,
    steps: RunSteps,
    at: int,
    rows: NDArray[np.int64],
    communication_ns: NDArray[np.int64],
) -> RankRow:
    duration_ns = round(float(steps.duration_ns[rows].mean()))
    parts = whole_parts(steps.parts_ns[rows].sum(axis=0), duration_ns)
    sent = float(communication_ns.mean())
    wait = min(sent, float(steps.wait_ns[rows].mean()))
    is_matched = bool(steps.is_matched[rows].all())
    of = dict(zip(CATEGORIES, parts, strict=True))
    late = steps.late_ns[rows]
    return RankRow(
        rank=run.ranks[at].rank,
        worker=run.parts[at].evidence.worker,
        host=run.parts[at].host,
        step_count=run.parts[at].totals.step_count,
        duration_ns=duration_ns,
        parts_ns=tuple(parts),
        communication_ns=round(sent),
        transfer_ns=round(sent) - round(wait) if is_matched else None,
        wait_ns=round(wait) if is_matched else None,
        exposed_ns=of["transfer"] + of["waiting"],
        overlap_share=of["overlapped"] / sent if sent else None,
        idle_ns=whole(float(steps.idle_ns[rows].mean())),
        late_ns=whole(float(late[~np.isnan(late)].mean())) if not np.isnan(late).all() else None,
    )
