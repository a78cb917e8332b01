"""One recording's advice: what is kept of it when its events are let go."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from stepscope.advice.overall_status import overall_status
from stepscope.advice.settings import (
    DEFAULT,
    AdviceSettings,
    Changes,
    available_rules,
    selected_rules,
)
from stepscope.advice.suppression import apply_changes, program_suppressions
from stepscope.advice.time_budget import budget
from stepscope.advice.trace_rules import apply_rules
from stepscope.advice.verdict import advised_verdict
from stepscope.advice.worker_report import worker_report
from stepscope.analyses.communication.rank_summary import RankSummary, rank_summary
from stepscope.analyses.core.training_detection import is_training
from stepscope.base.findings import Outcome
from stepscope.base.report import WorkerReport
from stepscope.model.trace import Trace
from stepscope.rules import Rule

NO_CHANGES = Changes()


@dataclass(frozen=True, kw_only=True, eq=False)
class TraceAdvice:
    """What the analyses and the rules say of one recording."""

    worker: WorkerReport
    outcomes: tuple[Outcome, ...]
    part: RankSummary | None = None
    """What it has to say beside the others of its run."""


def advise_trace(trace: Trace, settings: AdviceSettings = DEFAULT) -> TraceAdvice:
    """Return the advice on one recording; `settings` are those of its run (`of_run`).

    Raises:
        UsageError: the settings name a rule or an option that there is not.
    """
    known = available_rules(has_packages=settings.has_packages)
    changes = settings.for_trace(is_training=is_training(trace))
    return advise_trace_by(trace, selected_rules(changes, known), changes)


def advise_trace_by(
    trace: Trace, rules: Sequence[Rule[Any]], changes: Changes = NO_CHANGES
) -> TraceAdvice:
    """Return the advice of some rules on one recording."""
    others, found = apply_rules(trace, rules)
    suppressions = (*changes.suppressions, *program_suppressions(trace))
    said = replace(changes, suppressions=suppressions)
    shown = apply_changes((each.outcome for each in found), said, rules)
    outcomes = (*others, *(each for each in shown if each is not None))
    found = tuple(
        replace(each, outcome=outcome)
        for each, outcome in zip(found, shown, strict=True)
        if outcome is not None and outcome.status == "found"
    )
    worker = msgspec.structs.replace(
        worker_report(trace, rules),
        budget=budget(trace, found),
        standing=overall_status(trace, outcomes),
        verdict=advised_verdict(trace, found),
        is_training=is_training(trace),
    )
    return TraceAdvice(worker=worker, outcomes=outcomes, part=rank_summary(trace))
