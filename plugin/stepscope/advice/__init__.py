"""Run the rules over recordings: one outcome a rule (or a finding), and savings that add up."""

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
from stepscope.advice.trace_rules import rule_outcomes
from stepscope.advice.worker_report import (
    file_health,
    idle_per_step,
    trace_health,
    worker_report,
)
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
    """Run the rules (all that are on by default) over every recording of a run."""
    if rules is None:
        return run_report(run.name, [advise_trace(trace) for trace in run.workers])
    chosen = tuple(rules)
    return run_advice.run_report(
        run.name, [advise_trace_by(trace, chosen) for trace in run.workers], chosen
    )


def advise_with_settings(
    run: Run, settings: AdviceSettings = DEFAULT
) -> tuple[RunReport, tuple[UnreadableError, ...]]:
    """Do the same by the user's settings, and let an analysis that fails cost one recording.

    Raises:
        UsageError: the settings name a rule or an option that there is not.
    """
    of_run = validated(settings).for_run(run.name)
    recordings: list[TraceAdvice] = []
    problems: list[UnreadableError] = []
    for trace in run.workers:
        try:
            recordings.append(advise_trace(trace, of_run))
        except Exception as error:  # analyses run here, on whatever the file holds
            problems.append(as_unreadable(trace.path or trace.worker, error))
    unreadable = [urls.name(problem.path) for problem in problems]
    return run_report(run.name, recordings, settings, unreadable=unreadable), tuple(problems)


def run_report(
    name: str,
    recordings: Iterable[TraceAdvice],
    settings: AdviceSettings = DEFAULT,
    *,
    unreadable: Sequence[str] = (),
    awaited_count: int = 0,
) -> RunReport:
    """Return the advice on a run's recordings, made one by one, as the run's.

    `unreadable` are the names of its files that could not be read; so many others were not read
    yet.
    """
    of_run, recordings = settings.for_run(name), tuple(recordings)
    changes = of_run.for_traces(each.worker.is_training for each in recordings)
    rules = selected_rules(changes, available_rules(has_packages=of_run.has_packages))
    unread = Unread(unreadable=tuple(unreadable), awaited_count=awaited_count)
    return run_advice.run_report(name, recordings, rules, changes, unread=unread)
