"""Baselines of findings, so that only new or worse findings count.

A baseline is a JSON file with the fingerprint and potential saving of each finding. A fingerprint
consists of the rule and the subject (operator, function), without numbers: it is the same in every
trace of the same code.
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
"""Growth of a finding's saving beyond which it is worse; less is variation between runs."""
LEAST_WORSE_SHARE = 0.01
"""Of the step: the least growth that makes a finding worse."""


class BaselineFinding(msgspec.Struct, frozen=True):
    """A finding in the baseline."""

    rule: str
    fingerprint: str
    share: float = 0.0
    """The greatest saving as a fraction of the step; 0 where it claims none."""
    message: str = ""
    """For readers of the file."""


class Baseline(msgspec.Struct, frozen=True):
    """The content of a baseline file."""

    findings: tuple[BaselineFinding, ...]
    schema: int = SCHEMA
    version: str = ""


def baseline_of(report: Report) -> Baseline:
    """Return the findings of a report, each once with its largest saving in any trace."""
    by_fingerprint: dict[str, BaselineFinding] = {}
    for outcome in _findings(report):
        share = _share(outcome)
        before = by_fingerprint.get(outcome.fingerprint)
        if before is None or share > before.share:
            by_fingerprint[outcome.fingerprint] = BaselineFinding(
                rule=outcome.rule,
                fingerprint=outcome.fingerprint,
                share=round(share, 4),
                message=outcome.message,
            )
    findings = sorted(
        by_fingerprint.values(), key=lambda finding: (finding.rule, finding.fingerprint)
    )
    return Baseline(findings=tuple(findings), version=report.version)


def baseline_text(baseline: Baseline) -> str:
    """Return the file's text, with a line per finding, fit for a diff."""
    return msgspec.json.format(msgspec.json.encode(baseline), indent=1).decode() + "\n"


def read_baseline(path: Path) -> Baseline:
    """Return the baseline in a file.

    Raises:
        UsageError: it cannot be read, or is not a baseline of this version.
    """
    try:
        baseline = msgspec.json.decode(path.read_bytes(), type=Baseline)
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror}). Write it with --write-baseline {path}"
        raise UsageError(msg) from error
    except msgspec.DecodeError as error:
        msg = f"{path}: is not a baseline ({error}). Write it again with --write-baseline {path}"
        raise UsageError(msg) from error
    if baseline.schema != SCHEMA:
        msg = (
            f"{path}: its schema is {baseline.schema}, this version reads {SCHEMA}. Write it again"
        )
        raise UsageError(msg)
    return baseline


def compare_with_baseline(report: Report, baseline: Baseline, name: str) -> Report:
    """Return the report with the findings of the baseline suppressed, unless they are worse."""
    earlier = {finding.fingerprint: finding for finding in baseline.findings}
    runs = tuple(
        with_outcomes(run, [_compared(outcome, earlier, name) for outcome in run.outcomes])
        for run in report.runs
    )
    return msgspec.structs.replace(report, runs=runs)


def fixed_findings(report: Report, baseline: Baseline) -> tuple[BaselineFinding, ...]:
    """Return the baseline's findings that are gone, of rules that could check."""
    outcomes = [outcome for run in report.runs for outcome in run.outcomes]
    present = {outcome.fingerprint for outcome in outcomes if outcome.fingerprint}
    judged = {outcome.rule for outcome in outcomes if outcome.status in JUDGED}
    return tuple(
        finding
        for finding in baseline.findings
        if finding.fingerprint not in present and finding.rule in judged
    )


def _compared(outcome: Outcome, earlier: Mapping[str, BaselineFinding], name: str) -> Outcome:
    if outcome.status != "found":
        return outcome
    before = earlier.get(outcome.fingerprint)
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
        reason=f"In the baseline {name}.",
    )


def _findings(report: Report) -> Iterable[Outcome]:
    outcomes = (outcome for run in report.runs for outcome in run.outcomes)
    return (outcome for outcome in outcomes if outcome.status == "found")


def _share(outcome: Outcome) -> float:
    return outcome.claim.decisive.share if outcome.claim is not None else 0.0
