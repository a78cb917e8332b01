"""A report as SARIF 2.1.0, for code scanning.

What is found fails; what was rejected is informational, since it was looked at and is no problem;
what cannot be told is open; a defect of a rule, and a file that could not be read, are
notifications. A finding stands at the source line that it is about, where stacks were recorded,
else at the beginning of the trace's file: GitHub takes none without a place. The same finding in
several recordings of a run is one result.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from stepscope.advice.settings import available_rules
from stepscope.base.findings import Outcome, Severity, Status
from stepscope.base.report import Report, RunReport
from stepscope.render import advice_phrases as told
from stepscope.render import phrases, rule_page
from stepscope.render.advice_sections import Told
from stepscope.render.sarif_locations import LOG, Places
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
FINGERPRINT = "stepscopeFinding/v1"
TOLD = (
    *("category", "severity", "confidence", "effort", "risk", "claim", "evidence", "tables"),
    *("events", "doubts", "reason", "remedy", "fix", "suppressed_by", "is_symptom"),
)
"""Fields of an outcome that stand among a result's properties as they are."""
OF_JOB = (
    *("where", "ranks", "hosts", "group", "when", "steps"),
    *("related", "related_more", "job_saving"),
)
"""Fields of a merged outcome that stand there too."""
RECORDINGS_NAMED = 64
"""Of a result, at most; `occurrenceCount` says how many there are."""

Json = dict[str, Any]


def render(report: Report) -> str:
    """Return the report as a SARIF log with one run."""
    places = Places(report)
    rules = _rules(report)
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    results = [
        _result(run, same, places, index) for run in report.runs for same in _alike(run.outcomes)
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
                        "toolExecutionNotifications": _notifications(report, places, index),
                    }
                ],
                "originalUriBaseIds": {LOG: {"description": {"text": "The log directory."}}},
                "artifacts": places.artifacts,
                "results": results,
                "columnKind": "utf16CodeUnits",
                "properties": {"runs": [_about(run) for run in report.runs]},
            }
        ],
    }
    return msgspec.json.format(msgspec.json.encode(_plain(log)), indent=1).decode() + "\n"


