"""Outcomes of a rule's results, on a trace or on a whole run."""

import hashlib
from typing import Any

from stepscope.analyses.health import doubts
from stepscope.base.findings import Outcome, Status
from stepscope.base.urls import source_name
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, RuleResult


def outcome_of(
    rule: Rule[Any],
    status: Status,
    trace: Trace | None,
    result: RuleResult | None = None,
    **more: Any,  # noqa: ANN401 (fields of `Outcome`)
) -> Outcome:
    """Return an outcome of a rule, with its result if any; trace None: of the run."""
    return Outcome(
        rule=rule.id,
        title=rule.title,
        category=rule.category,
        status=status,
        worker=trace.worker if trace is not None else "",
        span=trace.span if trace is not None else "",
        trace=trace.id if trace is not None else "",
        why=rule.why,
        links=rule.links,
        life_cycle=rule.life_cycle,
        is_symptom=rule.is_symptom,
        reports_missing_data=rule.reports_missing_data,
        package=rule.package,
        **_result_fields(rule, result),
        **more,
    )


def _result_fields(rule: Rule[Any], result: RuleResult | None) -> dict[str, Any]:
    if result is None:
        return {}
    fields: dict[str, Any] = {
        "message": result.message,
        "evidence": result.evidence,
        "tables": tuple(table for table in result.tables if table.rows),
        "events": result.events,
    }
    if isinstance(result, Finding):
        fields |= {
            "fix": result.fix or rule.fix,
            "locations": result.locations,
            "effort": result.effort or rule.effort,
            "risk": result.risk or rule.risk,
            "fingerprint": fingerprint(rule, result),
            "culprit": rule.culprit,
            "blamed": result.blamed,
        }
    return fields


def fingerprint(rule: Rule[Any], finding: Finding) -> str:
    """Return a hash without numbers, which is the same in all traces of the same code."""
    lines = (f"{source_name(line.path)}:{line.function}" for line in finding.locations[:1])
    text = "\n".join((rule.id, finding.subject, *lines))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def doubts_of(trace: Trace, rule: Rule[Any]) -> tuple[str, ...]:
    """Return the damage to the parts of the trace that a rule rests on."""
    return tuple(item.message for item in doubts(trace, rule.rests_on, "low"))
