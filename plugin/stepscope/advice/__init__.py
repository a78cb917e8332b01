"""Run the rules over recordings: one outcome a rule (or a finding), and savings that add up."""

from collections.abc import Iterable, Sequence
from typing import Any

from stepscope.advice import runs
from stepscope.advice.outcomes import outcomes_of
from stepscope.advice.recordings import RecordingAdvice, advice_of
from stepscope.advice.workers import file_health, idle_per_step, recorded_health, worker_report
from stepscope.errors import UnreadableError, unforeseen
from stepscope.report import RunReport
from stepscope.rules import Rule, all_rules
from stepscope.trace import Run

__all__ = [
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
    """Run the rules (all of them by default) over every recording of a run."""
    chosen = all_rules() if rules is None else tuple(rules)
    return merged(run.name, [advice_of(trace, chosen) for trace in run.workers], chosen)


def advise_each(run: Run) -> tuple[RunReport, tuple[UnreadableError, ...]]:
    """Do the same, but let a recording on which an analysis fails cost only itself."""
    recordings: list[RecordingAdvice] = []
    problems: list[UnreadableError] = []
    chosen = all_rules()
    for trace in run.workers:
        try:
            recordings.append(advice_of(trace, chosen))
        except Exception as error:  # analyses run here, on whatever the file holds
            problems.append(unforeseen(trace.path or trace.worker, error))
    return merged(run.name, recordings, chosen), tuple(problems)


def merged(
    name: str, recordings: Iterable[RecordingAdvice], rules: Sequence[Rule[Any]] | None = None
) -> RunReport:
    """Return the advice on a run's recordings, made one by one, as the run's."""
    return runs.merged(name, recordings, all_rules() if rules is None else rules)