def _plain(value: Any) -> Any:  # noqa: ANN401 (a JSON value is anything)
    """Return a value without characters that act on a terminal, in any of its texts."""
    if isinstance(value, str):
        return phrases.plain(value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _text(*sentences: str) -> str:
    """Return a message: what would be read as a link within it is escaped (§3.11.6)."""
    return phrases.sentences(*sentences).replace("](", "\\](")


# Rules


def _rules(report: Report) -> list[Json]:
    """Return every rule that said something, as a reporting descriptor."""
    outcomes = {each.rule: each for run in report.runs for each in run.outcomes}
    has_packages = any(each.package for each in outcomes.values())
    known = {rule.id: rule for rule in available_rules(has_packages=has_packages)}
    return [
        _descriptor(known[name]) if name in known else _unknown(outcomes[name])
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
    """Return what an outcome tells of a rule that is not installed here."""
    return {
        "id": outcome.rule,
        "shortDescription": {"text": _text(outcome.title)},
        "fullDescription": {"text": _text(outcome.why or outcome.title)},
        "properties": {"tags": [outcome.category]},
    }


# Results


@dataclass(frozen=True, kw_only=True)
class Alike:
    """What a rule said in the same words, but for numbers, of one or more recordings."""

    first: Outcome
    traces: tuple[str, ...]


def _alike(outcomes: Iterable[Outcome]) -> Iterable[Alike]:
    """Yield what goes by one result; failures are no results."""
    groups: dict[tuple[str, str, str], list[Outcome]] = {}
    for each in outcomes:
        if each.status in KINDS:
            groups.setdefault((each.rule, each.status, each.fingerprint), []).append(each)
    for same in groups.values():
        yield Alike(first=same[0], traces=tuple(dict.fromkeys(each.trace for each in same)))


def _result(run: RunReport, same: Alike, places: Places, index: Mapping[str, int]) -> Json:
    outcome = same.first
    kind = KINDS[outcome.status]
    result: Json = {
        "ruleId": outcome.rule,
        "ruleIndex": index[outcome.rule],
        "kind": kind,
        "level": LEVELS[outcome.severity or "info"] if kind == "fail" else "none",
        "message": {"text": _message(run, outcome)},
        "occurrenceCount": max(1, len(same.traces)),
        **places.of(run, outcome),
        "properties": _properties(run, same),
    }
    if outcome.fingerprint:
        result["partialFingerprints"] = {FINGERPRINT: outcome.fingerprint}
    if outcome.claim is not None:
        result["rank"] = round(min(100.0, max(0.0, outcome.claim.net_share * 100)), 2)
    if outcome.baseline:
        result["baselineState"] = BASELINE[outcome.baseline]
    if outcome.status == "suppressed":
        result["suppressions"] = [_suppression(outcome)]
    return result


def _suppression(outcome: Outcome) -> Json:
    kind = "inSource" if outcome.suppressed_by == "recording" else "external"
    return {"kind": kind, "status": "accepted", "justification": told.aside(outcome)}


def _message(run: RunReport, outcome: Outcome) -> str:
    """Return what is said of it, with what is wrong in the first sentence."""
    per = "a step" if any(worker.step.count for worker in run.workers) else "in all"
    if outcome.status in ("found", "suppressed"):
        saving = told.sentence(told.savings(Told(outcome=outcome), per))
        fix = f"Fix: {outcome.fix.summary}" if outcome.fix else ""
        return _text(outcome.title, saving, outcome.message, fix)
    if outcome.status == "rejected":
        return _text(f"{told.REJECTED}: {outcome.title}", outcome.message)
    if outcome.status == "passed":
        return _text(f"Looked for, and not found: {outcome.title}")
    remedy = f"To record it: {outcome.remedy}" if outcome.remedy else ""
    return _text(phrases.capitalised(outcome.reason or outcome.title), remedy)


def _properties(run: RunReport, same: Alike) -> Json:
    recordings = {worker.trace: worker for worker in run.workers}
    named = [recordings[trace] for trace in same.traces if trace in recordings]
    fields = {name: getattr(same.first, name) for name in TOLD}
    return {
        "tags": [same.first.category, *told.marks(same.first)],
        "run": run.name,
        "recordings": [
            {"name": each.name, "span": each.span, "rank": each.rank, "file": each.file}
            for each in named[:RECORDINGS_NAMED]
        ],
        **_of_job(run, same.first),
        **{
            name: msgspec.to_builtins(value)
            for name, value in fields.items()
            if value not in (None, "", (), False)
        },
    }


def _of_job(run: RunReport, outcome: Outcome) -> Json:
    """Return what is told of a finding in all of its recordings together."""
    if outcome.status != "found":
        return {}
    mine = next((each for each in run.merged if each.outcome.rule == outcome.rule), None)
    fields = {name: getattr(mine, name) for name in OF_JOB} if mine else {}
    return {
        name: msgspec.to_builtins(value)
        for name, value in fields.items()
        if value not in (None, "", (), 0)
    }


# What else there is to say


def _notifications(report: Report, places: Places, index: Mapping[str, int]) -> list[Json]:
    """Return the rules that failed, the files that were not read, and what is odd about both."""
    failed = {
        (run.name, outcome.rule, outcome.reason): {
            "level": "error",
            "message": {"text": _text(f"{outcome.rule} failed: {outcome.reason}")},
            "associatedRule": {"id": outcome.rule, "index": index[outcome.rule]},
            "locations": places.of(run, outcome)["locations"],
        }
        for run in report.runs
        for outcome in run.outcomes
        if outcome.status == "failed"
    }
    unread = [
        {
            "level": "error",
            "message": {"text": _text(f"Not read: {problem.message}", problem.remedy)},
            "locations": [places.elsewhere(problem.path)],
        }
        for problem in report.problems
    ]
    notes = [{"level": "note", "message": {"text": _text(note)}} for note in report.notes]
    return [*failed.values(), *unread, *notes]


def _about(run: RunReport) -> Json:
    """Return what the run's verdict is, and where its recordings' time goes."""
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
