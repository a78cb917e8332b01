"""The answer to how figures went from span to span, or from run to run."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from stepscope.base.findings import Severity, Unit
from stepscope.comparison.trends import FIGURES, Trend

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


def figure_descriptions() -> tuple[TrendFigure, ...]:
    """Return what every figure is."""
    return tuple(
        TrendFigure(name=each.name, unit=msgspec.convert(each.unit, Unit), meaning=each.meaning)
        for each in FIGURES
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
