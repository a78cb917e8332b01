"""Tasks that readers run on a trace; heavy modules are imported when a task runs.

Reader processes receive a task by its name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings, TraceAdvice
    from stepscope.analyses.communication.rank_summary import RankSummary
    from stepscope.base.report import FileHealth, HealthItem
    from stepscope.comparison.samples import Sample
    from stepscope.comparison.trends import Trend
    from stepscope.model.trace import Trace
    from stepscope.render.stack_file import Request as StackRequest
    from stepscope.render.table_export import Request, TableResult
    from stepscope.render.trace_excerpt import Excerpt
    from stepscope.render.trace_excerpt import Request as CutRequest
    from stepscope.replay.what_if import Prediction, WhatIf
    from stepscope.summaries.summary import Summary

T = TypeVar("T")


def analyse(trace: "Trace") -> None:
    """Cache on a trace the report that all advice uses."""
    from stepscope.advice import worker_report

    worker_report(trace)


def advise(trace: "Trace", *, settings: "AdviceSettings | None" = None) -> "TraceAdvice":
    """Return the advice on a trace, by the settings of its run."""
    from stepscope.advice import advise_trace

    return advise_trace(trace) if settings is None else advise_trace(trace, settings)


def summarise(trace: "Trace", *, settings: "AdviceSettings | None" = None) -> "Summary":
    """Return the summary of a trace, by the settings of its run."""
    from stepscope.summaries import summary

    return (
        summary.summarise(trace)
        if settings is None
        else summary.summarise(trace, settings=settings)
    )


def summarise_rank(trace: "Trace") -> "RankSummary":
    """Return the summary of a trace for comparisons across ranks."""
    from stepscope.analyses.communication.rank_summary import rank_summary

    return rank_summary(trace)


def judge(trace: "Trace", *, run: str, file_bytes: int) -> "FileHealth":
    """Return the health of a file."""
    from stepscope.advice import file_health

    return file_health(trace, run=run, file_bytes=file_bytes)


def tabulate(trace: "Trace", *, request: "Request") -> "dict[str, TableResult]":
    """Write the rows of a trace for each requested table."""
    from stepscope.render import table_export

    return table_export.tabulate(trace, request)


def sample(trace: "Trace", *, settings: "AdviceSettings") -> "Sample":
    """Return the comparison sample of a trace, by the settings of its run."""
    from stepscope.comparison import samples
    from stepscope.summaries import summary

    return samples.sample(trace, summary.report_of(trace, settings))


def trend(trace: "Trace", *, settings: "AdviceSettings") -> "Trend":
    """Return the trend figures of a trace, by the settings of its run."""
    from stepscope.comparison import trends
    from stepscope.summaries import summary

    return trends.trend(trace, summary.report_of(trace, settings))


@dataclass(frozen=True, kw_only=True)
class ResultWithDamage:
    """Result of a task, and the damage of the file that it was computed from."""

    result: Any
    damage: "tuple[HealthItem, ...]"


def with_damage(trace: "Trace", *, task: "Callable[[Trace], Any]") -> ResultWithDamage:
    """Run a task, and return its result with the damage of the trace's file."""
    from stepscope.analyses.health import losses

    return ResultWithDamage(result=task(trace), damage=losses(trace))


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Reason why a file could not be written."""

    message: str


def cut(trace: "Trace", *, request: "CutRequest") -> "Excerpt | Refusal":
    """Write a part of a trace."""
    from stepscope.render import trace_excerpt

    return _unless_refused(lambda: trace_excerpt.write(trace, request))


def stack(trace: "Trace", *, request: "StackRequest") -> Refusal | None:
    """Write the stacks of a trace."""
    from stepscope.render import stack_file

    return _unless_refused(lambda: stack_file.write(trace, request))


def predict(
    trace: "Trace",
    *,
    what_if: "WhatIf",
    fixes: tuple[str, ...] = (),
    output: str | None = None,
    settings: "AdviceSettings | None" = None,
) -> "Prediction | Refusal":
    """Return the step that a simulation predicts; with `output`, write the simulated trace.

    `fixes`: rules whose findings are fixed; the findings are those by the settings of the run.
    """
    from stepscope.advice.fixes import fix_changes, predict_fixes
    from stepscope.advice.settings import DEFAULT
    from stepscope.render import simulated_trace
    from stepscope.replay.simulation import simulate
    from stepscope.replay.what_if import changes_of

    def work() -> "Prediction":
        advice = settings or DEFAULT
        prediction = predict_fixes(trace, fixes, what_if, settings=advice)
        if output is not None:
            changes = [*fix_changes(trace, fixes, advice).most, *changes_of(trace, what_if)]
            simulated_trace.write(trace, simulate(trace, changes), output)
        return prediction

    return _unless_refused(work)


def _unless_refused(work: Callable[[], T]) -> T | Refusal:
    from stepscope.base.errors import MissingDataError, UsageError

    try:
        return work()
    except MissingDataError as missing:
        remedy = f". To record it: {missing.remedy}" if missing.remedy else ""
        return Refusal(message=f"{missing.reason}{remedy}")
    except UsageError as error:
        return Refusal(message=str(error))
    except OSError as error:
        return Refusal(
            message=f"{error.filename}: {error.strerror}" if error.filename else str(error)
        )
