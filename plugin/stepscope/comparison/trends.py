"""Key figures of each trace of a run, as a trend over its spans."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.advice import advise
from stepscope.analyses.core.batch_size import batch_size
from stepscope.analyses.steps.step_breakdown import CATEGORIES, step_breakdown
from stepscope.base.findings import Severity
from stepscope.base.report import DeviceReport, RunReport
from stepscope.model.frames import Column, Schema
from stepscope.model.table import run_table, to_frame
from stepscope.model.trace import Run, Trace

UNKNOWN = float("nan")
NO_STEPS = "NaN without steps"
FIGURES: Schema = (
    Column("step_ns", "float64", "ns", f"Mean step, until its device work ends; {NO_STEPS}."),
    Column("median_step_ns", "float64", "ns", f"Median step; {NO_STEPS}."),
    Column("longest_step_ns", "float64", "ns", f"Longest step; {NO_STEPS}."),
    Column("step_deviation_ns", "float64", "ns", "The steps' standard deviation; NaN for less"
           " than two."),
    *(
        Column(f"{name}_ns", "float64", "ns", f"Of the mean step: {label}. {meaning}")
        for name, (label, meaning) in CATEGORIES.items()
    ),
    Column("busy_share", "float64", "share", "Fraction of the window in which the busiest device"
           " worked."),
    Column("recoverable_share", "float64", "share", "The most that all findings together could"
           " save, as a fraction of the step (or window)."),
    Column("memory_peak_bytes", "float64", "bytes", "The most memory that torch had reserved on"
           " one device at once; allocated, where reserved memory was not recorded; NaN without"
           " `profile_memory`, or before torch 1.10."),
)  # fmt: skip
"""The figures of a trend; NaN where unknown."""
SCHEMA: Schema = (
    Column("worker", "object", "text", "The worker, by its file's name."),
    Column("span", "int64", "id", "Number of the worker's trace, from 1."),
    Column("rank", "float64", "id", "The worker's rank; NaN if unknown."),
    Column("step_count", "int64", "count", "Complete steps."),
    Column("finding_count", "int64", "count", "Findings, including symptoms and notes."),
    *FIGURES,
)


@dataclass(frozen=True, kw_only=True)
class Trend:
    """Key figures of one trace."""

    worker: str
    span: int
    rank: int | None
    step_count: int
    finding_count: int
    figures: dict[str, float]
    """By the names in `FIGURES`."""
    recoverable_share: dict[str, float]
    """By rule: its part of the potential saving of all findings, a fraction of the step or window,
    in proportion to its net savings."""
    severities: dict[str, Severity]
    """Severity of each finding by its fingerprint, which it has on other workers as well."""
    batch_size: int | None = None
    """Samples per step; None: not recorded, or uncertain."""


def trend(trace: Trace, report: RunReport | None = None) -> Trend:
    """Return a trace's key figures; without `report`, with advice by default settings."""
    if report is None:
        report = advise(Run(name="", workers=(trace,)))
    [worker] = report.workers
    total_share = worker.saving.high_share if worker.saving else 0.0
    batch = batch_size(trace)
    return Trend(
        worker=trace.worker,
        span=int(trace.span) if trace.span.isdecimal() else 0,
        rank=trace.rank,
        step_count=worker.step.count,
        finding_count=sum(outcome.status == "found" for outcome in report.outcomes),
        figures={
            **_steps(trace),
            **_device(worker.devices),
            "recoverable_share": total_share,
        },
        recoverable_share=_recoverable(report, total_share),
        severities={
            outcome.fingerprint: outcome.severity
            for outcome in report.outcomes
            if outcome.status == "found" and outcome.severity is not None
        },
        batch_size=batch.size if batch and batch.is_certain else None,
    )


def _recoverable(report: RunReport, total_share: float) -> dict[str, float]:
    shares: dict[str, float] = {}
    for outcome in report.outcomes:
        if outcome.claim is not None:
            share = outcome.claim.decisive.net_share
            shares[outcome.rule] = shares.get(outcome.rule, 0.0) + share
    scale = total_share / (sum(shares.values()) or 1.0)
    return {rule: share * scale for rule, share in shares.items()}


def _steps(trace: Trace) -> dict[str, float]:
    steps = step_breakdown(trace)
    names = [column.name for column in FIGURES[: 4 + len(CATEGORIES)]]
    if not steps.step_count:
        return dict.fromkeys(names, UNKNOWN)
    durations = steps.duration_ns
    values = [
        steps.mean_ns,
        float(np.median(durations)),
        int(durations.max()),
        steps.standard_deviation_ns if steps.step_count > 1 else UNKNOWN,
        *steps.mean_parts_ns.values(),
    ]
    return dict(zip(names, map(float, values), strict=True))


def _device(devices: Sequence[DeviceReport]) -> dict[str, float]:
    peaks = [d.memory_peak_bytes for d in devices if d.memory_peak_bytes is not None]
    return {
        "busy_share": max((device.busy_share for device in devices), default=UNKNOWN),
        "memory_peak_bytes": float(max(peaks)) if peaks else UNKNOWN,
    }


@run_table(
    "trends",
    SCHEMA,
    trend,
    "One row per trace of a run: its mean step and the parts of it, the device's busy time,"
    " potential saving, peak memory. To follow over a run's spans.",
)
def trend_table(trends: Sequence[Trend]) -> pd.DataFrame:
    """Return one row per trace, by worker and span, in `SCHEMA` columns."""
    ordered = sorted(trends, key=lambda trend: (trend.worker, trend.span))
    columns = {
        "worker": [trend.worker for trend in ordered],
        "span": [trend.span for trend in ordered],
        "rank": [UNKNOWN if trend.rank is None else trend.rank for trend in ordered],
        "step_count": [trend.step_count for trend in ordered],
        "finding_count": [trend.finding_count for trend in ordered],
        **{c.name: [trend.figures[c.name] for trend in ordered] for c in FIGURES},
    }
    return to_frame(SCHEMA, columns)
