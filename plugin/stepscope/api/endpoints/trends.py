"""How step time, its parts and what advice could save went over spans, or over runs."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import msgspec

from stepscope.analyses.steps.step_breakdown import CATEGORIES
from stepscope.api.endpoint import Group, GroupsEndpoint, Query
from stepscope.base import urls
from stepscope.base.errors import UnknownNameError
from stepscope.base.findings import Severity, Unit
from stepscope.base.report import SCHEMA_VERSION
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Entry
from stepscope.comparison.trends import FIGURES, Trend, trend

Name = TypeVar("Name", bound=str)


@dataclass(frozen=True, kw_only=True)
class TraceTrend:
    """One recording's numbers, and which recording it is."""

    trace: str
    trend: Trend


class TrendFigure(msgspec.Struct, frozen=True):
    """A figure that is followed."""

    name: str
    unit: Unit
    meaning: str
    label: str = ""


class TrendPoint(msgspec.Struct, frozen=True):
    """A run's figures at one span: means over its workers; of `memory_peak_bytes` the largest."""

    run: str
    """The run's id."""
    run_name: str
    span: int
    """Which of the worker's recordings, from 1."""
    traces: tuple[str, ...]
    """The recordings that it is the mean of, a worker each."""
    figures: dict[str, float | None]
    """By name; null where no recording has it."""
    least_step_ns: float | None
    """The mean step of the quickest worker."""
    most_step_ns: float | None
    """The mean step of the slowest worker."""
    step_count: int
    """Steps that were recorded whole, of all its workers."""
    finding_count: float
    """Pieces of advice a recording, symptoms and notes included."""
    severity_counts: dict[Severity, float]
    """Of them, those of each severity."""
    recoverable_shares: dict[str, float]
    """By rule: what its findings could save at most, of the step or window."""


class Trends(msgspec.Struct, frozen=True):
    """Figures from span to span, or from run to run."""

    schema: int
    figures: tuple[TrendFigure, ...]
    points: tuple[TrendPoint, ...]
    """Of the run that was recorded first before others, as far as the files' names tell; a run's
    spans in their order."""
    waiting_count: int
    """Recordings that are still to be read."""
    unreadable_count: int
    """Recordings that cannot be read, and are left out."""


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
"""Labels of the figures."""


def figure_descriptions() -> tuple[TrendFigure, ...]:
    """Return what every figure is."""
    return tuple(
        TrendFigure(
            name=column.name,
            unit=msgspec.convert(column.unit, Unit),
            meaning=column.meaning,
            label=LABELS[column.name],
        )
        for column in FIGURES
    )


def points(run: str, name: str, parts: Sequence[TraceTrend]) -> list[TrendPoint]:
    """Return a run's points, a span each."""
    spans: dict[int, list[TraceTrend]] = {}
    for each in parts:
        spans.setdefault(each.trend.span, []).append(each)
    return [_point(run, name, span, own) for span, own in sorted(spans.items())]


def _point(run: str, name: str, span: int, parts: Sequence[TraceTrend]) -> TrendPoint:
    trends = [each.trend for each in parts]
    steps = [step for each in trends if not math.isnan(step := each.figures["step_ns"])]
    return TrendPoint(
        run=run,
        run_name=name,
        span=span,
        traces=tuple(each.trace for each in parts),
        figures={each.name: _together(each.name, trends) for each in FIGURES},
        least_step_ns=min(steps, default=None),
        most_step_ns=max(steps, default=None),
        step_count=sum(each.step_count for each in trends),
        finding_count=sum(each.finding_count for each in trends) / len(trends),
        severity_counts=_means([each.severity_counts for each in trends]),
        recoverable_shares=_means([each.recoverable_share for each in trends]),
    )


def _together(figure: str, trends: Iterable[Trend]) -> float | None:
    known = [
        value for each in trends if not math.isnan(value := each.figures.get(figure, math.nan))
    ]
    if not known:
        return None
    return max(known) if figure.endswith("_peak_bytes") else sum(known) / len(known)


def _means(counts: Sequence[Mapping[Name, float]]) -> dict[Name, float]:
    names = dict.fromkeys(name for each in counts for name in each)
    return {name: sum(each.get(name, 0) for each in counts) / len(counts) for name in names}


MOST_RECORDINGS = 500
"""More than can be told apart on a screen; each is read if it was not yet."""


class Followed(Query, frozen=True, kw_only=True):
    """What is followed: the spans of one run, or runs."""

    run: str
    """The run's id."""
    scope: Literal["spans", "folder", "all"] = "spans"
    """`spans` of the run, the runs of its `folder`, or `all` runs."""
    worker: str | None = None
    """Of `spans`, those of this worker; the mean over all workers where none is named."""
    most: int = MOST_RECORDINGS
    """How many recordings at most, those recorded last; 500 or fewer."""


def entries(catalog: Catalog, query: Followed) -> Mapping[str, tuple[Entry, ...]]:
    """Return the recordings that are followed, by run, in the order in which they were recorded."""
    most = max(1, min(query.most, MOST_RECORDINGS))
    latest = sorted(_in_scope(catalog, query), key=_recorded)[-most:]
    runs: dict[str, list[Entry]] = {}
    for entry in latest:
        runs.setdefault(entry.file.run_id, []).append(entry)
    return {run: tuple(own) for run, own in runs.items()}


def _in_scope(catalog: Catalog, query: Followed) -> Sequence[Entry]:
    own = catalog.run(query.run)
    if query.scope == "spans":
        return _of_worker(own, query.worker)
    folder = urls.parent(own[0].file.folder)
    return [
        entry
        for entry in catalog.entries()
        if query.scope == "all" or urls.parent(entry.file.folder) == folder
    ]


def _of_worker(own: Sequence[Entry], worker: str | None) -> Sequence[Entry]:
    found = [entry for entry in own if worker in {None, entry.file.worker}]
    if not found:
        msg = f"{own[0].file.run} has no worker {worker!r}"
        raise UnknownNameError(msg)
    return found


def _recorded(entry: Entry) -> tuple[int, str, str]:
    return entry.file.recorded_ns, entry.file.run, entry.file.span.zfill(9)


def ask(groups: Mapping[str, Group[Trend]], _: Followed) -> Trends:
    """Answer with a point a run and span."""
    found = [
        point
        for run, group in groups.items()
        for point in points(run, group.name, _recorded_ones(group))
    ]
    return Trends(
        schema=SCHEMA_VERSION,
        figures=figure_descriptions(),
        points=tuple(found),
        waiting_count=sum(group.waiting_count for group in groups.values()),
        unreadable_count=sum(len(group.problems) for group in groups.values()),
    )


def _recorded_ones(group: Group[Trend]) -> list[TraceTrend]:
    own = zip(group.traces, group.parts, strict=True)
    return [TraceTrend(trace=trace, trend=each) for trace, each in own]


ENDPOINTS = (
    GroupsEndpoint(
        path="trends",
        meaning="Step time, its parts, how busy devices were, memory and what advice could save,"
        " from span to span or from run to run.",
        query=Followed,
        part=trend,
        entries=entries,
        response=Trends,
        handler=ask,
        needs_all=False,
    ),
)
