"""Outcomes of the rules on one trace: one per rule, or per finding."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from stepscope.advice.outcome import doubts_of, outcome_of
from stepscope.advice.rule_finding import RuleFinding
from stepscope.advice.savings import ResolvedFinding, resolve_savings
from stepscope.analyses.health import doubts
from stepscope.analyses.settings.record_command import remedy_for
from stepscope.base.errors import MissingDataError, NotApplicableError, in_one_line
from stepscope.base.findings import Outcome, Status
from stepscope.base.urls import redacted
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, RuledOut, RuleResult
from stepscope.rules.shared.claimable_time import claimed_ns

log = logging.getLogger(__name__)


def rule_outcomes(trace: Trace, rules: Sequence[Rule[Any]]) -> list[Outcome]:
    """Return the outcomes of rules on one trace, with savings that share no time."""
    outcomes, findings = apply_rules(trace, rules)
    return outcomes + [finding.outcome for finding in findings]


def apply_rules(
    trace: Trace, rules: Sequence[Rule[Any]]
) -> tuple[list[Outcome], tuple[ResolvedFinding, ...]]:
    """Return the outcomes without a finding, and the findings with the time of each."""
    findings: list[RuleFinding] = []
    outcomes: list[Outcome] = []
    for rule in rules:
        if rule.check is not None:
            findings_of_rule, others = _apply(trace, rule)
            findings += findings_of_rule
            outcomes += others
    return outcomes, resolve_savings(trace, findings)


def findings_of(trace: Trace, rules: Sequence[Rule[Any]]) -> list[RuleFinding]:
    """Return the findings of rules on one trace that are worth reporting, without savings."""
    return [
        finding for rule in rules if rule.check is not None for finding in _apply(trace, rule)[0]
    ]


def _apply(trace: Trace, rule: Rule[Any]) -> tuple[list[RuleFinding], list[Outcome]]:
    if damage := doubts(trace, rule.rests_on, "withheld"):
        item = damage[0]
        remedy = item.remedy if item.nature == "gap" else ""
        return [], [_without_result(trace, rule, ("cannot-tell", item.message, remedy))]
    try:
        results = tuple(rule.check(trace, rule.options)) if rule.check else ()
        findings = _worth_reporting(trace, rule, results)
    except MemoryError:  # the file is read again with more
        raise
    except Exception as error:  # a rule's bug must not hide the other rules' findings
        where = redacted(trace.path) or trace.worker
        return [], [_without_result(trace, rule, failure_status(rule, where, error))]
    unsure = doubts_of(trace, rule)
    ruled_out = [
        outcome_of(rule, "rejected", trace, result, doubts=unsure)
        for result in results
        if isinstance(result, RuledOut)
    ]
    if findings or ruled_out:
        return findings, ruled_out
    return [], [outcome_of(rule, "passed", trace, message=rule.passed, doubts=unsure)]


def _without_result(trace: Trace, rule: Rule[Any], reason: tuple[Status, str, str]) -> Outcome:
    status, text, remedy = reason
    remedy = remedy_for(trace, remedy)
    return outcome_of(rule, status, trace, reason=text or None, remedy=remedy or None)


def failure_status(rule: Rule[Any], where: str, error: Exception) -> tuple[Status, str, str]:
    """Return status, reason and remedy of a rule that raised an error."""
    if isinstance(error, NotApplicableError):
        return "not-applicable", error.reason, ""
    if isinstance(error, MissingDataError):
        return "cannot-tell", error.reason, error.remedy
    log.warning("rule %s failed on %s: %s", rule.id, where, in_one_line(error))
    return "failed", in_one_line(error), ""


def _worth_reporting(
    trace: Trace, rule: Rule[Any], results: Iterable[RuleResult]
) -> list[RuleFinding]:
    """Return the findings whose claim is large enough to be reported."""
    findings = [
        RuleFinding(rule=rule, finding=result) for result in results if isinstance(result, Finding)
    ]
    for finding in findings:
        claimed_ns(trace, finding.finding.claims)  # invalid claims fail here, alone
    return [finding for finding in findings if finding.severity(trace) is not None]
