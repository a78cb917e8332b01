"""A finding of a rule with its severity and its confidence."""

from dataclasses import dataclass
from typing import Any

from stepscope.advice.outcome import doubts_of
from stepscope.advice.settings import SEVERITIES
from stepscope.analyses.core.window import window
from stepscope.base.findings import ClaimReport, Confidence, HoldsIn, Severity
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, severity_of
from stepscope.rules.shared.step_savings import StepShares, claimed_shares, is_refuted

STEPS_FOR_HIGH_CONFIDENCE = 3
ONE_LOWER: dict[Confidence, Confidence] = {"high": "medium", "medium": "low", "low": "low"}


@dataclass(frozen=True, kw_only=True, eq=False)
class RuleFinding:
    """A finding with its rule."""

    rule: Rule[Any]
    finding: Finding

    def severity(self, trace: Trace) -> Severity | None:
        """Return the severity; None: not worth reporting.

        It rests on the saving in the decisive step (`step_savings`). A saving in one step only is
        `info`, unless that step was measured without the profiler.
        """
        severity, claims = self.finding.severity, self.finding.claims
        if not claims:
            severity = severity or "info"
        elif self._is_in_one_step(trace) or (severity and is_refuted(trace, claims)):
            severity = "info"
        else:
            severity = _by_saving(severity, claimed_shares(trace, claims))
        is_doubtful = severity == "critical" and self.confidence(trace) == "low"
        return "warning" if is_doubtful else severity

    def confidence(self, trace: Trace) -> Confidence:
        """Return the confidence: low on damaged data, never high with fewer than three steps.

        It is lower by one where the saving is one of the recorded step only, and low where it is
        one of the unrecorded step only, whose time is estimated.
        """
        if doubts_of(trace, self.rule):
            return "low"
        stated = self.finding.confidence
        if stated == "high" and window(trace).step_count < STEPS_FOR_HIGH_CONFIDENCE:
            stated = "medium"
        if self._is_in_one_step(trace):
            return ONE_LOWER[stated] if self.holds_in(trace) == "recorded" else "low"
        return stated

    def holds_in(self, trace: Trace) -> HoldsIn:
        """Return the steps in which it saves enough for a finding; `both` without a claim."""
        claims = self.finding.claims
        return claimed_shares(trace, claims).holds_in if claims else "both"

    def _is_in_one_step(self, trace: Trace) -> bool:
        """Return whether it saves time in one step only, and that step was not measured."""
        holds_in = self.holds_in(trace)
        if holds_in == "unrecorded":
            return not claimed_shares(trace, self.finding.claims).is_measured
        return holds_in == "recorded"


def _by_saving(stated: Severity | None, shares: StepShares) -> Severity | None:
    """Return the severity by the decisive step.

    A stated severity to which the recorded saving amounts is lowered where the decisive one does
    not; one that the rule states for other reasons remains.
    """
    decisive = severity_of(shares.decisive)
    if stated is None:
        return decisive
    recorded = severity_of(shares.recorded)
    is_by_saving = recorded is not None and SEVERITIES.index(recorded) <= SEVERITIES.index(stated)
    return less_serious(stated, decisive) if is_by_saving else stated


def less_serious(one: Severity | None, other: Severity | None) -> Severity:
    """Return the less serious of two severities; None counts as `info`."""
    return max(one or SEVERITIES[-1], other or SEVERITIES[-1], key=SEVERITIES.index)


def net_severity(severity: Severity | None, claim: ClaimReport) -> Severity | None:
    """Return a severity, by the net saving where other findings count most of it.

    Time that another finding saves already is no reason for alarm.
    """
    saving = claim.decisive
    if not saving.is_mostly_counted:
        return severity
    return less_serious(severity, severity_of(saving.net_share))
