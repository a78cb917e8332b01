"""What rules over a run say, and what they take from the findings on its recordings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stepscope.advice.outcome import outcome_of
from stepscope.advice.savings import less_serious
from stepscope.advice.trace_advice import TraceAdvice
from stepscope.advice.trace_rules import failure_status
from stepscope.base.findings import ClaimReport, Outcome
from stepscope.base.formatting import duration
from stepscope.rules import Finding, Recording, Rule, RuledOut, RunClaim, RunEvidence, severity_of

Taken = dict[tuple[str, str], tuple[float, str]]
"""(Recording, rule) to the nanoseconds of a step that a rule over the run, named, takes from it."""


@dataclass(frozen=True, kw_only=True)
class Unread:
    """Files of a run that say nothing."""

    unreadable: tuple[str, ...] = ()
    """Names of those that could not be read."""
    awaited_count: int = 0
    """How many others were not read yet."""


ALL_READ = Unread()


def apply_run_rules(
    name: str,
    recordings: Sequence[TraceAdvice],
    rules: Sequence[Rule[Any]],
    unread: Unread,
) -> tuple[list[Outcome], Taken]:
    """Return what rules over the run say of it, and what that takes from its recordings."""
    evidence = RunEvidence(
        name=name,
        unreadable=unread.unreadable,
        awaited_count=unread.awaited_count,
        recordings=tuple(
            Recording(
                trace=each.worker.trace,
                worker=each.worker.name,
                span=each.worker.span,
                part=each.part,
                outcomes=each.outcomes,
            )
            for each in recordings
            if each.part is not None
        ),
    )
    outcomes: list[Outcome] = []
    taken: Taken = {}
    step_ns = max(each.worker.step.mean_ns for each in recordings)
    for rule in rules:
        if rule.check_run is None:
            continue
        mine, answers = _answers(rule, evidence, step_ns)
        outcomes += mine
        for each in answers:
            if isinstance(each, Finding) and each.run_claim is not None:
                _take(taken, rule, each.run_claim)
    return outcomes, taken


def _answers(
    rule: Rule[Any], evidence: RunEvidence, step_ns: int
) -> tuple[list[Outcome], tuple[Finding | RuledOut, ...]]:
    """Return what a rule over the run says, as outcomes and as it is; or why it says nothing."""
    try:
        answers = tuple(rule.check_run(evidence, rule.options)) if rule.check_run else ()
        outcomes = [_of_run(rule, each, step_ns) for each in answers]
    except Exception as error:  # a rule's bug must not hide the other rules' findings
        status, reason, remedy = failure_status(rule, f"run {evidence.name}", error)
        return [outcome_of(rule, status, None, reason=reason or None, remedy=remedy or None)], ()
    return outcomes or [outcome_of(rule, "passed", None, message=rule.passed)], answers


def _of_run(rule: Rule[Any], answer: Finding | RuledOut, step_ns: int) -> Outcome:
    if isinstance(answer, RuledOut):
        return outcome_of(rule, "rejected", None, answer)
    claim = answer.run_claim
    high_ns = min(max(claim.high_ns, 0.0), step_ns) if claim else 0.0
    share = high_ns / max(1, step_ns)
    return outcome_of(
        rule,
        "found",
        None,
        answer,
        severity=answer.severity or (severity_of(share) if claim else None) or "info",
        confidence=answer.confidence,
        claim=claim
        and ClaimReport(
            gross_ns=round(high_ns),
            net_low_ns=round(min(max(claim.low_ns, 0.0), high_ns)),
            net_high_ns=round(high_ns),
            net_share=share,
            method=claim.method,
        ),
    )


def _take(taken: Taken, rule: Rule[Any], claim: RunClaim) -> None:
    """Note what a finding over the run takes from the findings on its recordings."""
    for trace, time_ns in claim.taken_ns.items():
        for other in claim.taken_from:
            before, _ = taken.get((trace, other), (0.0, ""))
            taken[trace, other] = (before + time_ns, rule.id)


def reduce_saving(outcome: Outcome, taken: Taken) -> Outcome:
    """Return a finding without that part of its saving which a rule over the run counts."""
    lost_ns, rule = taken.get((outcome.trace, outcome.rule), (0.0, ""))
    claim = outcome.claim
    if claim is None or not lost_ns or not claim.net_high_ns:
        return outcome
    high_ns = max(0, claim.net_high_ns - round(lost_ns))
    method = (
        f"{claim.method} {duration(claim.net_high_ns - high_ns)} of it is counted under {rule}."
    )
    less = msgspec.structs.replace(
        claim,
        net_low_ns=min(claim.net_low_ns, high_ns),
        net_high_ns=high_ns,
        net_share=claim.net_share * high_ns / claim.net_high_ns,
        method=method.strip(),
    )
    severity = less_serious(outcome.severity, severity_of(less.net_share))
    return msgspec.structs.replace(outcome, claim=less, severity=severity)
