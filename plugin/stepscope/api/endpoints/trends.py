"""Trends of step time, its parts and potential savings, over spans or runs."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import msgspec

from stepscope.advice.settings import SEVERITIES
from stepscope.analyses.steps.step_breakdown import CATEGORIES
from stepscope.api.endpoint import Group, GroupsEndpoint, Query
from stepscope.api.messages import Response
from stepscope.base import urls
from stepscope.base.errors import UnknownNameError
from stepscope.base.findings import Severity, Unit
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Entry
from stepscope.comparison.trends import FIGURES, Trend, trend

Name = TypeVar("Name", bound=str)


@dataclass(frozen=True, kw_only=True)
class TraceTrend:
    """Trend metrics of one trace."""

    trace: str
    trend: Trend


class TrendFigure(msgspec.Struct, frozen=True):
    """A metric of the trends."""

    name: str
    unit: Unit
    meaning: str
    label: str = ""


class TrendPoint(msgspec.Struct, frozen=True):
    """A run's metrics at one span: means over workers, the maximum for `memory_peak_bytes`."""

    run: str
    """The run's id."""
    run_name: str
    span: int
    """Number of the workers' trace, from 1."""
    traces: tuple[str, ...]
    """Ids of its traces, one per worker."""
    figures: dict[str, float | None]
    """By name; null where no trace has it."""
    least_step_ns: float | None
    """Mean step time of the fastest worker."""
    most_step_ns: float | None
    """Mean step time of the slowest worker."""
    step_count: int
    """Complete steps of all its workers."""
    finding_count: int
    """Findings of its traces, symptoms and notes included; one of several workers counts once."""
    severity_counts: dict[Severity, int]
    """Findings by their most serious severity."""
    recoverable_shares: dict[str, float]
    """Potential saving by rule, as a fraction of the step or window."""


class Trends(Response, frozen=True, kw_only=True):
    """Metrics over the spans of a run, or over runs."""

    figures: tuple[TrendFigure, ...]
    points: tuple[TrendPoint, ...]
    """By run, the earliest recorded first (from the files' names), then by span."""
    waiting_count: int
    """Traces that are not read yet."""
    unreadable_count: int
    """Traces that cannot be read."""


LABELS = {
    "step_ns": "Mean step",
    "median_step_ns": "Median",
    "longest_step_ns": "Longest",
    "step_deviation_ns": "Deviation",
    **{f"{name}_ns": label for name, (label, _) in CATEGORIES.items()},
    "busy_share": "Busy",
    "recoverable_share": "Potential saving",
    "memory_peak_bytes": "Memory peak",
}
"""Labels of the metrics."""


def figure_descriptions() -> tuple[TrendFigure, ...]:
    """Return name, unit and meaning of the metrics."""
    return tuple(
        TrendFigure(
            name=figure.name,
            unit=msgspec.convert(figure.unit, Unit),
            meaning=figure.meaning,
            label=LABELS[figure.name],
        )
        for figure in FIGURES
    )


def points(run: str, name: str, parts: Sequence[TraceTrend]) -> list[TrendPoint]:
    """Return a run's points, one per span."""
    spans: dict[int, list[TraceTrend]] = {}
    for part in parts:
        spans.setdefault(part.trend.span, []).append(part)
    return [_point(run, name, span, of_span) for span, of_span in sorted(spans.items())]


def _point(run: str, name: str, span: int, parts: Sequence[TraceTrend]) -> TrendPoint:
    trends = [part.trend for part in parts]
    severities = _most_serious(trends)
    steps = [step for trace in trends if not math.isnan(step := trace.figures["step_ns"])]
    return TrendPoint(
        run=run,
        run_name=name,
        span=span,
        traces=tuple(part.trace for part in parts),
        figures={figure.name: _combined(figure.name, trends) for figure in FIGURES},
        least_step_ns=min(steps, default=None),
        most_step_ns=max(steps, default=None),
        step_count=sum(trace.step_count for trace in trends),
        finding_count=len(severities),
        severity_counts={
            severity: sum(other == severity for other in severities.values())
            for severity in SEVERITIES
        },
        recoverable_shares=_means([trace.recoverable_share for trace in trends]),
    )


