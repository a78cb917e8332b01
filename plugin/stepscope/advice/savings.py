"""Savings that add up: each is a step that was simulated, after the earlier findings' fixes.

Rules claim times, or waits that would go. In the order of the rules, the trace is replayed with
each finding's changes on top of those before it. The time that the window gains counts for that
finding, so that the net savings of a trace never sum to more than its steps; each nanosecond of the
trace is changed by one finding.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stepscope.advice.outcome import doubts_of, outcome_of
from stepscope.advice.settings import SEVERITIES
from stepscope.analyses.core.window import Window, complete_steps, window
from stepscope.base.findings import ClaimReport, Confidence, Outcome, Severity
from stepscope.base.formatting import duration, number_ranges
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.replay.simulation import Simulation
from stepscope.rules import INFO_SHARE, Claim, Finding, Rule, claim_order, severity_of
from stepscope.rules.shared.claimable_time import (
    changes_at_least,
    changes_at_most,
    claimed_ns,
    is_refuted,
    sure_times,
    unchanged,
    unrecorded,
    usable_times,
)

STEPS_FOR_HIGH_CONFIDENCE = 3
OTHER_SAVING = 0.2
"""Fraction by which a saving in unrecorded steps differs where it is worth a sentence."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RuleFinding:
    """A finding with its rule."""

    rule: Rule[Any]
    finding: Finding

    def severity(self, trace: Trace) -> Severity | None:
        """Return the severity; None: not worth reporting."""
        severity, claims = self.finding.severity, self.finding.claims
        if not claims:
            severity = severity or "info"
        elif severity is None:
            severity = severity_of(window_share(window(trace), claimed_ns(trace, claims)))
        elif is_refuted(trace, claims):
            severity = "info"
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


@dataclass(frozen=True, kw_only=True)
class Saving:
    """Saving of a finding in the window, in nanoseconds."""

    alone: float
    """The most that it saves without the other findings."""
    low: float
    high: float
    """The least and the most after the fixes of the earlier findings; at most `alone`."""
    unrecorded: tuple[float, float] | None = None
    """The least and the most in the window as it runs without the profiler; None: unknown."""


NO_SHARES: tuple[Share, ...] = ()


def resolve_savings(trace: Trace, findings: list[RuleFinding]) -> tuple[ResolvedFinding, ...]:
    """Simulate the fix of one finding after the other, in the rules' `claim_order`."""
    estimate = _Estimate(trace)
    claimed: list[tuple[str, Intervals]] = []
    resolved = []
    order = claim_order(item.rule for item in findings)
    for finding in sorted(findings, key=lambda item: order[item.rule.id]):
        report, shares = None, NO_SHARES
        if claims := finding.finding.claims:
            shares, saving = estimate.next(claims)
            report = _report(trace, claims, shares, saving, claimed)
            claimed += [(finding.rule.id, usable_times(trace, claim)) for claim in claims]
        resolved.append(
            ResolvedFinding(
                rule=finding.rule, outcome=_outcome(trace, finding, report), shares=shares
            )
        )
    return tuple(resolved)


class _Estimate:
    """Savings of one finding after the other."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._taken = intervals.EMPTY
        recorded, without_profiler = unchanged(trace).simulation, unrecorded(trace)
        self._replay = _Replay(trace, recorded) if recorded else None
        self._unrecorded = _Replay(trace, without_profiler) if without_profiler else None

    def next(self, claims: Sequence[Claim]) -> tuple[tuple[Share, ...], Saving]:
        """Return the shares of the next finding's claims, and its saving."""
        shares = tuple(self._share(claim) for claim in claims)
        if self._replay is None:
            high_ns = sum(share.high_ns for share in shares)
            return shares, Saving(alone=claimed_ns(self._trace, claims), low=0.0, high=high_ns)
        low_ns, high_ns = self._replay.next(claims, shares)
        alone_ns = claimed_ns(self._trace, claims)
        high_ns = min(alone_ns, high_ns)
        sure_ns = sum(share.low_ns for share in shares)
        saving = Saving(
            alone=alone_ns,
            low=min(high_ns, sure_ns, low_ns),
            high=high_ns,
            unrecorded=self._unrecorded.next(claims, shares) if self._unrecorded else None,
        )
        return _scaled(shares, saving), saving

    def _share(self, claim: Claim) -> Share:
        times = usable_times(self._trace, claim)
        net = intervals.difference(times, self._taken)
        self._taken = intervals.merged(self._taken, times)
        return Share(
            times=net,
            low=claim.factor.low,
            high=claim.factor.high,
            low_times=sure_times(self._trace, claim, net),
            is_device_work=claim.is_device_work,
        )


