"""What was found before: so that only what is new, or has become worse, counts.

A baseline is a JSON file with the fingerprints of findings and what each could save. A fingerprint
is made of the rule and of what it is about (operator, function), never of numbers: it is the same
in every recording of the same code.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from stepscope.advice.merging import JUDGED
from stepscope.advice.run_advice import with_outcomes
from stepscope.base.errors import UsageError
from stepscope.base.findings import Outcome
from stepscope.base.report import Report

SCHEMA = 1
WORSE_FACTOR = 1.1
"""Beyond that, what a finding could save has become more: below it is how runs differ."""
LEAST_WORSE_SHARE = 0.01
"""Of the step: a finding that costs less does not become news by growing."""


class BaselineFinding(msgspec.Struct, frozen=True):
    """A finding as it was."""

    rule: str
    fingerprint: str
    share: float = 0.0
    """What it could save at most, of the step; 0 where it claims nothing."""
    message: str = ""
    """For people who read the file."""


class Baseline(msgspec.Struct, frozen=True):
    """The file."""

    findings: tuple[BaselineFinding, ...]
    schema: int = SCHEMA
    version: str = ""


def baseline_of(report: Report) -> Baseline:
    """Return what was found, each finding once with the most that it costs in any recording."""
    known: dict[str, BaselineFinding] = {}
    for outcome in _found(report):
        share = _share(outcome)
        before = known.get(outcome.fingerprint)
        if before is None or share > before.share:
            known[outcome.fingerprint] = BaselineFinding(
                rule=outcome.rule,
                fingerprint=outcome.fingerprint,
                share=round(share, 4),
                message=outcome.message,
            )
    findings = sorted(known.values(), key=lambda each: (each.rule, each.fingerprint))
    return Baseline(findings=tuple(findings), version=report.version)


def baseline_text(baseline: Baseline) -> str:
    """Return the file's text, which differs by a line for each finding that differs."""
    return msgspec.json.format(msgspec.json.encode(baseline), indent=1).decode() + "\n"


def read_baseline(path: Path) -> Baseline:
    """Return what a file holds.

    Raises:
        UsageError: it cannot be read, or is no baseline of this version.
    """
    try:
        baseline = msgspec.json.decode(path.read_bytes(), type=Baseline)
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror}). Write it with --write-baseline {path}"
        raise UsageError(msg) from error
    except msgspec.DecodeError as error:
        msg = f"{path}: is no baseline ({error}). Write it anew with --write-baseline {path}"
        raise UsageError(msg) from error
    if baseline.schema != SCHEMA:
        msg = f"{path}: its schema is {baseline.schema}, and this reads {SCHEMA}. Write it anew"
        raise UsageError(msg)
    return baseline


def compare_with_baseline(report: Report, baseline: Baseline, name: str) -> Report:
    """Return the report with what the baseline knows put aside, unless it has become worse."""
    known = {each.fingerprint: each for each in baseline.findings}
    runs = tuple(
        with_outcomes(run, [_judged(each, known, name) for each in run.outcomes])
        for run in report.runs
    )
    return msgspec.structs.replace(report, runs=runs)


def fixed_findings(report: Report, baseline: Baseline) -> tuple[BaselineFinding, ...]:
    """Return what the baseline knows and is not found any more, by rules that could look."""
    outcomes = [each for run in report.runs for each in run.outcomes]
    still = {each.fingerprint for each in outcomes if each.fingerprint}
    looked = {each.rule for each in outcomes if each.status in JUDGED}
    return tuple(
        each for each in baseline.findings if each.fingerprint not in still and each.rule in looked
    )


def _judged(outcome: Outcome, known: Mapping[str, BaselineFinding], name: str) -> Outcome:
    if outcome.status != "found":
        return outcome
    before = known.get(outcome.fingerprint)
    if before is None:
        return msgspec.structs.replace(outcome, baseline="new")
    now = _share(outcome)
    if now > max(before.share * WORSE_FACTOR, before.share + LEAST_WORSE_SHARE):
        return msgspec.structs.replace(outcome, baseline="worse")
    return msgspec.structs.replace(
        outcome,
        status="suppressed",
        baseline="unchanged",
        suppressed_by="baseline",
        reason=f"Known since {name} was written.",
    )


def _found(report: Report) -> Iterable[Outcome]:
    return (each for run in report.runs for each in run.outcomes if each.status == "found")


def _share(outcome: Outcome) -> float:
    return outcome.claim.net_share if outcome.claim is not None else 0.0
