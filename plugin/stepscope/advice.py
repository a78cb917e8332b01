"""Run the rules over recordings: one outcome a rule (or a finding), and savings that add up.

Rules claim time as intervals. The resolver goes through the claims by the rules' priority and
gives each nanosecond to the first that asks, so that the net savings of a recording never sum to
more than its steps.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from stepscope import intervals
from stepscope.addresses import shown
from stepscope.analyses.devices.activity import main_device
from stepscope.analyses.devices.metrics import device_metrics
from stepscope.analyses.duplicates import fingerprint, with_duplicates
from stepscope.analyses.health import PARTS, damaged_parts, doubts, health
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.analyses.producer import producer
from stepscope.analyses.record_next import profile_call, record_next
from stepscope.analyses.steps.breakdown import step_breakdown, whole_parts
from stepscope.analyses.steps.verdict import verdict
from stepscope.analyses.steps.window import Window, window
from stepscope.errors import MissingDataError, UnreadableError, in_one_line, unforeseen
from stepscope.ingest import is_compiled
from stepscope.intervals import Intervals
from stepscope.quantities import duration
from stepscope.report import (
    ClaimReport,
    Confidence,
    FileHealth,
    HealthItem,
    Outcome,
    RunReport,
    Severity,
    Status,
    StepReport,
    WorkerReport,
)
from stepscope.rules import Finding, Rule, all_rules, severity_of
from stepscope.trace import Run, Trace

log = logging.getLogger(__name__)

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
STEPS_FOR_HIGH_CONFIDENCE = 3
STATUSES: tuple[Status, ...] = ("found", "failed", "passed", "not-applicable", "suppressed")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Found:
    rule: Rule[Any]
    finding: Finding


def advise(run: Run, rules: Sequence[Rule[Any]] | None = None) -> RunReport:
    """Run the rules (all of them by default) over every recording of a run."""
    chosen = all_rules() if rules is None else tuple(rules)
    return merged(run.name, [_advice(trace, chosen) for trace in run.workers], chosen)


def advise_each(run: Run) -> tuple[RunReport, tuple[UnreadableError, ...]]:
    """Do the same, but let a recording on which an analysis fails cost only itself."""
    reports: list[RunReport] = []
    problems: list[UnreadableError] = []
    chosen = all_rules()
    for trace in run.workers:
        try:
            reports.append(_advice(trace, chosen))
        except Exception as error:  # analyses run here, on whatever the file holds
            problems.append(unforeseen(trace.path or trace.worker, error))
    return merged(run.name, reports, chosen), tuple(problems)


def merged(
    name: str, reports: Iterable[RunReport], rules: Sequence[Rule[Any]] | None = None
) -> RunReport:
    """Return the reports of a run's recordings, made one by one, as the run's."""
    chosen = all_rules() if rules is None else rules
    reports = tuple(reports)
    outcomes = (outcome for report in reports for outcome in report.outcomes)
    return RunReport(
        name=name,
        workers=with_duplicates(worker for report in reports for worker in report.workers),
        outcomes=tuple(sorted(outcomes, key=lambda outcome: _order(outcome, chosen))),
    )


def _advice(trace: Trace, rules: Sequence[Rule[Any]]) -> RunReport:
    outcomes = tuple(outcomes_of(trace, rules))
    return RunReport(name=trace.worker, workers=(worker_report(trace, rules),), outcomes=outcomes)


def worker_report(trace: Trace, rules: Sequence[Rule[Any]] | None = None) -> WorkerReport:
    """Return what the analyses say of one recording, without advice.

    Its health names those of the rules (of all, by default) that rest on what is damaged.
    """
    steps = step_breakdown(trace)
    return WorkerReport(
        trace=trace.id,
        name=trace.worker,
        span=trace.span,
        rank=trace.rank,
        events=len(trace),
        dialect=trace.dialect.name,
        synthetic=trace.is_synthetic,
        verdict=verdict(trace),
        step=StepReport(
            count=steps.step_count,
            mean_ns=steps.mean_ns,
            standard_deviation_ns=steps.standard_deviation_ns,
            breakdown_ns=steps.mean_parts_ns,
        ),
        devices=device_metrics(trace),
        idle_ns=idle_per_step(trace),
        health=recorded_health(trace, all_rules() if rules is None else rules),
        inflated_bytes=trace.columns.inflated_bytes,
        reader=_reader(),
        producer=producer(trace).name,
        fingerprint=fingerprint(trace),
        record_next=record_next(trace),
        profile_call=_profile_call(trace),
    )


def file_health(trace: Trace, *, run: str, file_bytes: int) -> FileHealth:
    """Return what one file is worth, without asking more of it than that."""
    return FileHealth(
        path=trace.path,
        run=run,
        name=trace.worker,
        span=trace.span,
        rank=trace.rank,
        file_bytes=file_bytes,
        inflated_bytes=trace.columns.inflated_bytes,
        events=len(trace),
        reader=_reader(),
        dialect=trace.dialect.name,
        producer=producer(trace).name,
        synthetic=trace.is_synthetic,
        fingerprint=fingerprint(trace),
        health=recorded_health(trace, all_rules()),
        record_next=record_next(trace),
        profile_call=_profile_call(trace),
    )


def _reader() -> str:
    return "compiled scanner" if is_compiled() else "Python reader"


def _profile_call(trace: Trace) -> str:
    return profile_call(trace) if record_next(trace) else ""


def recorded_health(trace: Trace, rules: Sequence[Rule[Any]]) -> tuple[HealthItem, ...]:
    """Return a recording's health, with the rules among that which each item makes unreliable."""
    return tuple(
        msgspec.structs.replace(item, affects=(*_ids_resting_on(item, rules), *item.affects))
        for item in health(trace)
    )


