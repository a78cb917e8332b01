"""Advice: the rules' outcomes on traces and runs, with savings that add up."""

from collections.abc import Iterable, Sequence
from typing import Any

from stepscope.advice import run_advice
from stepscope.advice.run_rules import Unread
from stepscope.advice.settings import (
    DEFAULT,
    AdviceSettings,
    available_rules,
    selected_rules,
    validated,
)
from stepscope.advice.trace_advice import TraceAdvice, advise_trace, advise_trace_by
from stepscope.advice.trace_report import (
    file_health,
    idle_per_step,
    trace_health,
    worker_report,
)
from stepscope.advice.trace_rules import rule_outcomes
from stepscope.base import urls
from stepscope.base.errors import UnreadableError, as_unreadable
from stepscope.base.report import RunReport
from stepscope.model.trace import Run
from stepscope.rules import Rule

__all__ = [
    "AdviceSettings",
    "TraceAdvice",
    "advise",
    "advise_trace",
    "advise_with_settings",
    "file_health",
    "idle_per_step",
    "rule_outcomes",
    "run_report",
    "trace_health",
    "worker_report",
]


def advise(run: Run, rules: Sequence[Rule[Any]] | None = None) -> RunReport:
    """Return the advice of rules (by default all that are enabled) on every trace of a run."""
    if rules is None:
        return run_report(run.name, [advise_trace(trace) for trace in run.workers])
    rules = tuple(rules)
    return run_advice.run_report(
        run.name, [advise_trace_by(trace, rules) for trace in run.workers], rules
    )


def advise_with_settings(
    run: Run, settings: AdviceSettings = DEFAULT
) -> tuple[RunReport, tuple[UnreadableError, ...]]:
    """Return the advice by the user's settings, and the traces whose analysis failed.

    Raises:
        UsageError: the settings name an unknown rule or option.
    """
    of_run = validated(settings).for_run(run.name)
    traces: list[TraceAdvice] = []
    problems: list[UnreadableError] = []
    for trace in run.workers:
        try:
            traces.append(advise_trace(trace, of_run))
        except Exception as error:  # analyses run here, on whatever the file holds
            problems.append(as_unreadable(trace.path or trace.worker, error))
    unreadable = [urls.name(problem.path) for problem in problems]
    return run_report(run.name, traces, settings, unreadable=unreadable), tuple(problems)


def run_report(
    name: str,
    traces: Iterable[TraceAdvice],
    settings: AdviceSettings = DEFAULT,
    *,
    unreadable: Sequence[str] = (),
    awaited_count: int = 0,
) -> RunReport:
    """Return the advice on a run from the advice on its traces.

    `unreadable` are the names of files that could not be read, `awaited_count` is the number of
    files that were not read yet.
    """
    of_run, traces = settings.for_run(name), tuple(traces)
    changes = of_run.for_traces(advice.worker.is_training for advice in traces)
    rules = selected_rules(changes, available_rules(has_packages=of_run.has_packages))
    unread = Unread(unreadable=tuple(unreadable), awaited_count=awaited_count)
    return run_advice.run_report(name, traces, rules, changes, unread=unread)
