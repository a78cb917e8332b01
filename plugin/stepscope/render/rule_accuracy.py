"""How often each rule was right on recordings whose truth is known: a rule's page says it.

`make score` writes rule_records.json beside this file, and docs/accuracy.md with it.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from stepscope.base.formatting import count

FILE = Path(__file__).with_name("rule_records.json")


class Kind(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """In how many runs of one kind: recorded, or written from schedules."""

    found_count: int = 0
    """Its fault was there, and it said so at warning or above."""
    missed_count: int = 0
    """Its fault was there, and it did not."""
    also_true_count: int = 0
    """It was said, and is true beside another fault, or of a run that is as it should be."""
    false_count: int = 0
    """It was said, and is not true."""


class RuleRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How one rule fared."""

    recorded: Kind = Kind()
    synthetic: Kind = Kind()


NONE = RuleRecord()


def encoded(records: Mapping[str, RuleRecord]) -> bytes:
    """Return the file that holds these records, by rule."""
    return msgspec.json.format(msgspec.json.encode(dict(records)), indent=1) + b"\n"


@cache
def record_of(rule: str) -> RuleRecord:
    """Return how a rule fared; of one that was never put to the test, `NONE`."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, RuleRecord]).get(rule, NONE)


def sentences(record: RuleRecord) -> str:
    """Return a record in words."""
    kinds = {
        "Recorded": _said(record.recorded),
        "Synthetic (written from a schedule, not recorded)": _said(record.synthetic),
    }
    told = [f"{kind}: {said}." for kind, said in kinds.items() if said]
    return " ".join(told) or (
        "No recording whose truth is known has put it to the test; it has never been a false alarm"
        " on the others."
    )


def _said(kind: Kind) -> str:
    faults = kind.found_count + kind.missed_count
    parts = (
        f"found in {kind.found_count} of {count(faults, 'run')} with this fault" if faults else "",
        f"also true in {count(kind.also_true_count, 'run')}" if kind.also_true_count else "",
        f"**a false alarm in {count(kind.false_count, 'run')}**" if kind.false_count else "",
    )
    told = [each for each in parts if each]
    if told and not kind.false_count:
        told.append("no false alarm")
    return ", ".join(told)
