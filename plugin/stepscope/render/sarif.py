"""A report as SARIF 2.1.0, for code scanning.

Findings fail, ruled-out suspicions are informational, inconclusive rules are open; failed rules and
unreadable files are notifications. A finding is located at its source line where stacks were
recorded, else at the start of the trace file, since GitHub requires a location. The same finding in
several traces of a run is one result.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from stepscope.advice.settings import available_rules
from stepscope.base.findings import Outcome, Severity, Status
from stepscope.base.formatting import capitalized
from stepscope.base.plain_text import plain_lines
from stepscope.base.report import Report, RunReport
from stepscope.render import advice_phrases as labels
from stepscope.render import json, phrases, rule_page
from stepscope.render.advice_sections import AdviceItem
from stepscope.render.sarif_locations import LOG, Locations
from stepscope.rules import Rule

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
LEVELS: dict[Severity, str] = {"critical": "error", "warning": "warning", "info": "note"}
KINDS: dict[Status, str] = {
    "found": "fail",
    "suppressed": "fail",
    "rejected": "informational",
    "passed": "pass",
    "cannot-tell": "open",
    "not-applicable": "notApplicable",
}
BASELINE = {"new": "new", "worse": "updated", "unchanged": "unchanged"}
LINK = re.compile(r"(?<!\\)(\\*)\]\(")
FINGERPRINT = "stepscopeFinding/v1"
OUTCOME_FIELDS = (
    *("category", "severity", "confidence", "effort", "risk", "claim", "evidence", "tables"),
    *("events", "doubts", "reason", "remedy", "fix", "suppressed_by", "is_symptom"),
)
"""Fields of an outcome that become properties of its result."""
MERGED_FIELDS = (
    *("where", "ranks", "hosts", "group", "when", "steps"),
    *("related", "related_more", "job_saving"),
)
"""Fields of a merged outcome that do, too."""
TRACES_NAMED = 64
"""Most traces of a result; `occurrenceCount` is their number."""

Json = dict[str, Any]


def render(report: Report) -> str:
    """Return the report as a SARIF log with one run."""
    locations = Locations(report)
    rules = _rules(report)
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    results = [
        _result(run, same, locations, index)
        for run in report.runs
        for same in _grouped(run.outcomes)
    ]
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "stepscope",
                        **({"version": report.version} if report.version else {}),
                        "rules": rules,
                    }
                },
                "invocations": [
                    {
                        "executionSuccessful": bool(report.runs),
                        "toolExecutionNotifications": _notifications(report, locations, index),
                    }
                ],
                "originalUriBaseIds": {LOG: {"description": {"text": "The log directory."}}},
                "artifacts": locations.artifacts,
                "results": results,
                "columnKind": "utf16CodeUnits",
                "properties": {"runs": [_about(run) for run in report.runs]},
            }
        ],
    }
    return json.indented(_plain(log), indent=1)


def _plain(value: Any) -> Any:  # noqa: ANN401 (a JSON value is anything)
    """Return a value without control characters in its texts."""
    if isinstance(value, str):
        return plain_lines(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _text(*sentences: str) -> str:
    """Return a message with link syntax escaped (§3.11.6), also behind backslashes of a trace."""
    return LINK.sub(r"\1\1\\](", phrases.sentences(*sentences))


# Rules


def _rules(report: Report) -> list[Json]:
    """Return a reporting descriptor of every rule with an outcome."""
    outcomes = {outcome.rule: outcome for run in report.runs for outcome in run.outcomes}
    has_packages = any(outcome.package for outcome in outcomes.values())
    rules = {rule.id: rule for rule in available_rules(has_packages=has_packages)}
    return [
        _descriptor(rules[name]) if name in rules else _unknown(outcomes[name])
        for name in sorted(outcomes)
    ]


def _descriptor(rule: Rule[Any]) -> Json:
    return {
        "id": rule.id,
        "shortDescription": {"text": _text(rule.title)},
        "fullDescription": {"text": _text(rule.why)},
        "help": {"text": _text(rule.fix.summary), "markdown": rule_page.render(rule)},
        **({"helpUri": rule.links[0]} if rule.links else {}),
        "defaultConfiguration": {
            "level": "note" if rule.is_symptom else "warning",
            "enabled": rule.life_cycle != "preview",
        },
        "properties": {
            "tags": [rule.category, rule.life_cycle, *([rule.package] if rule.package else [])],
            "problem.severity": "recommendation" if rule.is_symptom else "warning",
            "since": rule.since,
            "origin": rule.origin,
            "effort": rule.effort,
            "risk": rule.risk,
            "aliases": rule.aliases,
        },
    }


def _unknown(outcome: Outcome) -> Json:
    """Return a descriptor of a rule that is not installed here."""
    return {
        "id": outcome.rule,
        "shortDescription": {"text": _text(outcome.title)},
        "fullDescription": {"text": _text(outcome.why or outcome.title)},
        "properties": {"tags": [outcome.category]},
    }


# Results


@dataclass(frozen=True, kw_only=True)
class SameOutcome:
    """A rule's outcome with the same fingerprint in one or more traces."""

    first: Outcome
    traces: tuple[str, ...]


