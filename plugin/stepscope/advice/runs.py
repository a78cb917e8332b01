"""A run's advice: rules over all its recordings, and what several of them say, said once."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any

import msgspec

from stepscope.advice.outcomes import unanswered
from stepscope.advice.recordings import NOTHING_CHANGED, RecordingAdvice
from stepscope.advice.resolving import SEVERITIES, fingerprint, less_serious
from stepscope.advice.settings import Changes
from stepscope.advice.suppression import judged
from stepscope.analyses.duplicates import with_duplicates
from stepscope.quantities import count, duration, number_ranges
from stepscope.report import (
    ClaimReport,
    MergedOutcome,
    Outcome,
    RunReport,
    Status,
    WorkerReport,
)
from stepscope.rules import Finding, Recording, Rejected, Rule, RunClaim, RunEvidence, severity_of

STATUSES: tuple[Status, ...] = (
    "found",
    "rejected",
    "failed",
    "passed",
    "cannot-tell",
    "not-applicable",
    "suppressed",
)
JUDGED: tuple[Status, ...] = ("found", "rejected", "passed", "suppressed")
"""Of a rule that could look."""


def merged(
    name: str,
    recordings: Iterable[RecordingAdvice],
    rules: Sequence[Rule[Any]],
    changes: Changes = NOTHING_CHANGED,
) -> RunReport:
    """Return the advice on a run's recordings, made one by one, as the run's.

    The changes are for rules over the run; what the recordings found has been through them.
    """
    recordings = tuple(recordings)
    workers = tuple(with_duplicates(each.worker for each in recordings))
    outcomes = [outcome for each in recordings for outcome in each.outcomes]
    if recordings:
        of_run, taken = _over_the_run(name, recordings, rules)
        outcomes = [_lessened(outcome, taken) for outcome in outcomes]
        outcomes += (each for each in judged(of_run, changes, rules) if each is not None)
    run = with_outcomes(RunReport(name=name, workers=workers, outcomes=()), outcomes)
    return msgspec.structs.replace(run, verdict=_verdict(run))


def with_outcomes(run: RunReport, outcomes: Iterable[Outcome]) -> RunReport:
    """Return a run's report with these outcomes in place of its own."""
    ordered = tuple(sorted(outcomes, key=order))
    joined = tuple(_merged(ordered, run.workers))
    return msgspec.structs.replace(run, outcomes=ordered, merged=joined)


def order(outcome: Outcome) -> tuple[int, bool, bool, int, int, int, str, str, str]:
    """Found first: causes, then what others' savings cover already, then symptoms.

    Of those, by severity, then by what is won at least: a wait that was measured goes before work
    that might become several times as fast.
    """
    is_covered = outcome.claim is not None and not outcome.claim.net_high_ns
    return (
        STATUSES.index(outcome.status),
        outcome.is_symptom,
        is_covered,
        SEVERITIES.index(outcome.severity) if outcome.severity else len(SEVERITIES),
        -(outcome.claim.net_low_ns if outcome.claim else 0),
        -(outcome.claim.net_high_ns if outcome.claim else 0),
        outcome.rule,
        outcome.worker,
        outcome.span,
    )


# Rules over the run

Taken = dict[tuple[str, str], tuple[float, str]]
"""(Recording, rule) to the nanoseconds of a step that a rule over the run, named, takes from it."""


def _over_the_run(
    name: str, recordings: Sequence[RecordingAdvice], rules: Sequence[Rule[Any]]
) -> tuple[list[Outcome], Taken]:
    evidence = RunEvidence(
        name=name,
        recordings=tuple(
            Recording(
                trace=each.worker.trace,
                worker=each.worker.name,
                span=each.worker.span,
                part=each.part,
                outcomes=each.outcomes,
            )
            for each in recordings
            if each.part is not None
        ),
    )
    outcomes: list[Outcome] = []
    taken: Taken = {}
    step_ns = max(each.worker.step.mean_ns for each in recordings)
    for rule in rules:
        if rule.check_run is None:
            continue
        answers = _answers(rule, evidence)
        if isinstance(answers, Outcome):
            outcomes.append(answers)
            continue
        outcomes += [_of_run(rule, each, step_ns) for each in answers] or [_run(rule, "passed")]
        for each in answers:
            if isinstance(each, Finding) and each.run_claim is not None:
                _take(taken, rule, each.run_claim)
    return outcomes, taken


