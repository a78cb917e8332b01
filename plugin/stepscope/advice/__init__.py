"""Run the rules over recordings: one outcome a rule (or a finding), and savings that add up."""

from collections.abc import Iterable, Sequence
from typing import Any

from stepscope.advice import runs
from stepscope.advice.outcomes import outcomes_of
from stepscope.advice.recordings import RecordingAdvice, advice_by, advice_of
from stepscope.advice.settings import DEFAULT, AdviceSettings, checked, known_rules, rules_of
from stepscope.advice.workers import file_health, idle_per_step, recorded_health, worker_report
from stepscope.errors import UnreadableError, unforeseen
from stepscope.report import RunReport
from stepscope.rules import Rule
from stepscope.trace import Run

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
    return runs.merged(run.name, [advice_by(trace, chosen) for trace in run.workers], chosen)


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
    return merged(run.name, recordings, settings), tuple(problems)


def merged(
    name: str, recordings: Iterable[RecordingAdvice], settings: AdviceSettings = DEFAULT
) -> RunReport:
    """Return the advice on a run's recordings, made one by one, as the run's."""
    of_run = settings.of_run(name)
    rules = rules_of(of_run.changes, known_rules(has_packages=of_run.has_packages))
    return runs.merged(name, recordings, rules, of_run.changes)
