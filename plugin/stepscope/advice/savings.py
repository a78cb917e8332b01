"""Savings that add up: each claimed nanosecond counts for one finding.

Rules claim time as intervals. Claims are resolved in the order of the rules, and each
nanosecond goes to the first claim, so that the net savings of a trace never sum to more than its
steps. Of device work that would become faster, only the part counts in which the device, not the
host, is the limit (`analyses/devices/gpu_bound.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepscope.advice.outcome import doubts_of, outcome_of
from stepscope.advice.settings import SEVERITIES
from stepscope.analyses.core.window import Window, complete_steps, window
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
    """A finding with its rule."""

    rule: Rule[Any]
    finding: Finding

    def severity(self, trace: Trace) -> Severity | None:
        """Return the severity; None: not worth reporting."""
        finding = self.finding
        severity = finding.severity
        if severity is None and not finding.claims:
            severity = "info"
        elif severity is None:
            severity = severity_of(window_share(window(trace), claimed_ns(trace, finding.claims)))
        is_doubtful = severity == "critical" and self.confidence(trace) == "low"
        return "warning" if is_doubtful else severity

    def confidence(self, trace: Trace) -> Confidence:
        """Return the confidence: low on damaged data, never high with fewer than three steps."""
        if doubts_of(trace, self.rule):
            return "low"
        stated = self.finding.confidence
        if stated == "high" and window(trace).step_count < STEPS_FOR_HIGH_CONFIDENCE:
            return "medium"
        return stated


@dataclass(frozen=True, kw_only=True, eq=False)
class Share:
    """The part of a claim that no earlier claim has taken."""

    times: Intervals
    """Disjoint from all other shares of the trace."""
    low: float
    high: float
    """Fractions saved at least (of `low_times`) and at most (of `times`)."""
    low_times: Intervals
    is_device_work: bool = False
    """Whether it is device work, not waiting."""

    @property
    def low_ns(self) -> float:
        """The least saving."""
        return min(self.low * intervals.duration_ns(self.low_times), self.high_ns)

    @property
    def high_ns(self) -> float:
        """The greatest saving."""
        return self.high * intervals.duration_ns(self.times)


@dataclass(frozen=True, kw_only=True, eq=False)
class ResolvedFinding:
    """A finding's outcome, and the time that counts for it."""

    rule: Rule[Any]
    outcome: Outcome
    shares: tuple[Share, ...]


def resolve_savings(trace: Trace, findings: list[RuleFinding]) -> tuple[ResolvedFinding, ...]:
    """Assign each claimed nanosecond to one finding, in the rules' `claim_order`."""
    claimed: list[tuple[str, Intervals]] = []
    taken = intervals.EMPTY
    resolved = []
    order = claim_order(item.rule for item in findings)
    for finding in sorted(findings, key=lambda item: order[item.rule.id]):
        claims = finding.finding.claims
        claim_times = tuple(possible(trace, claim) for claim in claims)
        earlier = tuple(claimed)
        shares = []
        for claim, times in zip(claims, claim_times, strict=True):
            shares.append(_share(trace, claim, intervals.difference(times, taken)))
            claimed.append((finding.rule.id, times))
            taken = intervals.merged(taken, times)
        report = _report(trace, claims, claim_times, tuple(shares), earlier) if claims else None
        outcome = _outcome(trace, finding, report)
        resolved.append(ResolvedFinding(rule=finding.rule, outcome=outcome, shares=tuple(shares)))
    return tuple(resolved)


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
    claims: Sequence[Claim],
    claim_times: tuple[Intervals, ...],
    shares: tuple[Share, ...],
    earlier: Sequence[tuple[str, Intervals]],
) -> ClaimReport:
    span = window(trace)
    gross_ns = claimed_ns(trace, claims)
    high_ns = sum(share.high_ns for share in shares)
    method = " ".join(claim.method for claim in claims if claim.method)
    takers: dict[str, None] = {}
    if round(high_ns) < round(gross_ns):
        lost = duration(span.per_step(gross_ns - high_ns))
        whole = intervals.merged(*claim_times)
        takers = {
            rule: None for rule, times in earlier if len(intervals.intersection(whole, times))
        }
        method = f"{method} {lost} of it is counted under {', '.join(takers)}.".strip()
    return ClaimReport(
        gross_ns=span.per_step(gross_ns),
        net_low_ns=span.per_step(sum(share.low_ns for share in shares)),
        net_high_ns=span.per_step(high_ns),
        net_share=window_share(span, high_ns),
        method=method,
        steps=_steps(trace, intervals.merged(*(share.times for share in shares))),
        counted_under=tuple(takers),
    )


def _steps(trace: Trace, times: Intervals) -> str:
    """Return the numbers of the steps that contain some of the times: `3-9, 12`."""
    steps = complete_steps(trace).steps
    starts = steps["start_ns"].to_numpy()
    if not len(starts):
        return ""
    ends = np.append(starts[1:], window(trace).device_end_ns)
    is_covered = intervals.covered_ns(times, starts, ends) > 0
    return number_ranges(steps["number"].to_numpy()[is_covered].tolist())


def window_share(span: Window, total_ns: float) -> float:
    """Return a total of the window as a fraction of it, at most 1."""
    return min(1.0, total_ns / span.reference_ns)


def less_serious(one: Severity | None, other: Severity | None) -> Severity:
    """Return the less serious of two severities; None counts as `info`."""
    return max(one or SEVERITIES[-1], other or SEVERITIES[-1], key=SEVERITIES.index)


def _outcome(trace: Trace, finding: RuleFinding, claim: ClaimReport | None) -> Outcome:
    severity = finding.severity(trace)
    if claim is not None and claim.net_high_ns < claim.gross_ns:
        # time that another finding saves already is no reason for alarm
        severity = less_serious(severity, severity_of(claim.net_share))
    return outcome_of(
        finding.rule,
        "found",
        trace,
        finding.finding,
        severity=severity,
        confidence=finding.confidence(trace),
        claim=claim,
        doubts=doubts_of(trace, finding.rule),
    )