def _answers(rule: Rule[Any], evidence: RunEvidence) -> tuple[Finding | Rejected, ...] | Outcome:
    """Return what a rule over the run says, or why it says nothing."""
    try:
        return tuple(rule.check_run(evidence, rule.options)) if rule.check_run else ()
    except Exception as error:  # a rule's bug must not hide the other rules' findings
        status, reason, remedy = unanswered(rule, f"run {evidence.name}", error)
        return _run(rule, status, reason=reason or None, remedy=remedy or None)


def _run(
    rule: Rule[Any],
    status: Status,
    **more: Any,  # noqa: ANN401 (fields of `Outcome`)
) -> Outcome:
    return Outcome(
        rule=rule.id,
        title=rule.title,
        category=rule.category,
        status=status,
        worker="",
        span="",
        why=rule.why,
        links=rule.links,
        life_cycle=rule.life_cycle,
        is_symptom=rule.is_symptom,
        package=rule.package,
        **more,
    )


def _of_run(rule: Rule[Any], answer: Finding | Rejected, step_ns: int) -> Outcome:
    shown = {"message": answer.message, "evidence": answer.evidence, "tables": answer.tables}
    if isinstance(answer, Rejected):
        return _run(rule, "rejected", events=answer.events, **shown)
    claim = answer.run_claim
    high_ns = min(claim.high_ns, step_ns) if claim else 0.0
    share = high_ns / max(1, step_ns)
    return _run(
        rule,
        "found",
        severity=answer.severity or (severity_of(share) if claim else None) or "info",
        confidence=answer.confidence,
        claim=claim
        and ClaimReport(
            gross_ns=round(high_ns),
            net_low_ns=round(min(claim.low_ns, high_ns)),
            net_high_ns=round(high_ns),
            net_share=share,
            method=claim.method,
        ),
        events=answer.events,
        fix=answer.fix or rule.fix,
        locations=answer.locations,
        effort=answer.effort or rule.effort,
        risk=answer.risk or rule.risk,
        fingerprint=fingerprint(rule, answer),
        culprit=rule.culprit,
        **shown,
    )


def _take(taken: Taken, rule: Rule[Any], claim: RunClaim) -> None:
    """Note what a finding over the run takes from the findings on its recordings."""
    for trace, time_ns in claim.taken_ns.items():
        for other in claim.taken_from:
            before, _ = taken.get((trace, other), (0.0, ""))
            taken[trace, other] = (before + time_ns, rule.id)


def _lessened(outcome: Outcome, taken: Taken) -> Outcome:
    """Return a finding without that part of its saving which a rule over the run counts."""
    lost_ns, rule = taken.get((outcome.trace, outcome.rule), (0.0, ""))
    claim = outcome.claim
    if claim is None or not lost_ns or not claim.net_high_ns:
        return outcome
    high_ns = max(0, claim.net_high_ns - round(lost_ns))
    method = (
        f"{claim.method} {duration(claim.net_high_ns - high_ns)} of it is counted under {rule}."
    )
    less = msgspec.structs.replace(
        claim,
        net_low_ns=min(claim.net_low_ns, high_ns),
        net_high_ns=high_ns,
        net_share=claim.net_share * high_ns / claim.net_high_ns,
        method=method.strip(),
    )
    severity = less_serious(outcome.severity, severity_of(less.net_share))
    return msgspec.structs.replace(outcome, claim=less, severity=severity)


# The same finding in several recordings


