"""Savings of findings, simulated: of each fix alone, and net savings, which add up.

Rules claim times, or waits that would go. Each finding's changes are simulated alone: that is its
saving. For sums, in the order of the rules, the trace is also replayed with each finding's changes
on top of those before it. The time that the window gains then is the finding's net saving, so that
the net savings of a trace never sum to more than its steps; each nanosecond of the trace is changed
by one finding.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from stepscope.advice.claim_reports import (
    Saving,
    StepSavings,
    claim_report,
    one_step_only,
    step_savings_of,
)
from stepscope.advice.outcome import doubts_of, outcome_of
from stepscope.advice.rule_finding import RuleFinding, net_severity
from stepscope.base.errors import in_one_line
from stepscope.base.findings import ClaimReport, Outcome
from stepscope.base.urls import redacted
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.replay.simulation import Simulation
from stepscope.rules import Claim, Rule, claim_order
from stepscope.rules.shared.claimable_time import (
    Alone,
    alone,
    changes_at_least,
    changes_at_most,
    claimed_ns,
    host_times,
    sure_times,
    unchanged,
    unrecorded,
    usable_times,
)

log = logging.getLogger(__name__)


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
    claims: tuple[Claim, ...] = ()


NO_SHARES: tuple[Share, ...] = ()


def resolve_savings(trace: Trace, findings: list[RuleFinding]) -> tuple[ResolvedFinding, ...]:
    """Simulate the fix of one finding after the other, in the rules' `claim_order`."""
    estimate = _Estimate(trace)
    claimed: list[tuple[str, Intervals]] = []
    resolved = []
    order = claim_order(item.rule for item in findings)
    for finding in sorted(findings, key=lambda item: order[item.rule.id]):
        try:
            resolved.append(_resolve(trace, finding, estimate, claimed))
        except MemoryError:
            raise
        except Exception as error:  # a bug in one saving must not hide the findings
            resolved.append(_without_saving(trace, finding, error))
    return tuple(resolved)


def _resolve(
    trace: Trace,
    finding: RuleFinding,
    estimate: "_Estimate",
    claimed: list[tuple[str, Intervals]],
) -> ResolvedFinding:
    """Return a finding with its saving; `claimed` are the times of each finding before it."""
    report, shares = None, NO_SHARES
    if claims := finding.finding.claims:
        shares, savings = estimate.next(claims)
        report = claim_report(trace, finding, savings, _times(shares), claimed)
        claimed += [(finding.rule.id, usable_times(trace, claim)) for claim in claims]
    return ResolvedFinding(
        rule=finding.rule,
        outcome=_outcome(trace, finding, report),
        shares=shares,
        claims=claims,
    )


def _without_saving(trace: Trace, finding: RuleFinding, error: Exception) -> ResolvedFinding:
    """Return a finding whose saving could not be estimated."""
    reason = in_one_line(error)
    log.warning("the saving of %s in %s failed: %s", finding.rule.id, redacted(trace.path), reason)
    doubt = f"its saving is left out, since stepscope failed ({reason}); please report this line"
    outcome = outcome_of(
        finding.rule,
        "found",
        trace,
        finding.finding,
        severity=finding.finding.severity or "info",
        confidence="low",
        doubts=(*doubts_of(trace, finding.rule), doubt),
    )
    return ResolvedFinding(rule=finding.rule, outcome=outcome, shares=NO_SHARES)


class _Estimate:
    """Savings of one finding after the other."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._taken = intervals.EMPTY
        recorded, without_profiler = unchanged(trace).simulation, unrecorded(trace)
        self._replay = _Replay(trace, recorded) if recorded else None
        self._unrecorded = _Replay(trace, without_profiler) if without_profiler else None

    def next(self, claims: Sequence[Claim]) -> tuple[tuple[Share, ...], StepSavings]:
        """Return the shares of the next finding's claims, and its savings."""
        shares = tuple(self._share(claim) for claim in claims)
        if self._replay is None:
            high_ns = sum(share.high_ns for share in shares)
            alone_ns = claimed_ns(self._trace, claims)
            saving = Saving(alone_ns=alone_ns, low_ns=0.0, high_ns=high_ns)
            return shares, step_savings_of(self._trace, saving, None)
        savings = step_savings_of(
            self._trace,
            _saving(self._replay, claims, shares, alone(self._trace, claims, "recorded")),
            self._without_profiler(claims, shares),
        )
        return _scaled(shares, savings.decisive), savings

    def _without_profiler(self, claims: Sequence[Claim], shares: Sequence[Share]) -> Saving | None:
        if self._unrecorded is None:
            return None
        return _saving(self._unrecorded, claims, shares, alone(self._trace, claims, "unrecorded"))

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
        self._taken = intervals.EMPTY
        self.counted_ns = 0.0
        """The most that counts for the findings so far."""

    def next(self, claims: Sequence[Claim], shares: Sequence[Share]) -> tuple[int, int]:
        """Return the least and the greatest saving of the next finding, and keep its fix."""
        trace, begin, most, least = self._trace, self._begin, self._most, self._least
        for claim, share in zip(claims, shares, strict=True):
            taken, times, sure = self._taken, share.times, share.low_times
            most = most.with_changes(changes_at_most(trace, claim, times, begin, taken))
            least = least.with_changes(changes_at_least(trace, claim, sure, begin, taken))
            self._taken = intervals.merged(taken, host_times(trace, claim, times))
        high_ns = most.saved_ns - self._most.saved_ns
        low_ns = least.saved_ns - self._least.saved_ns
        # A fix that costs time is no reason for the next one to save more.
        self._most = most if high_ns >= 0 else self._most
        self._least = least if low_ns >= 0 else self._least
        return max(0, min(low_ns, high_ns)), max(0, high_ns)


def _saving(
    replay: _Replay, claims: Sequence[Claim], shares: Sequence[Share], alone: Alone
) -> Saving:
    """Return the saving of the next finding: at most what it saves alone, and its sure part."""
    alone_ns = alone.high_ns
    low_ns, after_fixes_ns = replay.next(claims, shares)
    most_ns = min(alone_ns, after_fixes_ns)
    earlier_ns = replay.counted_ns
    replay.counted_ns += most_ns
    sure_ns = sum(share.low_ns for share in shares)
    return Saving(
        alone_ns=alone_ns,
        alone_low_ns=alone.low_ns,
        low_ns=min(most_ns, sure_ns, low_ns),
        high_ns=most_ns,
        earlier_ns=earlier_ns,
        after_fixes_ns=after_fixes_ns,
    )


def _times(shares: Sequence[Share]) -> Intervals:
    return intervals.merged(*(share.times for share in shares))


def _scaled(shares: Sequence[Share], saving: Saving) -> tuple[Share, ...]:
    """Return shares whose savings sum to the simulated one."""
    low_ns, high_ns = (
        sum(share.low_ns for share in shares),
        sum(share.high_ns for share in shares),
    )
    low = saving.low_ns / low_ns if low_ns else 0.0
    high = saving.high_ns / high_ns if high_ns else 0.0
    return tuple(replace(share, low=share.low * low, high=share.high * high) for share in shares)


def _outcome(trace: Trace, finding: RuleFinding, claim: ClaimReport | None) -> Outcome:
    severity = finding.severity(trace)
    result = finding.finding
    if claim is not None:
        severity = net_severity(severity, claim)
        result = replace(result, message=f"{result.message}{one_step_only(trace, finding)}")
    return outcome_of(
        finding.rule,
        "found",
        trace,
        result,
        severity=severity,
        confidence=finding.confidence(trace),
        claim=claim,
        doubts=doubts_of(trace, finding.rule),
    )
