"""Findings that a person put aside: they stay to be seen, with the reason."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from stepscope.advice.settings import Suppression
from stepscope.analyses.hints import hints
from stepscope.report import Outcome
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
    """Say which suppressions put nothing aside, so that they can be removed."""
    aside = [
        msgspec.structs.replace(each, status="found") for each in outcomes if each.suppressed_by
    ]
    words = []
    for each in suppressions:
        if each.has_expired(day):
            words.append(f"The suppression of {each.rule} expired on {each.expires}.")
        elif not any(each.covers(outcome, day) for outcome in aside):
            words.append(f"The suppression of {each.rule} ({each.reason}) puts nothing aside.")
    return tuple(words)
