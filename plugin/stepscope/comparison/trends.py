"""What a recording says for a trend: a number each of what matters, over a run's spans."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pandas as pd

from stepscope.advice import advise
from stepscope.analyses.steps.step_breakdown import CATEGORIES, step_breakdown
from stepscope.base.findings import Severity
from stepscope.base.report import DeviceReport, RunReport
from stepscope.model.frames import Column, Schema
from stepscope.model.table import RunTable
from stepscope.model.trace import Run, Trace

UNKNOWN = float("nan")
NO_STEPS = "NaN without steps"
FIGURES: Schema = (
    Column("step_ns", "float64", "ns", f"Mean step, until its device work ends; {NO_STEPS}."),
    Column("median_step_ns", "float64", "ns", f"Median step; {NO_STEPS}."),
    Column("longest_step_ns", "float64", "ns", f"Longest step; {NO_STEPS}."),
    Column(
        "step_deviation_ns",
        "float64",
        "ns",
        "The steps' standard deviation; NaN for less than two.",
    ),
    *(
        Column(f"{name}_ns", "float64", "ns", f"Of the mean step: {label}. {meaning}")
        for name, (label, meaning) in CATEGORIES.items()
    ),
    Column("busy_share", "float64", "share", "Of the window, in which the busiest device worked."),
    Column(
        "recoverable_share",
        "float64",
        "share",
        "Of the step (or window), what all findings together could save at most.",
    ),
    Column(
        "memory_peak_bytes",
        "float64",
        "bytes",
        "Most that torch had taken from one device at once: reserved, or where that is not recorded"
        " allocated; NaN without `profile_memory`, or totals, which torch writes since 1.10.",
    ),
)
"""What is followed; missing where it is not known."""
SCHEMA: Schema = (
    Column("worker", "object", "text", "The worker, by its file's name."),
    Column("span", "int64", "id", "Which of the worker's recordings, from 1."),
    Column("rank", "float64", "id", "The worker's rank; NaN if unknown."),
    Column("step_count", "int64", "count", "Steps that were recorded whole."),
    Column("finding_count", "int64", "count", "Pieces of advice, symptoms and notes included."),
    *FIGURES,
)


@dataclass(frozen=True, kw_only=True)
class Trend:
    """One recording's numbers."""

    worker: str
    span: int
    rank: int | None
    step_count: int
    finding_count: int
    figures: dict[str, float]
    """By the names in `FIGURES`."""
    recoverable_share: dict[str, float]
    """By rule: what its findings could save at most, of the step or window."""
    severity_counts: dict[Severity, int]
    """How many pieces of advice of each severity; symptoms and notes included."""


def trend(trace: Trace, report: RunReport | None = None) -> Trend:
    """Return a recording's numbers; its advice is by the usual settings unless it is given."""
    if report is None:
        report = advise(Run(name="", workers=(trace,)))
    [worker] = report.workers
    shares = _recoverable(report)
    return Trend(
        worker=trace.worker,
        span=int(trace.span) if trace.span.isdecimal() else 0,
        rank=trace.rank,
        step_count=worker.step.count,
        finding_count=sum(outcome.status == "found" for outcome in report.outcomes),
        figures={
            **_steps(trace),
            **_device(worker.devices),
            "recoverable_share": sum(shares.values(), 0.0),
        },
        recoverable_share=shares,
        severity_counts=_severities(report),
    )


def _severities(report: RunReport) -> dict[Severity, int]:
    found = Counter(outcome.severity for outcome in report.outcomes if outcome.status == "found")
    return {severity: found[severity] for severity in get_args(Severity)}


def _recoverable(report: RunReport) -> dict[str, float]:
    shares: dict[str, float] = {}
    for outcome in report.outcomes:
        if outcome.claim is not None:
            share = outcome.claim.net_share
            shares[outcome.rule] = shares.get(outcome.rule, 0.0) + share
    return shares


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
    peaks = [each.memory_peak_bytes for each in devices if each.memory_peak_bytes is not None]
    return {
        "busy_share": max((each.busy_share for each in devices), default=UNKNOWN),
        "memory_peak_bytes": float(max(peaks)) if peaks else UNKNOWN,
    }


def frame(trends: Sequence[Trend]) -> pd.DataFrame:
    """Return one row a recording, by worker and span, in `SCHEMA` columns."""
    ordered = sorted(trends, key=lambda each: (each.worker, each.span))
    columns = {
        "worker": [each.worker for each in ordered],
        "span": [each.span for each in ordered],
        "rank": [UNKNOWN if each.rank is None else each.rank for each in ordered],
        "step_count": [each.step_count for each in ordered],
        "finding_count": [each.finding_count for each in ordered],
        **{c.name: [each.figures[c.name] for each in ordered] for c in FIGURES},
    }
    return pd.DataFrame({c.name: pd.Series(columns[c.name], dtype=c.dtype) for c in SCHEMA})


TABLES = {
    "trends": RunTable(
        title="Trends",
        meaning="One row per recording of a run: its mean step and where that went, how busy the "
        "device was, what advice could save, the peak of memory. To follow over a run's spans.",
        schema=SCHEMA,
        part=trend,
        build=frame,
    ),
}
