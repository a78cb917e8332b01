"""Savings as sums of intervals, without a simulation: the method before the replay."""

from collections.abc import Sequence
from dataclasses import replace

from stepscope.advice.rule_finding import RuleFinding
from stepscope.advice.savings import resolve_savings
from stepscope.advice.settings import AdviceSettings, available_rules, selected_rules
from stepscope.advice.trace_rules import findings_of
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.base.calibration import ALL_OF_IT, EXPOSED_TIME_WITHOUT_DEVICE
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Rule
from stepscope.rules.shared import claimable_time
from stepscope.rules.shared.claimable_time import Unchanged, unrecorded_ns

SETTINGS = AdviceSettings(has_packages=False)
UNCHANGED_KEY = f"{claimable_time.__name__}.{claimable_time.unchanged.__qualname__}"
REASON = "savings are sums of intervals here"


def rules_of(trace: Trace) -> Sequence[Rule]:  # type: ignore[type-arg]
    """Return the rules that apply to a trace by default, without those of other packages."""
    changes = SETTINGS.for_trace(is_training=is_training(trace))
    return selected_rules(changes, available_rules(has_packages=False))


def interval_savings(trace: Trace) -> dict[str, tuple[int, int]]:
    """Return the bounds of each rule's saving per step, by factors times intervals.

    `trace` is one that no rule has seen: its replay is replaced by none.
    """
    trace.results[UNCHANGED_KEY] = Unchanged(simulation=None, reason=REASON)
    findings = resolve_savings(trace, [by_factor(e) for e in findings_of(trace, rules_of(trace))])
    per_step = window(trace).per_step
    savings: dict[str, tuple[int, int]] = {}
    for finding in findings:
        if not finding.shares:
            continue
        low, high = savings.get(finding.rule.id, (0, 0))
        savings[finding.rule.id] = (
            low + per_step(sum(share.low_ns for share in finding.shares)),
            high + per_step(sum(share.high_ns for share in finding.shares)),
        )
    return savings


def by_factor(finding: RuleFinding) -> RuleFinding:
    """Return a finding whose claims are times with a factor, without changes of the replay.

    Only findings on loading have such changes; the factor is that of before.
    """
    claims = tuple(
        claim
        if claim.changes is None
        else replace(claim, changes=None, factor=EXPOSED_TIME_WITHOUT_DEVICE)
        for claim in finding.finding.claims
    )
    return replace(finding, finding=replace(finding.finding, claims=claims))


def whole_savings(trace: Trace) -> dict[str, int]:
    """Return each rule's saving per unrecorded step if all that it claims goes, alone."""
    claims: dict[str, list[Claim]] = {}
    for finding in findings_of(trace, rules_of(trace)):
        claims.setdefault(finding.rule.id, []).extend(finding.finding.claims)
    per_step = window(trace).per_step
    wholes = {
        rule: unrecorded_ns(trace, [replace(claim, factor=ALL_OF_IT) for claim in claims[rule]])
        for rule in claims
        if claims[rule]
    }
    return {rule: per_step(saving) for rule, saving in wholes.items() if saving is not None}