def _combined(figure: str, trends: Iterable[Trend]) -> float | None:
    values = [
        value for trace in trends if not math.isnan(value := trace.figures.get(figure, math.nan))
    ]
    if not values:
        return None
    return max(values) if figure.endswith("_peak_bytes") else sum(values) / len(values)


def _most_serious(trends: Iterable[Trend]) -> dict[str, Severity]:
    """Return each finding's most serious severity on any worker, by its fingerprint."""
    severities: dict[str, Severity] = {}
    for trace in trends:
        for finding, severity in trace.severities.items():
            others = (severity, severities.get(finding, severity))
            severities[finding] = min(others, key=SEVERITIES.index)
    return severities


def _means(counts: Sequence[Mapping[Name, float]]) -> dict[Name, float]:
    names = dict.fromkeys(name for of_trace in counts for name in of_trace)
    return {name: sum(of_trace.get(name, 0) for of_trace in counts) / len(counts) for name in names}


MOST_TRACES = 500
"""Limit of traces: a request reads those that are not read yet."""


class TrendsQuery(Query, frozen=True, kw_only=True):
    """The spans of one run, or runs."""

    run: str
    """The run's id."""
    scope: Literal["spans", "folder", "all"] = "spans"
    """`spans` of the run, runs in its `folder`, or `all` runs."""
    worker: str | None = None
    """For `spans`: one worker by name; without it, the mean over all workers."""
    most: int = MOST_TRACES
    """Maximum number of traces, the latest recorded; up to 500."""


def entries(catalog: Catalog, query: TrendsQuery) -> Mapping[str, tuple[Entry, ...]]:
    """Return the traces by run, in the order of their recording."""
    most = max(1, min(query.most, MOST_TRACES))
    latest = sorted(_in_scope(catalog, query), key=_recorded)[-most:]
    runs: dict[str, list[Entry]] = {}
    for entry in latest:
        runs.setdefault(entry.file.run_id, []).append(entry)
    return {run: tuple(of_run) for run, of_run in runs.items()}


def _in_scope(catalog: Catalog, query: TrendsQuery) -> Sequence[Entry]:
    entries_of_run = catalog.run(query.run)
    if query.scope == "spans":
        return _of_worker(entries_of_run, query.worker)
    folder = urls.parent(entries_of_run[0].file.folder)
    return [
        entry
        for entry in catalog.entries()
        if query.scope == "all" or urls.parent(entry.file.folder) == folder
    ]


def _of_worker(entries: Sequence[Entry], worker: str | None) -> Sequence[Entry]:
    of_worker = [entry for entry in entries if worker in {None, entry.file.worker}]
    if not of_worker:
        msg = f"{entries[0].file.run} has no worker {worker!r}"
        raise UnknownNameError(msg)
    return of_worker


def _recorded(entry: Entry) -> tuple[int, str, str]:
    return entry.file.recorded_ns, entry.file.run, entry.file.span.zfill(9)


def trends(groups: Mapping[str, Group[Trend]], _: TrendsQuery) -> Trends:
    """Return step time, its parts, memory and potential savings over spans or runs."""
    run_points = [
        point for run, group in groups.items() for point in points(run, group.name, _trends(group))
    ]
    return Trends(
        figures=figure_descriptions(),
        points=tuple(run_points),
        waiting_count=sum(group.waiting_count for group in groups.values()),
        unreadable_count=sum(len(group.problems) for group in groups.values()),
    )


def _trends(group: Group[Trend]) -> list[TraceTrend]:
    pairs = zip(group.traces, group.parts, strict=True)
    return [TraceTrend(trace=trace, trend=of_trace) for trace, of_trace in pairs]


ENDPOINTS = (
    GroupsEndpoint(
        path="trends",
        meaning="Step time, its parts, device use, memory and savings over spans or runs.",
        query=TrendsQuery,
        part=trend,
        entries=entries,
        response=Trends,
        handler=trends,
        needs_all=False,
    ),
)