class _Replay:
    """A replayed window with the fixes of one finding after the other."""

    def __init__(self, trace: Trace, simulation: Simulation) -> None:
        self._trace = trace
        self._begin = self._least = self._most = simulation

    def next(self, claims: Sequence[Claim], shares: Sequence[Share]) -> tuple[int, int]:
        """Return the least and the greatest saving of the next finding, and keep its fix."""
        trace, begin, most, least = self._trace, self._begin, self._most, self._least
        for claim, share in zip(claims, shares, strict=True):
            most = most.with_changes(changes_at_most(trace, claim, share.times, begin))
            least = least.with_changes(changes_at_least(trace, claim, share.low_times, begin))
        high_ns = most.saved_ns - self._most.saved_ns
        low_ns = least.saved_ns - self._least.saved_ns
        # A fix that costs time is no reason for the next one to save more.
        self._most = most if high_ns >= 0 else self._most
        self._least = least if low_ns >= 0 else self._least
        return max(0, min(low_ns, high_ns)), max(0, high_ns)


def _scaled(shares: Sequence[Share], saving: Saving) -> tuple[Share, ...]:
    """Return shares whose savings sum to the simulated one."""
    low_ns, high_ns = (
        sum(share.low_ns for share in shares),
        sum(share.high_ns for share in shares),
    )
    low = saving.low / low_ns if low_ns else 0.0
    high = saving.high / high_ns if high_ns else 0.0
    return tuple(replace(share, low=share.low * low, high=share.high * high) for share in shares)


def _report(
    trace: Trace,
    claims: Sequence[Claim],
    shares: Sequence[Share],
    saving: Saving,
    earlier: Sequence[tuple[str, Intervals]],
) -> ClaimReport:
    span = window(trace)
    methods = [claim.method for claim in claims if claim.method]
    takers: dict[str, None] = {}
    if round(saving.high) < round(saving.alone):
        lost = duration(span.per_step(saving.alone - saving.high))
        takers = _takers(trace, claims, earlier)
        methods.append(f"{lost} of it is counted under {', '.join(takers)}.")
    methods += _without_profiler(span, saving)
    if reason := unchanged(trace).reason:
        methods.append(f"Not simulated, and therefore at most this sum of times: {reason}.")
    return ClaimReport(
        gross_ns=span.per_step(saving.alone),
        net_low_ns=span.per_step(saving.low),
        net_high_ns=span.per_step(saving.high),
        net_share=window_share(span, saving.high),
        method=" ".join(methods),
        steps=_steps(trace, intervals.merged(*(share.times for share in shares))),
        counted_under=tuple(takers),
        unrecorded_low_ns=saving.unrecorded and span.per_step(saving.unrecorded[0]),
        unrecorded_high_ns=saving.unrecorded and span.per_step(saving.unrecorded[1]),
    )


def _without_profiler(span: Window, saving: Saving) -> list[str]:
    """Return a sentence on the step without the profiler, where the saving is another one there."""
    if saving.unrecorded is None:
        return []
    low_ns, high_ns = saving.unrecorded
    difference_ns = abs(high_ns - saving.high)
    is_close = difference_ns < OTHER_SAVING * max(high_ns, saving.high)
    if is_close or window_share(span, difference_ns) < INFO_SHARE:
        return []
    return [
        f"In a step without the profiler it saves {duration(span.per_step(low_ns))} to "
        f"{duration(span.per_step(high_ns))}."
    ]


def _takers(
    trace: Trace, claims: Iterable[Claim], earlier: Sequence[tuple[str, Intervals]]
) -> dict[str, None]:
    """Return the earlier rules whose claims share time with these; else all of them."""
    whole = intervals.merged(*(usable_times(trace, claim) for claim in claims))
    sharing = {rule: None for rule, times in earlier if len(intervals.intersection(whole, times))}
    return sharing or {rule: None for rule, _ in earlier}


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
