"""One recording's advice: what is kept of it when its events are let go."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from stepscope.advice.overall_status import standing
from stepscope.advice.settings import DEFAULT, AdviceSettings, Changes, known_rules, rules_of
from stepscope.advice.suppression import judged, of_recording
from stepscope.advice.time_budget import budget
from stepscope.advice.trace_rules import asked
from stepscope.advice.verdict import advised_verdict
from stepscope.advice.worker_report import worker_report
from stepscope.analyses.communication.rank_summary import RankSummary, rank_summary
from stepscope.analyses.core.training_detection import is_training
from stepscope.base.report import Outcome, WorkerReport
from stepscope.model.trace import Trace
from stepscope.rules import Rule

NOTHING_CHANGED = Changes()


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordingAdvice:
    """What the analyses and the rules say of one recording."""

    worker: WorkerReport
    outcomes: tuple[Outcome, ...]
    part: RankSummary | None = None
    """What it has to say beside the others of its run."""


def advice_of(trace: Trace, settings: AdviceSettings = DEFAULT) -> RecordingAdvice:
    """Return the advice on one recording; `settings` are those of its run (`of_run`).

    Raises:
        UsageError: the settings name a rule or an option that there is not.
    """
    known = known_rules(has_packages=settings.has_packages)
    changes = settings.of_recording(is_training=is_training(trace))
    return advice_by(trace, rules_of(changes, known), changes)


def advice_by(
    trace: Trace, rules: Sequence[Rule[Any]], changes: Changes = NOTHING_CHANGED
) -> RecordingAdvice:
    """Return the advice of some rules on one recording."""
    others, found = asked(trace, rules)
    suppressions = (*changes.suppressions, *of_recording(trace))
    said = replace(changes, suppressions=suppressions)
    shown = judged((each.outcome for each in found), said, rules)
    outcomes = (*others, *(each for each in shown if each is not None))
    found = tuple(
        replace(each, outcome=outcome)
        for each, outcome in zip(found, shown, strict=True)
        if outcome is not None and outcome.status == "found"
    )
    worker = msgspec.structs.replace(
        worker_report(trace, rules),
        budget=budget(trace, found),
        standing=standing(trace, outcomes),
        verdict=advised_verdict(trace, found),
        is_training=is_training(trace),
    )
    return RecordingAdvice(worker=worker, outcomes=outcomes, part=rank_summary(trace))
