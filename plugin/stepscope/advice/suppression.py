"""What a person said of findings: how serious they are, and which are put aside, and why."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from stepscope.advice.settings import Changes, Suppression, is_shown
from stepscope.analyses.settings.user_metadata import hints
from stepscope.base.findings import Outcome, Severity
from stepscope.model.trace import Trace
from stepscope.rules import Rule


def today() -> str:
    """Return the day by which suppressions expire: `2027-01-31`, of UTC."""
    return datetime.now(tz=UTC).date().isoformat()


def program_suppressions(trace: Trace) -> tuple[Suppression, ...]:
    """Return what the program itself put aside (`analyses/settings/user_metadata.py`)."""
    return tuple(
        Suppression(rule=rule, reason=reason, by="recording")
        for rule, reason in hints(trace).ignore.items()
    )


def apply_changes(
    outcomes: Iterable[Outcome], changes: Changes, rules: Iterable[Rule[Any]]
) -> tuple[Outcome | None, ...]:
    """Return outcomes as the user wants them, parallel to what is given; None: not to be shown."""
    rules = tuple(rules)
    ids = _ids(rules)
    severities = {ids.get(name, name): given for name, given in changes.severities.items()}
    wanted = [_with_severity(each, severities) for each in outcomes]
    aside = suppress(wanted, with_rule_ids(changes.suppressions, rules), today())
    return tuple(each if is_shown(changes, each.severity) else None for each in aside)


def _with_severity(outcome: Outcome, severities: Mapping[str, Severity]) -> Outcome:
    """Return a finding with the severity that the user gave to its rule."""
    if outcome.status != "found" or outcome.rule not in severities:
        return outcome
    return msgspec.structs.replace(outcome, severity=severities[outcome.rule])


def with_rule_ids(
    suppressions: Iterable[Suppression], rules: Iterable[Rule[Any]]
) -> tuple[Suppression, ...]:
    """Return suppressions with the ids of their rules in place of aliases."""
    ids = _ids(rules)
    return tuple(
        dataclasses.replace(each, rule=ids.get(each.rule, each.rule)) for each in suppressions
    )


def _ids(rules: Iterable[Rule[Any]]) -> dict[str, str]:
    """Return the ids of rules by their aliases."""
    return {alias: rule.id for rule in rules for alias in rule.aliases}


def suppress(
    outcomes: Iterable[Outcome], suppressions: Sequence[Suppression], day: str
) -> tuple[Outcome, ...]:
    """Return the outcomes, with what is put aside marked so; the first that covers one counts."""
    return tuple(_marked(outcome, suppressions, day) for outcome in outcomes)


def _marked(outcome: Outcome, suppressions: Sequence[Suppression], day: str) -> Outcome:
    if outcome.status != "found":
        return outcome
    covering = (each for each in suppressions if each.covers(outcome, day))
    if (first := next(covering, None)) is None:
        return outcome
    return msgspec.structs.replace(
        outcome, status="suppressed", reason=first.reason, suppressed_by=first.by
    )


def unused_suppressions(
    suppressions: Sequence[Suppression], outcomes: Iterable[Outcome], day: str
) -> tuple[str, ...]:
    """Say which suppressions put nothing aside, so that they can be removed.

    Of rules that were not asked nothing is said.
    """
    outcomes = tuple(outcomes)
    asked = {each.rule for each in outcomes}
    aside = [each for each in outcomes if each.suppressed_by]
    words = []
    for each in suppressions:
        if each.has_expired(day):
            words.append(f"The suppression of {each.rule} expired on {each.expires}.")
        elif each.rule in asked and not any(each.covers(outcome, day) for outcome in aside):
            words.append(f"The suppression of {each.rule} ({each.reason}) puts nothing aside.")
    return tuple(words)
