"""One recording's advice: what is kept of it when its events are let go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stepscope.advice.budget import budget
from stepscope.advice.outcomes import asked
from stepscope.advice.settings import (
    DEFAULT,
    AdviceSettings,
    Changes,
    is_shown,
    known_rules,
    rules_of,
    severities_of,
)
from stepscope.advice.standing import standing
from stepscope.advice.suppression import by_their_ids, of_recording, put_aside, today
from stepscope.advice.verdict import advised_verdict
from stepscope.advice.workers import worker_report
from stepscope.analyses.communication.rank_part import RankPart, rank_part
from stepscope.analyses.training import is_training
from stepscope.report import Outcome, Severity, WorkerReport
from stepscope.rules import Rule
from stepscope.trace import Trace

NOTHING_CHANGED = Changes()
NO_SEVERITIES: Mapping[str, Severity] = {}


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordingAdvice:
    """What the analyses and the rules say of one recording."""

    worker: WorkerReport
    outcomes: tuple[Outcome, ...]
    part: RankPart | None = None
    """What it has to say beside the others of its run."""


def advice_of(trace: Trace, settings: AdviceSettings = DEFAULT) -> RecordingAdvice:
    """Return the advice on one recording; `settings` are those of its run (`of_run`).

    Raises:
        UsageError: the settings name a rule or an option that there is not.
    """
    known = known_rules(has_packages=settings.has_packages)
    changes = settings.of_recording(is_training=is_training(trace))
    return advice_by(trace, rules_of(changes, known), changes, severities_of(changes, known))


def advice_by(
    trace: Trace,
    rules: Sequence[Rule[Any]],
    changes: Changes = NOTHING_CHANGED,
    severities: Mapping[str, Severity] = NO_SEVERITIES,
) -> RecordingAdvice:
    """Return the advice of some rules on one recording."""
    others, found = asked(trace, rules)
    said = [*others, *(each.outcome for each in found)]
    wanted = [_with_severity(each, severities) for each in said]
    suppressions = by_their_ids((*changes.suppressions, *of_recording(trace)), rules)
    shown = (each for each in wanted if is_shown(changes, each.severity))
    outcomes = put_aside(shown, suppressions, today())
    kept = {(each.rule, each.fingerprint) for each in outcomes if each.status == "found"}
    found = tuple(each for each in found if (each.rule.id, each.outcome.fingerprint) in kept)
    worker = msgspec.structs.replace(
        worker_report(trace, rules),
        budget=budget(trace, found),
        standing=standing(trace, outcomes),
        verdict=advised_verdict(trace, found),
    )
    return RecordingAdvice(worker=worker, outcomes=outcomes, part=rank_part(trace))


def _with_severity(outcome: Outcome, severities: Mapping[str, Severity]) -> Outcome:
    """Return a finding with the severity that the user gave to its rule."""
    if outcome.status != "found" or outcome.rule not in severities:
        return outcome
    return msgspec.structs.replace(outcome, severity=severities[outcome.rule])
