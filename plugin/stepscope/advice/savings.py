"""Savings that add up: each claimed nanosecond goes to one finding.

Rules claim time as intervals. The resolver goes through the claims by the rules' priority and
gives each nanosecond to the first that asks, so that the net savings of a recording never sum to
more than its steps. Of a device's own work that would become faster, only that part counts in which
the device, not the host, is the limit (`analyses/devices/gpu_bound.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepscope.advice.outcome import doubts_of, outcome_of
from stepscope.advice.settings import SEVERITIES
from stepscope.analyses.core.complete_steps import complete_steps
from stepscope.analyses.core.window import Window, window
from stepscope.analyses.devices.gpu_bound import gpu_bound_times
from stepscope.base.findings import ClaimReport, Confidence, Outcome, Severity
from stepscope.base.formatting import duration, number_ranges
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, claim_order, severity_of
from stepscope.rules.shared.claimable_time import claimed_ns, possible

STEPS_FOR_HIGH_CONFIDENCE = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class RuleFinding:
    """A finding and the rule that made it."""

    rule: Rule[Any]
    finding: Finding

    def severity(self, trace: Trace) -> Severity | None:
        """Return how serious it is; None: not worth a word."""
        finding = self.finding
        severity = finding.severity
        if severity is None and not finding.claims:
            severity = "info"
        elif severity is None:
            severity = severity_of(window_share(window(trace), claimed_ns(trace, finding.claims)))
        is_doubtful = severity == "critical" and self.confidence(trace) == "low"
        return "warning" if is_doubtful else severity

    def confidence(self, trace: Trace) -> Confidence:
        """Return how sure it is.

        Low where that which it rests on is damaged: what would acquit may be missing. Never high
        where fewer than three steps were recorded.
        """
        if doubts_of(trace, self.rule):
            return "low"
        stated = self.finding.confidence
        if stated == "high" and window(trace).step_count < STEPS_FOR_HIGH_CONFIDENCE:
            return "medium"
        return stated


@dataclass(frozen=True, kw_only=True, eq=False)
class Share:
    """What is left of one claim once others have taken theirs."""

    times: Intervals
    """Disjoint from all other shares of the recording."""
    low: float
    high: float
    """How much of `times` is won at least (of `low_times`) and at most."""
    low_times: Intervals
    is_device_work: bool = False
    """Whether it is of the device's own work, not of waiting."""

    @property
    def low_ns(self) -> float:
        """What is won at least."""
        return min(self.low * intervals.duration_ns(self.low_times), self.high_ns)

    @property
    def high_ns(self) -> float:
        """What is won at most."""
        return self.high * intervals.duration_ns(self.times)


@dataclass(frozen=True, kw_only=True, eq=False)
class ResolvedFinding:
    """A finding as it is shown, and the time that is counted under it."""

    rule: Rule[Any]
    outcome: Outcome
    shares: tuple[Share, ...]


def resolve_savings(trace: Trace, found: list[RuleFinding]) -> tuple[ResolvedFinding, ...]:
    """Give each claimed nanosecond to one finding, in the rules' `claim_order`."""
    taken: list[tuple[str, Intervals]] = []
    before = intervals.EMPTY
    answers = []
    order = claim_order(item.rule for item in found)
    for each in sorted(found, key=lambda item: order[item.rule.id]):
        mine = tuple(possible(trace, claim) for claim in each.finding.claims)
        earlier = tuple(taken)
        shares = []
        for claim, held in zip(each.finding.claims, mine, strict=True):
            shares.append(_share(trace, claim, intervals.difference(held, before)))
            taken.append((each.rule.id, held))
            before = intervals.merged(before, held)
        report = _report(trace, each, mine, tuple(shares), earlier) if mine else None
        outcome = _outcome(trace, each, report)
        answers.append(ResolvedFinding(rule=each.rule, outcome=outcome, shares=tuple(shares)))
    return tuple(answers)


def _share(trace: Trace, claim: Claim, net: Intervals) -> Share:
    sure = net
    if claim.low_intervals is not None:
        sure = intervals.intersection(sure, claim.low_intervals)
    if claim.is_device_work:
        sure = intervals.intersection(sure, gpu_bound_times(trace).sure)
    return Share(
        times=net,
        low=claim.factor.low,
        high=claim.factor.high,
        low_times=sure,
        is_device_work=claim.is_device_work,
    )


def _report(
    trace: Trace,
    found: RuleFinding,
    mine: tuple[Intervals, ...],
    shares: tuple[Share, ...],
    earlier: Sequence[tuple[str, Intervals]],
) -> ClaimReport:
    span, claims = window(trace), found.finding.claims
    gross_ns = claimed_ns(trace, claims)
    low_ns = sum(each.low_ns for each in shares)
    high_ns = sum(each.high_ns for each in shares)
    method = " ".join(claim.method for claim in claims if claim.method)
    if round(high_ns) < round(gross_ns):
        lost = duration(span.per_step(gross_ns - high_ns))
        whole = intervals.merged(*mine)
        takers = {
            rule: None for rule, times in earlier if len(intervals.intersection(whole, times))
        }
        method = f"{method} {lost} of it is counted under {', '.join(takers)}.".strip()
    return ClaimReport(
        gross_ns=span.per_step(gross_ns),
        net_low_ns=span.per_step(low_ns),
        net_high_ns=span.per_step(high_ns),
        net_share=window_share(span, high_ns),
        method=method,
        steps=_steps(trace, intervals.merged(*(each.times for each in shares))),
    )


def _steps(trace: Trace, times: Intervals) -> str:
    """Return the numbers of the steps that hold some of the times: `3-9, 12`."""
    steps = complete_steps(trace).steps
    starts = steps["start_ns"].to_numpy()
    if not len(starts):
        return ""
    ends = np.append(starts[1:], window(trace).device_end_ns)
    held = intervals.covered_ns(times, starts, ends) > 0
    return number_ranges(steps["number"].to_numpy()[held].tolist())


def window_share(within: Window, total_ns: float) -> float:
    """Return a total of the window as a share of it, at most 1."""
    return min(1.0, total_ns / within.reference_ns)


def less_serious(one: Severity | None, other: Severity | None) -> Severity:
    """Return the less serious of two severities; what is not worth a word is a note."""
    known = (one or SEVERITIES[-1], other or SEVERITIES[-1])
    return max(known, key=SEVERITIES.index)


def _net_severity(stated: Severity | None, claim: ClaimReport | None) -> Severity | None:
    """Return how serious a finding is once others have taken their part of what it claims.

    One action is asked for once: what another finding would win already is no reason for alarm.
    """
    if claim is None or claim.net_high_ns >= claim.gross_ns:
        return stated
    return less_serious(stated, severity_of(claim.net_share))


def _outcome(trace: Trace, found: RuleFinding, claim: ClaimReport | None) -> Outcome:
    return outcome_of(
        found.rule,
        "found",
        trace,
        found.finding,
        severity=_net_severity(found.severity(trace), claim),
        confidence=found.confidence(trace),
        claim=claim,
        doubts=doubts_of(trace, found.rule),
    )
