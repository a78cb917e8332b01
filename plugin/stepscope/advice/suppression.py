"""Findings that a person put aside: they stay to be seen, with the reason."""

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from stepscope.advice.settings import Suppression
from stepscope.analyses.hints import hints
from stepscope.report import Outcome
from stepscope.rules import Rule
from stepscope.trace import Trace


def today() -> str:
    """Return the day by which suppressions expire: `2027-01-31`, of UTC."""
    return datetime.now(tz=UTC).date().isoformat()


def of_recording(trace: Trace) -> tuple[Suppression, ...]:
    """Return what the program itself put aside (`analyses/hints.py`)."""
    return tuple(
        Suppression(rule=rule, reason=reason, by="recording")
        for rule, reason in hints(trace).ignore.items()
    )


def by_their_ids(
    suppressions: Iterable[Suppression], rules: Iterable[Rule[Any]]
) -> tuple[Suppression, ...]:
    """Return suppressions with the ids of their rules in place of aliases."""
    ids = {alias: rule.id for rule in rules for alias in rule.aliases}
    return tuple(
        dataclasses.replace(each, rule=ids.get(each.rule, each.rule)) for each in suppressions
    )


def put_aside(
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


def unused(
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
