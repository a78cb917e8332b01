"""What is said of a rule's answer, the same whether it is on a recording or on a whole run."""

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
    answer: RuleResult | None = None,
    **more: Any,  # noqa: ANN401 (fields of `Outcome`)
) -> Outcome:
    """Return an outcome of a rule, on a recording or (None) on the run, with what it answered."""
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
        package=rule.package,
        **_answered(rule, answer),
        **more,
    )


def _answered(rule: Rule[Any], answer: RuleResult | None) -> dict[str, Any]:
    if answer is None:
        return {}
    fields: dict[str, Any] = {
        name: getattr(answer, name) for name in ("message", "evidence", "tables", "events")
    }
    fields["tables"] = tuple(table for table in answer.tables if table.rows)
    if isinstance(answer, Finding):
        fields |= {
            "fix": answer.fix or rule.fix,
            "locations": answer.locations,
            "effort": answer.effort or rule.effort,
            "risk": answer.risk or rule.risk,
            "fingerprint": fingerprint(rule, answer),
            "culprit": rule.culprit,
            "blamed": answer.blamed,
        }
    return fields


def fingerprint(rule: Rule[Any], finding: Finding) -> str:
    """Return what is the same in recordings of the same code: no number goes into it."""
    lines = (f"{source_name(each.path)}:{each.function}" for each in finding.locations[:1])
    text = "\n".join((rule.id, finding.subject, *lines))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def doubts_of(trace: Trace, rule: Rule[Any]) -> tuple[str, ...]:
    """Return what is wrong with that which a rule rests on."""
    return tuple(item.message for item in doubts(trace, rule.rests_on, "low"))
