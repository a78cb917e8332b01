"""Run the rules over recordings: one outcome a rule (or a finding), and savings that add up."""

from collections.abc import Iterable, Sequence
from typing import Any

from stepscope.advice import run_advice
from stepscope.advice.run_rules import Unread
from stepscope.advice.settings import DEFAULT, AdviceSettings, checked, known_rules, rules_of
from stepscope.advice.trace_advice import RecordingAdvice, advice_by, advice_of
from stepscope.advice.trace_rules import outcomes_of
from stepscope.advice.worker_report import (
    file_health,
    idle_per_step,
    recorded_health,
    worker_report,
)
from stepscope.base import urls
from stepscope.base.errors import UnreadableError, unforeseen
from stepscope.base.report import RunReport
from stepscope.model.trace import Run
from stepscope.rules import Rule

__all__ = [
    "AdviceSettings",
    "RecordingAdvice",
    "advice_of",
    "advise",
    "advise_each",
    "file_health",
    "idle_per_step",
    "merged",
    "outcomes_of",
    "recorded_health",
    "worker_report",
]


def advise(run: Run, rules: Sequence[Rule[Any]] | None = None) -> RunReport:
    """Run the rules (all that are on by default) over every recording of a run."""
    if rules is None:
        return merged(run.name, [advice_of(trace) for trace in run.workers])
    chosen = tuple(rules)
    return run_advice.merged(run.name, [advice_by(trace, chosen) for trace in run.workers], chosen)


def advise_each(
    run: Run, settings: AdviceSettings = DEFAULT
) -> tuple[RunReport, tuple[UnreadableError, ...]]:
    """Do the same by the user's settings, and let an analysis that fails cost one recording.

    Raises:
        UsageError: the settings name a rule or an option that there is not.
    """
    of_run = checked(settings).of_run(run.name)
    recordings: list[RecordingAdvice] = []
    problems: list[UnreadableError] = []
    for trace in run.workers:
        try:
            recordings.append(advice_of(trace, of_run))
        except Exception as error:  # analyses run here, on whatever the file holds
            problems.append(unforeseen(trace.path or trace.worker, error))
    unreadable = [urls.name(problem.path) for problem in problems]
    return merged(run.name, recordings, settings, unreadable=unreadable), tuple(problems)


def merged(
    name: str,
    recordings: Iterable[RecordingAdvice],
    settings: AdviceSettings = DEFAULT,
    *,
    unreadable: Sequence[str] = (),
    awaited_count: int = 0,
) -> RunReport:
    """Return the advice on a run's recordings, made one by one, as the run's.

    `unreadable` are the names of its files that could not be read; so many others were not read
    yet.
    """
    of_run, recordings = settings.of_run(name), tuple(recordings)
    changes = of_run.of_recordings(each.worker.is_training for each in recordings)
    rules = rules_of(changes, known_rules(has_packages=of_run.has_packages))
    unread = Unread(unreadable=tuple(unreadable), awaited_count=awaited_count)
    return run_advice.merged(name, recordings, rules, changes, unread=unread)
