"""Outcomes of rules over a run, and the time that they take from findings on its traces."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stepscope.advice.outcome import outcome_of
from stepscope.advice.rule_finding import net_severity
from stepscope.advice.trace_advice import TraceAdvice
from stepscope.advice.trace_rules import failure_status
from stepscope.base.findings import ClaimReport, Outcome
from stepscope.base.formatting import duration
from stepscope.rules import (
    Finding,
    Recording,
    Rule,
    RuledOut,
    RuleResult,
    RunClaim,
    RunEvidence,
    severity_of,
)

TakenTime = dict[tuple[str, str], tuple[float, str]]
"""(Trace, rule) to the nanoseconds per step that a rule over the run, named, takes from it."""


@dataclass(frozen=True, kw_only=True)
class Unread:
    """Names of unreadable files of a run, and the number of files that were not read yet."""

    unreadable: tuple[str, ...] = ()
    awaited_count: int = 0


ALL_READ = Unread()


def apply_run_rules(
    name: str,
    traces: Sequence[TraceAdvice],
    rules: Sequence[Rule[Any]],
    unread: Unread,
) -> tuple[list[Outcome], TakenTime]:
    """Return the outcomes of rules over the run, and the time taken from its traces."""
    evidence = RunEvidence(
        name=name,
        unreadable=unread.unreadable,
        awaited_count=unread.awaited_count,
        recordings=tuple(
            Recording(
                trace=advice.worker.trace,
                worker=advice.worker.name,
                span=advice.worker.span,
                part=advice.part,
                outcomes=advice.outcomes,
            )
            for advice in traces
            if advice.part is not None
        ),
    )
    outcomes: list[Outcome] = []
    taken: TakenTime = {}
    step_ns = max(advice.worker.step.mean_ns for advice in traces)
    for rule in rules:
        if rule.check_run is None:
            continue
        of_rule, results = _apply(rule, evidence, step_ns)
        outcomes += of_rule
        for result in results:
            if isinstance(result, Finding) and result.run_claim is not None:
                _take(taken, rule, result.run_claim)
    return outcomes, taken


def _apply(
    rule: Rule[Any], evidence: RunEvidence, step_ns: int
) -> tuple[list[Outcome], tuple[RuleResult, ...]]:
    """Return a rule's outcomes and results; an outcome without result where it fails."""
    try:
        results = tuple(rule.check_run(evidence, rule.options)) if rule.check_run else ()
        outcomes = [_outcome(rule, result, step_ns) for result in results]
    except Exception as error:  # a rule's bug must not hide the other rules' findings
        status, reason, remedy = failure_status(rule, f"run {evidence.name}", error)
        return [outcome_of(rule, status, None, reason=reason or None, remedy=remedy or None)], ()
    return outcomes or [outcome_of(rule, "passed", None, message=rule.passed)], results


def _outcome(rule: Rule[Any], result: RuleResult, step_ns: int) -> Outcome:
    if isinstance(result, RuledOut):
        return outcome_of(rule, "rejected", None, result)
    claim = result.run_claim
    high_ns = min(max(claim.high_ns, 0.0), step_ns) if claim else 0.0
    low_ns = round(min(max(claim.low_ns, 0.0), high_ns)) if claim else 0
    share = high_ns / max(1, step_ns)
    return outcome_of(
        rule,
        "found",
        None,
        result,
        severity=result.severity or (severity_of(share) if claim else None) or "info",
        confidence=result.confidence,
        claim=claim
        and ClaimReport(
            low_ns=low_ns,
            high_ns=round(high_ns),
            share=share,
            net_low_ns=low_ns,
            net_high_ns=round(high_ns),
            net_share=share,
            method=claim.method,
        ),
    )


def _take(taken: TakenTime, rule: Rule[Any], claim: RunClaim) -> None:
    """Add the time that a finding over the run takes from findings on traces."""
    for trace, time_ns in claim.taken_ns.items():
        for other in claim.taken_from:
            before, _ = taken.get((trace, other), (0.0, ""))
            taken[trace, other] = (before + time_ns, rule.id)


def reduce_saving(outcome: Outcome, taken: TakenTime) -> Outcome:
    """Return a finding without the part of its saving that a rule over the run counts."""
    lost_ns, rule = taken.get((outcome.trace, outcome.rule), (0.0, ""))
    claim = outcome.claim
    if claim is None or not lost_ns or claim.is_covered:
        return outcome
    less = _without(claim, round(lost_ns))
    lost = duration(claim.decisive.net_high_ns - less.decisive.net_high_ns)
    less = msgspec.structs.replace(
        less,
        method=f"{claim.method} {lost} of it is counted under {rule}.".strip(),
        counted_under=(*claim.counted_under, rule),
    )
    severity = net_severity(outcome.severity, less)
    return msgspec.structs.replace(outcome, claim=less, severity=severity)


def _without(claim: ClaimReport, lost_ns: int) -> ClaimReport:
    """Return a claim whose net saving is at most smaller by this time, in either step."""
    part = max(0, claim.net_high_ns - lost_ns) / max(1, claim.net_high_ns)
    less = msgspec.structs.replace(
        claim,
        net_low_ns=round(claim.net_low_ns * part),
        net_high_ns=round(claim.net_high_ns * part),
        net_share=claim.net_share * part,
    )
    high_ns, share = claim.unrecorded_net_high_ns, claim.unrecorded_net_share
    if high_ns is None or share is None:
        return less
    part = max(0, high_ns - lost_ns) / max(1, high_ns)
    return msgspec.structs.replace(
        less,
        unrecorded_net_low_ns=round((claim.unrecorded_net_low_ns or 0) * part),
        unrecorded_net_high_ns=round(high_ns * part),
        unrecorded_net_share=share * part,
    )
