"""What readers work out of a recording, by names that cost nothing to import.

A task is handed to a reader's process by its name; what it needs is imported where it is done.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings, TraceAdvice
    from stepscope.base.report import FileHealth, HealthItem
    from stepscope.comparison.samples import Sample
    from stepscope.comparison.trends import Trend
    from stepscope.model.trace import Trace
    from stepscope.render.stack_file import Request as StackRequest
    from stepscope.render.table_export import Request, TableResult
    from stepscope.render.trace_excerpt import Excerpt
    from stepscope.render.trace_excerpt import Request as CutRequest
    from stepscope.summaries.summary import Summary

T = TypeVar("T")


def analyse(trace: "Trace") -> None:
    """Leave in a recording what all advice rests on."""
    from stepscope.advice import worker_report

    worker_report(trace)


def advise(trace: "Trace", *, settings: "AdviceSettings | None" = None) -> "TraceAdvice":
    """Return what the rules say of a recording, by the settings of its run."""
    from stepscope.advice import advise_trace

    return advise_trace(trace) if settings is None else advise_trace(trace, settings)


def summarise(trace: "Trace", *, settings: "AdviceSettings | None" = None) -> "Summary":
    """Return what is kept of a recording when its events are let go, by its run's settings."""
    from stepscope.summaries import summary

    return (
        summary.summarise(trace)
        if settings is None
        else summary.summarise(trace, settings=settings)
    )


def judge(trace: "Trace", *, run: str, file_bytes: int) -> "FileHealth":
    """Return what a file is worth."""
    from stepscope.advice import file_health

    return file_health(trace, run=run, file_bytes=file_bytes)


def tabulate(trace: "Trace", *, request: "Request") -> "dict[str, TableResult]":
    """Write what a recording has of each table that is asked for."""
    from stepscope.render import table_export

    return table_export.tabulate(trace, request)


def sample(trace: "Trace", *, settings: "AdviceSettings") -> "Sample":
    """Return what of a recording is compared, by the settings of its run."""
    from stepscope.comparison import samples
    from stepscope.summaries import summary

    return samples.sample(trace, summary.report_of(trace, settings))


def trend(trace: "Trace", *, settings: "AdviceSettings") -> "Trend":
    """Return what a recording says for its run's trend, by the run's settings."""
    from stepscope.comparison import trends
    from stepscope.summaries import summary

    return trends.trend(trace, summary.report_of(trace, settings))


@dataclass(frozen=True, kw_only=True)
class ResultWithDamage:
    """What came of a recording, and what speaks against trusting it."""

    result: Any
    damage: "tuple[HealthItem, ...]"
    """What the file lost, as far as reading it showed."""


def with_damage(trace: "Trace", *, task: "Callable[[Trace], Any]") -> ResultWithDamage:
    """Do something with a recording, and tell how its file is damaged."""
    from stepscope.analyses.health import losses

    return ResultWithDamage(result=task(trace), damage=losses(trace))


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a file could not be written: a sentence, and what would help."""

    message: str


def cut(trace: "Trace", *, request: "CutRequest") -> "Excerpt | Refusal":
    """Write a part of a recording."""
    from stepscope.render import trace_excerpt

    return _unless_refused(lambda: trace_excerpt.write(trace, request))


def stack(trace: "Trace", *, request: "StackRequest") -> Refusal | None:
    """Write a recording's stacks."""
    from stepscope.render import stack_file

    return _unless_refused(lambda: stack_file.write(trace, request))


def _unless_refused(work: Callable[[], T]) -> T | Refusal:
    """Return what the work gives, or why it gives nothing: what is said to the user crosses."""
    from stepscope.base.errors import MissingDataError, UsageError

    try:
        return work()
    except MissingDataError as missing:
        return Refusal(message=f"{missing.reason}. To record it: {missing.remedy}")
    except UsageError as error:
        return Refusal(message=str(error))
    except OSError as error:
        return Refusal(
            message=f"{error.filename}: {error.strerror}" if error.filename else str(error)
        )
