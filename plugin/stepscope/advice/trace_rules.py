"""What each rule says of one recording: one outcome a rule, or a finding."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from stepscope.advice.outcome import doubts_of, outcome_of
from stepscope.advice.savings import ResolvedFinding, RuleFinding, resolve_savings
from stepscope.analyses.health import doubts
from stepscope.base.errors import MissingDataError, NotApplicableError, in_one_line
from stepscope.base.findings import Outcome, Status
from stepscope.base.report import HealthItem
from stepscope.base.urls import redacted
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, RuledOut
from stepscope.rules.shared.claimable_time import claimed_ns

log = logging.getLogger(__name__)


def rule_outcomes(trace: Trace, rules: Sequence[Rule[Any]]) -> list[Outcome]:
    """Return what each rule says of one recording, with savings resolved between them."""
    outcomes, found = apply_rules(trace, rules)
    return outcomes + [each.outcome for each in found]


def apply_rules(
    trace: Trace, rules: Sequence[Rule[Any]]
) -> tuple[list[Outcome], tuple[ResolvedFinding, ...]]:
    """Return what the rules said, and apart from it what they found, with whose time is whose."""
    found: list[RuleFinding] = []
    outcomes: list[Outcome] = []
    for rule in rules:
        if rule.check is not None:
            mine, others = _answers(trace, rule)
            found += mine
            outcomes += others
    return outcomes, resolve_savings(trace, found)


def _answers(trace: Trace, rule: Rule[Any]) -> tuple[list[RuleFinding], list[Outcome]]:
    """Return what one rule found, and what else it said."""
    if damage := doubts(trace, rule.rests_on, "withheld"):
        return [], [_withheld(trace, rule, damage[0])]
    try:
        answers = tuple(rule.check(trace, rule.options)) if rule.check else ()
        found = _worth_a_word(trace, rule, answers)
    except Exception as error:  # a rule's bug must not hide the other rules' findings
        status, reason, remedy = failure_status(rule, redacted(trace.path) or trace.worker, error)
        return [], [outcome_of(rule, status, trace, reason=reason or None, remedy=remedy or None)]
    unsure = doubts_of(trace, rule)
    acquitted = [
        outcome_of(rule, "rejected", trace, each, doubts=unsure)
        for each in answers
        if isinstance(each, RuledOut)
    ]
    if found or acquitted:
        return found, acquitted
    return [], [outcome_of(rule, "passed", trace, message=rule.passed, doubts=unsure)]


def failure_status(rule: Rule[Any], where: str, error: Exception) -> tuple[Status, str, str]:
    """Return the status, reason and remedy of a rule that could not answer."""
    if isinstance(error, NotApplicableError):
        return "not-applicable", error.reason, ""
    if isinstance(error, MissingDataError):
        return "cannot-tell", error.reason, error.remedy
    log.warning("rule %s failed on %s: %s", rule.id, where, in_one_line(error))
    return "failed", in_one_line(error), ""


def _worth_a_word(
    trace: Trace, rule: Rule[Any], answers: Iterable[Finding | RuledOut]
) -> list[RuleFinding]:
    """Leave out findings whose claim is too small to be worth a word."""
    found = [RuleFinding(rule=rule, finding=each) for each in answers if isinstance(each, Finding)]
    for each in found:
        claimed_ns(trace, each.finding.claims)  # claims that are no times fail here, alone
    return [each for each in found if each.severity(trace) is not None]


def _withheld(trace: Trace, rule: Rule[Any], damage: HealthItem) -> Outcome:
    """Return why a rule is not even asked: what it rests on is damaged beyond use."""
    remedy = damage.remedy if damage.nature == "gap" else ""
    return outcome_of(
        rule, "cannot-tell", trace, reason=damage.message or None, remedy=remedy or None
    )