def _ids_resting_on(item: HealthItem, rules: Sequence[Rule[Any]]) -> tuple[str, ...]:
    if item.effect == "none":
        return ()
    damaged = damaged_parts().get(item.kind, PARTS)
    return tuple(rule.id for rule in rules if rule.rests_on & damaged)


def idle_per_step(trace: Trace) -> dict[str, int]:
    """Return the busiest device's idle time by cause, per step; the causes sum to its idle time."""
    device = main_device(trace)
    if device is None:
        return {}
    idle = idle_ledger(trace)[device.device].idle_ns
    total = window(trace).per_step(sum(idle.values()))
    return dict(zip(idle, whole_parts(np.array(list(idle.values())), total), strict=True))


def outcomes_of(trace: Trace, rules: Sequence[Rule[Any]]) -> list[Outcome]:
    """Return what each rule says of one recording, with savings resolved between them."""
    found: list[_Found] = []
    outcomes: list[Outcome] = []
    for rule in rules:
        if damage := doubts(trace, rule.rests_on, "withheld"):
            outcomes.append(_withheld(trace, rule, damage[0]))
            continue
        try:
            findings = tuple(_worth_a_word(trace, rule, rule.check(trace, rule.options)))
        except MissingDataError as missing:
            outcomes.append(
                _outcome(
                    trace, rule, "not-applicable", reason=missing.reason, remedy=missing.remedy
                )
            )
        except Exception as error:  # a rule's bug must not hide the other rules' findings
            where = shown(trace.path) or trace.worker
            log.warning("rule %s failed on %s: %s", rule.id, where, in_one_line(error))
            outcomes.append(_outcome(trace, rule, "failed", reason=in_one_line(error)))
        else:
            found += findings
            if not findings:
                outcomes.append(_outcome(trace, rule, "passed"))
    return outcomes + _resolved(trace, found)


def _withheld(trace: Trace, rule: Rule[Any], damage: HealthItem) -> Outcome:
    """Return why a rule is not even asked: what it rests on is damaged beyond use."""
    remedy = damage.remedy if damage.nature == "gap" else ""
    return _outcome(trace, rule, "not-applicable", reason=damage.message, remedy=remedy)


def _doubts(trace: Trace, rule: Rule[Any]) -> tuple[str, ...]:
    """Return what is wrong with that which a rule rests on."""
    return tuple(item.message for item in doubts(trace, rule.rests_on, "low"))


def _worth_a_word(trace: Trace, rule: Rule[Any], findings: Iterable[Finding]) -> Iterable[_Found]:
    """Leave out findings whose claim is too small to be worth a word."""
    for finding in findings:
        found = _Found(rule=rule, finding=finding)
        if _severity(trace, found) is not None:
            yield found


def _severity(trace: Trace, found: _Found) -> Severity | None:
    finding = found.finding
    severity = finding.severity
    if severity is None and finding.claim is None:
        severity = "info"
    elif severity is None and finding.claim is not None:
        claimed_ns = intervals.duration_ns(_within(trace, finding.claim.intervals))
        severity = severity_of(_share(window(trace), claimed_ns))
    is_doubtful = severity == "critical" and _confidence(trace, found) == "low"
    return "warning" if is_doubtful else severity