def _merged(
    outcomes: Sequence[Outcome], workers: Sequence[WorkerReport]
) -> Iterable[MergedOutcome]:
    """Return each rule's findings as one; the outcomes come in their order, and so do these."""
    judged: dict[str, set[str]] = {}
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.status in JUDGED and outcome.trace:
            judged.setdefault(outcome.rule, set()).add(outcome.trace)
        if outcome.status == "found":
            found.setdefault(outcome.rule, []).append(outcome)
    for rule, mine in found.items():
        traces = tuple(dict.fromkeys(each.trace for each in mine if each.trace))
        by_trace = _saved_ns(mine)
        yield MergedOutcome(
            outcome=mine[0],
            traces=traces,
            of_count=len(judged.get(rule, ())),
            where=_where(traces, workers),
            net_low_ns=min(low for low, _ in by_trace) if by_trace else None,
            net_median_ns=round(median(high for _, high in by_trace)) if by_trace else None,
            net_high_ns=max(high for _, high in by_trace) if by_trace else None,
        )


def _saved_ns(outcomes: Sequence[Outcome]) -> list[tuple[int, int]]:
    """Return what a rule's findings could save in each recording, at least and at most."""
    by_trace: dict[str, tuple[int, int]] = {}
    for each in outcomes:
        if each.claim is not None:
            low, high = by_trace.get(each.trace, (0, 0))
            by_trace[each.trace] = (low + each.claim.net_low_ns, high + each.claim.net_high_ns)
    return list(by_trace.values())


def _where(traces: Sequence[str], workers: Sequence[WorkerReport]) -> str:
    """Say in which recordings something was found: by rank where each has one, else by name."""
    chosen = [worker for worker in workers if worker.trace in set(traces)]
    if not chosen or len(workers) == 1:
        return ""
    if len(chosen) == len(workers):
        return "both recordings" if len(workers) == 2 else f"all {len(workers)} recordings"
    ranks = [worker.rank for worker in chosen]
    known = {rank for rank in ranks if rank is not None}
    spans = {worker.span for worker in workers}
    if len(known) == len(ranks):
        of = len({worker.rank for worker in workers})
        noun = "rank" if len(known) == 1 else "ranks"
        place = f"{noun} {number_ranges(known)} of {of}"
    else:
        names = list(dict.fromkeys(worker.name for worker in chosen))
        place = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    held = {worker.span for worker in chosen}
    return f"{place}, {_spans(held, spans)}" if len(spans) > 1 and held != spans else place


def _spans(held: set[str], spans: set[str]) -> str:
    numbers = [int(span) for span in held if span.isdecimal()]
    named = number_ranges(numbers) if len(numbers) == len(held) else ", ".join(sorted(held))
    return f"{'span' if len(held) == 1 else 'spans'} {named} of {len(spans)}"


def _verdict(run: RunReport) -> str:
    """Return the sentence of the only recording, or one for all of them."""
    if len(run.workers) < 2:
        return run.workers[0].verdict if run.workers else ""
    slowest = max(run.workers, key=lambda worker: worker.step.mean_ns)
    quickest = min(run.workers, key=lambda worker: worker.step.mean_ns)
    unit = "step" if slowest.step.count else "time"
    spread = f"{duration(quickest.step.mean_ns)} to {duration(slowest.step.mean_ns)}"
    opening = f"{count(len(run.workers), 'recording')}, {unit} {spread}"
    if worst := next(_costly(run.merged), None):
        where = f" ({worst.where})" if worst.where else ""
        cost = f"costs up to {duration(worst.net_high_ns or 0)} of it"
        return f"{opening}; {worst.outcome.culprit} alone {cost}{where}."
    who = f"rank {slowest.rank}" if slowest.rank is not None else slowest.name
    return f"{opening}. Of the slowest, {who}: {slowest.verdict}"


def _costly(merged: Iterable[MergedOutcome]) -> Iterator[MergedOutcome]:
    """Yield what costs enough to be named, the worst first."""
    serious = (each for each in merged if each.outcome.severity in ("critical", "warning"))
    named = [each for each in serious if each.outcome.culprit and each.net_high_ns]
    yield from sorted(named, key=_least_and_most, reverse=True)


def _least_and_most(each: MergedOutcome) -> tuple[int, int]:
    claim = each.outcome.claim
    return (claim.net_low_ns, claim.net_high_ns) if claim is not None else (0, 0)