def _grouped(outcomes: Iterable[Outcome]) -> Iterable[SameOutcome]:
    """Yield the outcomes of each result; failed rules have none."""
    groups: dict[tuple[str, str, str], list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.status in KINDS:
            key = (outcome.rule, outcome.status, outcome.fingerprint)
            groups.setdefault(key, []).append(outcome)
    for same in groups.values():
        yield SameOutcome(
            first=same[0], traces=tuple(dict.fromkeys(outcome.trace for outcome in same))
        )


def _result(
    run: RunReport, same: SameOutcome, locations: Locations, index: Mapping[str, int]
) -> Json:
    outcome = same.first
    kind = KINDS[outcome.status]
    result: Json = {
        "ruleId": outcome.rule,
        "ruleIndex": index[outcome.rule],
        "kind": kind,
        "level": LEVELS[outcome.severity or "info"] if kind == "fail" else "none",
        "message": {"text": _message(run, outcome)},
        "occurrenceCount": max(1, len(same.traces)),
        **locations.of(run, outcome),
        "properties": _properties(run, same),
    }
    if outcome.fingerprint:
        result["partialFingerprints"] = {FINGERPRINT: outcome.fingerprint}
    if outcome.claim is not None:
        result["rank"] = round(min(100.0, max(0.0, outcome.claim.decisive.share * 100)), 2)
    if outcome.baseline:
        result["baselineState"] = BASELINE[outcome.baseline]
    if outcome.status == "suppressed":
        result["suppressions"] = [_suppression(outcome)]
    return result


def _suppression(outcome: Outcome) -> Json:
    kind = "inSource" if outcome.suppressed_by == "recording" else "external"
    return {"kind": kind, "status": "accepted", "justification": labels.suppression(outcome)}


def _message(run: RunReport, outcome: Outcome) -> str:
    """Return a result's message; its first sentence is the rule's title."""
    per = "per step" if any(worker.step.count for worker in run.workers) else "in total"
    if outcome.status in ("found", "suppressed"):
        saving = labels.sentence(labels.savings(AdviceItem(outcome=outcome), per))
        fix = f"Fix: {outcome.fix.summary}" if outcome.fix else ""
        return _text(outcome.title, saving, outcome.message, fix)
    if outcome.status == "rejected":
        return _text(f"{labels.RULED_OUT}: {outcome.title}", outcome.message)
    if outcome.status == "passed":
        return _text(outcome.message or f"Checked, not found: {outcome.title}")
    remedy = f"To record it: {outcome.remedy}" if outcome.remedy else ""
    return _text(capitalized(outcome.reason or outcome.title), remedy)


def _properties(run: RunReport, same: SameOutcome) -> Json:
    workers = {worker.trace: worker for worker in run.workers}
    named = [workers[trace] for trace in same.traces if trace in workers]
    fields = {name: getattr(same.first, name) for name in OUTCOME_FIELDS}
    return {
        "tags": [same.first.category, *labels.marks(same.first)],
        "run": run.name,
        "recordings": [
            {"name": worker.name, "span": worker.span, "rank": worker.rank, "file": worker.file}
            for worker in named[:TRACES_NAMED]
        ],
        **_merged_fields(run, same.first),
        **{
            name: msgspec.to_builtins(value)
            for name, value in fields.items()
            if value not in (None, "", (), False)
        },
    }


def _merged_fields(run: RunReport, outcome: Outcome) -> Json:
    """Return the fields of a finding that concern all of its traces."""
    if outcome.status != "found":
        return {}
    merged = next((m for m in run.merged if m.outcome.rule == outcome.rule), None)
    fields = {name: getattr(merged, name) for name in MERGED_FIELDS} if merged else {}
    return {
        name: msgspec.to_builtins(value)
        for name, value in fields.items()
        if value not in (None, "", (), 0)
    }


# Notifications, and properties of the whole log


def _notifications(report: Report, locations: Locations, index: Mapping[str, int]) -> list[Json]:
    """Return failed rules, unreadable files, and notes of the report."""
    failed = {
        (run.name, outcome.rule, outcome.reason): {
            "level": "error",
            "message": {"text": _text(f"{outcome.rule} failed: {outcome.reason}")},
            "associatedRule": {"id": outcome.rule, "index": index[outcome.rule]},
            "locations": locations.of(run, outcome)["locations"],
        }
        for run in report.runs
        for outcome in run.outcomes
        if outcome.status == "failed"
    }
    unread = [
        {
            "level": "error",
            "message": {"text": _text(f"Not read: {problem.message}", problem.remedy)},
            "locations": [locations.unread(problem.path)],
        }
        for problem in report.problems
    ]
    notes = [{"level": "note", "message": {"text": _text(note)}} for note in report.notes]
    return [*failed.values(), *unread, *notes]


def _about(run: RunReport) -> Json:
    """Return a run's verdict and its traces' time budgets."""
    return {
        "name": run.name,
        "verdict": run.verdict or (run.workers[0].verdict if run.workers else ""),
        "job": msgspec.to_builtins(run.job),
        "recordings": [
            {
                "name": worker.name,
                "span": worker.span,
                "rank": worker.rank,
                "file": worker.file,
                "verdict": worker.verdict,
                "standing": msgspec.to_builtins(worker.standing),
                "budget": msgspec.to_builtins(worker.budget),
                "health": msgspec.to_builtins(worker.health),
            }
            for worker in run.workers
        ],
    }
