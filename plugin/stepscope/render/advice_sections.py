"""The sections of a run's advice, in the same order in every form.

Of a run with several traces each finding is shown once (`RunReport.merged`); of a single trace all
findings are. Outcomes of rules over the whole run belong to both.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stepscope.advice.finding_extent import EVERY_STEP, ranks_of, steps_of
from stepscope.advice.trace_report import undamaged
from stepscope.base.findings import Outcome, Severity, Status
from stepscope.base.formatting import count
from stepscope.base.plain_text import plain
from stepscope.base.report import (
    HealthItem,
    JobSaving,
    MergedOutcome,
    RelatedFinding,
    RunReport,
    WorkerReport,
)
from stepscope.render.phrases import doubt, sentences

ALLOWED_ELSEWHERE: dict[Status, frozenset[Status]] = {
    "passed": frozenset({"passed", "cannot-tell", "not-applicable"}),
    "not-applicable": frozenset({"not-applicable"}),
}
"""Statuses of a rule on other traces with which it is still listed under this one."""
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
GROUPED: tuple[Status, ...] = ("cannot-tell", "failed", "not-applicable")
"""Statuses that are grouped by reason."""
TRACES_SHOWN = 8
"""Of more traces, only the representatives are shown."""


@dataclass(frozen=True, kw_only=True)
class AdviceItem:
    """An outcome with its extent: traces, ranks and steps."""

    outcome: Outcome
    where: str = ""
    merged: MergedOutcome | None = None
    also: tuple[Outcome, ...] = ()
    """Further findings of the rule in the same trace."""
    when: str = ""
    """Its steps; empty where they are unknown, or all."""
    related: tuple[RelatedFinding, ...] = ()
    job_saving: JobSaving | None = None
    """Of all findings of the rule; only with the first of them."""

    @property
    def is_covered(self) -> bool:
        """Check whether other findings claim all of its time: it is a related symptom."""
        claim = self.outcome.claim
        return claim is not None and claim.is_covered


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Reason of an inconclusive, failed or inapplicable result, with the code that records more."""

    rules: tuple[str, ...]
    text: str
    remedy: str
    where: str


@dataclass(frozen=True, kw_only=True)
class Passed:
    """Rules that found nothing, and the damage (may be empty) that puts that in doubt."""

    rules: tuple[str, ...]
    why: str

    @property
    def label(self) -> str:
        """The group's heading."""
        return f"Passed{', with doubts' if self.why else ''} ({len(self.rules)})"


@dataclass(frozen=True, kw_only=True)
class StatusNote:
    """The overall status of traces without serious findings."""

    state: str
    message: str
    where: str


@dataclass(frozen=True, kw_only=True)
class HealthNote:
    """A defect of trace files, once for all that have it."""

    item: HealthItem
    where: str


@dataclass(frozen=True, kw_only=True)
class AdviceSections:
    """A run's advice by section."""

    run: RunReport
    lead: WorkerReport | None
    """The trace whose time budget is shown; None where there is no trace."""
    findings: tuple[AdviceItem, ...]
    ruled_out: tuple[AdviceItem, ...]
    suppressed: tuple[AdviceItem, ...]
    passed: tuple[Passed, ...]
    reasons: dict[Status, tuple[Reason, ...]]
    """By status of `GROUPED`; empty groups are left out."""
    status_notes: tuple[StatusNote, ...]
    health: tuple[HealthNote, ...]

    @property
    def is_single(self) -> bool:
        """Check whether the run has one trace."""
        return len(self.run.workers) == 1

    @property
    def shown(self) -> tuple[WorkerReport, ...]:
        """Traces to list: the representatives of many, else the longest steps first."""
        if len(self.run.workers) > TRACES_SHOWN and self.run.representatives:
            workers = {worker.trace: worker for worker in self.run.workers}
            traces = (trace.trace for trace in self.run.representatives)
            return tuple(workers[trace] for trace in traces if trace in workers)
        ordered = sorted(undamaged(self.run.workers), key=lambda worker: -worker.step.mean_ns)
        return tuple(ordered[:TRACES_SHOWN])

    @property
    def per(self) -> str:
        """The unit of savings."""
        return "per step" if self.lead and self.lead.step.count else "in total"


def advice_sections(run: RunReport) -> AdviceSections:
    """Return a run's advice by section."""
    statuses: dict[str, set[Status]] = {}
    for outcome in run.outcomes:
        statuses.setdefault(outcome.rule, set()).add(outcome.status)
    listed = [
        outcome
        for outcome in run.outcomes
        if statuses[outcome.rule] <= ALLOWED_ELSEWHERE.get(outcome.status, statuses[outcome.rule])
    ]
    return AdviceSections(
        run=run,
        lead=_lead(run),
        findings=tuple(_findings(run)),
        ruled_out=tuple(_once(run, "rejected")),
        suppressed=tuple(_once(run, "suppressed")),
        passed=_passed(outcome for outcome in listed if outcome.status == "passed"),
        reasons=_reasons(run, listed),
        status_notes=tuple(_status_notes(run)),
        health=tuple(_health_notes(run)),
    )


def _lead(run: RunReport) -> WorkerReport | None:
    """Return the trace to show: of many ranks the slowest by its compute, else the longest step."""
    slowest = {trace.trace for trace in run.representatives if trace.kind == "slowest"}
    if len(run.workers) > TRACES_SHOWN and slowest:
        return next((worker for worker in run.workers if worker.trace in slowest), None)
    return max(undamaged(run.workers), key=lambda worker: worker.step.mean_ns, default=None)