def _confidence(trace: Trace, found: _Found) -> Confidence:
    """Return how sure a finding is.

    Low where that which it rests on is damaged: what would acquit may be missing. Never high where
    fewer than three steps were recorded.
    """
    finding = found.finding
    if _doubts(trace, found.rule):
        return "low"
    if finding.confidence == "high" and window(trace).step_count < STEPS_FOR_HIGH_CONFIDENCE:
        return "medium"
    return finding.confidence


def _share(within: Window, total_ns: float) -> float:
    return min(1.0, total_ns / within.reference_ns)


def _outcome(
    trace: Trace, rule: Rule[Any], status: Status, *, reason: str = "", remedy: str = ""
) -> Outcome:
    return Outcome(
        rule=rule.id,
        title=rule.title,
        category=rule.category,
        status=status,
        worker=trace.worker,
        span=trace.span,
        trace=trace.id,
        why=rule.why,
        reason=reason or None,
        remedy=remedy or None,
        links=rule.links,
        doubts=_doubts(trace, rule) if status == "passed" else (),
    )


def _resolved(trace: Trace, found: list[_Found]) -> list[Outcome]:
    """Give each claimed nanosecond to one finding, the lowest priority number first."""
    taken: list[tuple[str, Intervals]] = []
    outcomes = []
    for each in sorted(found, key=lambda item: (item.rule.priority, item.rule.id)):
        claim = None
        if each.finding.claim is not None:
            claim = _claim_report(trace, each.finding, taken)
            taken.append((each.rule.id, _within(trace, each.finding.claim.intervals)))
        outcomes.append(_found_outcome(trace, each, claim))
    return outcomes


def _within(trace: Trace, times: Intervals) -> Intervals:
    span = window(trace)
    return intervals.clip(times, span.start_ns, span.device_end_ns)


def _claim_report(
    trace: Trace, finding: Finding, taken: list[tuple[str, Intervals]]
) -> ClaimReport:
    claim, span = finding.claim, window(trace)
    if claim is None:
        raise ValueError(finding)
    mine = _within(trace, claim.intervals)
    net = intervals.difference(mine, intervals.merged(*(times for _, times in taken)))
    gross_ns, net_ns = intervals.duration_ns(mine), intervals.duration_ns(net)
    sure = net if claim.low_intervals is None else intervals.intersection(net, claim.low_intervals)
    low_ns = claim.low * intervals.duration_ns(sure)
    method = claim.method
    if net_ns < gross_ns:
        shared = duration(span.per_step(gross_ns - net_ns))
        takers = {rule: None for rule, times in taken if len(intervals.intersection(mine, times))}
        method = f"{method} {shared} of it is counted under {', '.join(takers)}.".strip()
    high_ns = claim.high * net_ns
    return ClaimReport(
        gross_ns=span.per_step(claim.high * gross_ns),
        net_low_ns=span.per_step(min(low_ns, high_ns)),
        net_high_ns=span.per_step(high_ns),
        net_share=_share(span, high_ns),
        method=method,
    )


def _found_outcome(trace: Trace, found: _Found, claim: ClaimReport | None) -> Outcome:
    rule, finding = found.rule, found.finding
    return Outcome(
        rule=rule.id,
        title=rule.title,
        category=rule.category,
        status="found",
        worker=trace.worker,
        span=trace.span,
        trace=trace.id,
        severity=_severity(trace, found),
        confidence=_confidence(trace, found),
        claim=claim,
        message=finding.message,
        why=rule.why,
        evidence=finding.evidence,
        events=finding.events,
        fix=finding.fix or rule.fix,
        links=rule.links,
        doubts=_doubts(trace, rule),
    )


def _order(
    outcome: Outcome, rules: Sequence[Rule[Any]]
) -> tuple[int, bool, bool, int, int, str, str, str]:
    """Found first: causes, then what others' savings cover already, then symptoms; by severity."""
    symptoms = {rule.id for rule in rules if rule.is_symptom}
    is_covered = outcome.claim is not None and not outcome.claim.net_high_ns
    return (
        STATUSES.index(outcome.status),
        outcome.rule in symptoms,
        is_covered,
        SEVERITIES.index(outcome.severity) if outcome.severity else len(SEVERITIES),
        -(outcome.claim.net_high_ns if outcome.claim else 0),
        outcome.rule,
        outcome.worker,
        outcome.span,
    )
