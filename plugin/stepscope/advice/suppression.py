"""Severities that the user sets, and suppressed findings with their reasons."""

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from stepscope.advice.settings import Changes, Suppression, is_shown
from stepscope.analyses.settings.user_metadata import hints
from stepscope.base.findings import Outcome
from stepscope.model.trace import Trace
from stepscope.rules import Rule


def today() -> str:
    """Return the day by which suppressions expire: `2027-01-31`, in UTC."""
    return datetime.now(tz=UTC).date().isoformat()


def program_suppressions(trace: Trace) -> tuple[Suppression, ...]:
    """Return the suppressions that the program recorded (`analyses/settings/user_metadata.py`)."""
    return tuple(
        Suppression(rule=rule, reason=reason, by="recording")
        for rule, reason in hints(trace).ignore.items()
    )


def apply_changes(
    outcomes: Iterable[Outcome], changes: Changes, rules: Iterable[Rule[Any]]
) -> tuple[Outcome | None, ...]:
    """Return the outcomes with the user's severities and suppressions; None: not shown."""
    rules = tuple(rules)
    ids = _ids(rules)
    severities = {ids.get(name, name): severity for name, severity in changes.severities.items()}
    rated = [
        msgspec.structs.replace(outcome, severity=severities[outcome.rule])
        if outcome.status == "found" and outcome.rule in severities
        else outcome
        for outcome in outcomes
    ]
    marked = suppress(rated, with_rule_ids(changes.suppressions, rules), today())
    return tuple(outcome if is_shown(changes, outcome.severity) else None for outcome in marked)


def with_rule_ids(
    suppressions: Iterable[Suppression], rules: Iterable[Rule[Any]]
) -> tuple[Suppression, ...]:
    """Return suppressions with rule ids in place of aliases."""
    ids = _ids(rules)
    return tuple(
        dataclasses.replace(suppression, rule=ids.get(suppression.rule, suppression.rule))
        for suppression in suppressions
    )


def _ids(rules: Iterable[Rule[Any]]) -> dict[str, str]:
    return {alias: rule.id for rule in rules for alias in rule.aliases}


def suppress(
    outcomes: Iterable[Outcome], suppressions: Sequence[Suppression], day: str
) -> tuple[Outcome, ...]:
    """Return the outcomes, the suppressed ones marked by the first suppression that covers them."""
    return tuple(_marked(outcome, suppressions, day) for outcome in outcomes)


def _marked(outcome: Outcome, suppressions: Sequence[Suppression], day: str) -> Outcome:
    if outcome.status != "found":
        return outcome
    covering = (suppression for suppression in suppressions if suppression.covers(outcome, day))
    if (first := next(covering, None)) is None:
        return outcome
    return msgspec.structs.replace(
        outcome, status="suppressed", reason=first.reason, suppressed_by=first.by
    )


def unused_suppressions(
    suppressions: Sequence[Suppression], outcomes: Iterable[Outcome], day: str
) -> tuple[str, ...]:
    """Return a note for each suppression that is expired or suppresses nothing.

    Suppressions of rules that did not run have none.
    """
    outcomes = tuple(outcomes)
    rules = {outcome.rule for outcome in outcomes}
    suppressed = [outcome for outcome in outcomes if outcome.suppressed_by]
    notes = []
    for suppression in suppressions:
        subject = f"The suppression of {suppression.rule}"
        if suppression.has_expired(day):
            notes.append(f"{subject} expired on {suppression.expires}.")
        elif suppression.rule in rules and not any(
            suppression.covers(outcome, day) for outcome in suppressed
        ):
            notes.append(f"{subject} ({suppression.reason}) suppresses nothing.")
    return tuple(notes)