def _findings(run: RunReport) -> Iterable[AdviceItem]:
    findings = [outcome for outcome in run.outcomes if outcome.status == "found"]
    if len(run.workers) <= 1:
        yield from _findings_of_one(run, findings)
        return
    by_trace: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in findings:
        by_trace.setdefault((outcome.rule, outcome.trace), []).append(outcome)
    for merged in run.merged:
        first = merged.outcome
        yield AdviceItem(
            outcome=first,
            where=plain(merged.where),
            merged=merged,
            also=tuple(other for other in by_trace[first.rule, first.trace] if other != first),
            when=plain(merged.when),
            related=merged.related,
            job_saving=merged.job_saving,
        )


def _findings_of_one(run: RunReport, findings: Iterable[Outcome]) -> Iterable[AdviceItem]:
    """Yield the findings of a single trace."""
    savings = {merged.outcome.rule: merged.job_saving for merged in run.merged}
    workers = {worker.trace: worker for worker in run.workers}
    for outcome in findings:
        when = steps_of([outcome], workers).when
        yield AdviceItem(
            outcome=outcome,
            when="" if when == EVERY_STEP else when,
            job_saving=savings.pop(outcome.rule, None),
        )


def _once(run: RunReport, status: Status) -> Iterable[AdviceItem]:
    """Yield outcomes that several traces share once, with the number of traces."""
    by_key: dict[tuple[str, str, int], list[Outcome]] = {}
    counts: dict[tuple[str, str], int] = {}
    for outcome in run.outcomes:
        if outcome.status == status:
            nth = counts.get((outcome.rule, outcome.trace), 0)
            counts[outcome.rule, outcome.trace] = nth + 1
            by_key.setdefault((outcome.rule, outcome.fingerprint, nth), []).append(outcome)
    for outcomes in by_key.values():
        yield AdviceItem(outcome=outcomes[0], where=_trace_count(run, outcomes))


def _trace_count(run: RunReport, outcomes: Sequence[Outcome]) -> str:
    """Return the number of traces of these outcomes; empty where it is all of them."""
    traces = {outcome.trace for outcome in outcomes if outcome.trace}
    return _some_of(len(traces), run) if traces else ""


def _some_of(number: int, run: RunReport) -> str:
    total = len(run.workers)
    return f"{number} of {count(total, 'trace')}" if number < total else ""


def _passed(outcomes: Iterable[Outcome]) -> tuple[Passed, ...]:
    """Return the rules that found nothing, those without doubts first."""
    doubts: dict[str, str] = {}
    for outcome in outcomes:
        doubts[outcome.rule] = doubts.get(outcome.rule) or doubt(outcome)
    rules: dict[str, list[str]] = {"": []}
    for rule, why in doubts.items():
        rules.setdefault(why, []).append(rule)
    return tuple(
        Passed(rules=tuple(sorted(names)), why=why) for why, names in rules.items() if names
    )


def _reasons(run: RunReport, outcomes: Iterable[Outcome]) -> dict[Status, tuple[Reason, ...]]:
    """Return each reason once with its rules; the reason of most rules first."""
    by_rule: dict[tuple[Status, str], list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.status in GROUPED:
            by_rule.setdefault((outcome.status, outcome.rule), []).append(outcome)
    groups: dict[Status, dict[tuple[str, str, str], list[str]]] = {}
    for (status, rule), of_rule in by_rule.items():
        first = of_rule[0]
        key = (first.reason or "", first.remedy or "", _trace_count(run, of_rule))
        groups.setdefault(status, {}).setdefault(key, []).append(rule)
    return {
        status: tuple(
            Reason(rules=tuple(rules), text=sentences(text), remedy=plain(remedy), where=where)
            for (text, remedy, where), rules in sorted(
                groups[status].items(), key=lambda group: -len(group[1])
            )
        )
        for status in GROUPED
        if status in groups
    }


def _status_notes(run: RunReport) -> Iterable[StatusNote]:
    """Yield the status of traces without serious findings, with the slowest trace's message.

    In a run with a serious finding no trace is called healthy.
    """
    is_serious = any(
        outcome.status == "found" and outcome.severity in ("critical", "warning")
        for outcome in run.outcomes
    )
    hidden = {"found", "healthy"} if is_serious else {"found"}
    messages: dict[str, list[str]] = {}
    for worker in sorted(run.workers, key=lambda worker: -worker.step.mean_ns):
        if worker.standing is not None and worker.standing.state not in hidden:
            messages.setdefault(worker.standing.state, []).append(worker.standing.message)
    for state, of_state in messages.items():
        where = _some_of(len(of_state), run)
        yield StatusNote(state=state, message=plain(of_state[0]), where=where)


def _health_notes(run: RunReport) -> Iterable[HealthNote]:
    """Yield the worst health item of each kind; notes are left to `stepscope health`."""
    by_kind: dict[str, list[tuple[HealthItem, WorkerReport]]] = {}
    for worker in run.workers:
        for item in worker.health:
            if item.severity != "info":
                by_kind.setdefault(item.kind, []).append((item, worker))
    for items in by_kind.values():
        worst = min((item for item, _ in items), key=_seriousness)
        traces = {worker.trace for _, worker in items}
        where = ""
        if len(traces) < len(run.workers):
            where = ranks_of((worker.trace for _, worker in items), run.workers).where
        if where and len({item.message for item, _ in items}) > 1:
            where = f"{where}; the worst is shown"
        yield HealthNote(item=worst, where=plain(where))


def _seriousness(item: HealthItem) -> tuple[int, int]:
    return SEVERITIES.index(item.severity), -item.count
