"""A run's advice: rules over all its traces, and findings of several traces merged."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from stepscope.advice.duplicate_ranks import with_duplicates
from stepscope.advice.job_outlook import job_outlook, with_valid_outlook
from stepscope.advice.job_savings import JobRequest, Savings, job_savings, with_job
from stepscope.advice.merging import merged_outcomes
from stepscope.advice.outcome_order import order
from stepscope.advice.overall_status import SERIOUS
from stepscope.advice.parts import Parts
from stepscope.advice.ranks import representative_traces, worker_reports
from stepscope.advice.run_rules import ALL_READ, Unread, apply_run_rules, reduce_saving
from stepscope.advice.settings import Changes
from stepscope.advice.suppression import apply_changes
from stepscope.advice.trace_advice import NO_CHANGES, TraceAdvice
from stepscope.advice.trace_report import undamaged
from stepscope.base.findings import Outcome
from stepscope.base.formatting import count, duration_range
from stepscope.base.report import MergedOutcome, RunReport, WorkerReport
from stepscope.rules import Rule


def run_report(
    name: str,
    traces: Iterable[TraceAdvice],
    rules: Sequence[Rule[Any]],
    changes: Changes = NO_CHANGES,
    *,
    unread: Unread = ALL_READ,
) -> RunReport:
    """Return the advice on a run from the advice on its traces.

    The changes apply to outcomes of rules over the run; those of the traces have them already.
    """
    traces = tuple(traces)
    parts = Parts(f"run {name}")
    workers = parts.of(
        "The part of each rank in the job",
        lambda: tuple(with_duplicates(worker_reports(traces))),
        tuple(advice.worker for advice in traces),
    )
    outcomes = [outcome for advice in traces for outcome in advice.outcomes]
    if traces:
        of_run, taken = apply_run_rules(name, traces, rules, unread)
        outcomes = [reduce_saving(outcome, taken) for outcome in outcomes]
        changed = apply_changes(of_run, changes, rules)
        outcomes += (outcome for outcome in changed if outcome is not None)
    run = RunReport(
        name=name,
        workers=workers,
        outcomes=(),
        representatives=parts.of(
            "The choice of representative traces", lambda: representative_traces(traces), ()
        ),
    )
    run = with_job(run, JobRequest(gpu_count=changes.gpus, gpu_hour_price=changes.price))
    run = with_outcomes(run, outcomes)
    verdict = parts.of("The first sentence", lambda: _verdict(run), "")
    return _with_failures(msgspec.structs.replace(run, verdict=verdict), parts)


def with_outcomes(run: RunReport, outcomes: Iterable[Outcome]) -> RunReport:
    """Return a run's report with other outcomes."""
    ordered = tuple(sorted(outcomes, key=order))
    parts = Parts(f"run {run.name}")
    unknown = Savings(job=run.job, by_rule={})
    savings = parts.of("The saving of the job", lambda: job_savings(run, ordered), unknown)
    merged = tuple(merged_outcomes(ordered, run.workers, savings.by_rule, parts))
    job = savings.job
    if job is not None:
        outlook = parts.of("The outlook", lambda: job_outlook(run, ordered, savings), None)
        job = msgspec.structs.replace(job, outlook=outlook)
    workers = tuple(_with_valid_outlooks(run.workers, ordered))
    run = msgspec.structs.replace(run, workers=workers, outcomes=ordered, merged=merged, job=job)
    return _with_failures(run, parts)


def _with_failures(run: RunReport, parts: Parts) -> RunReport:
    """Return a run's report whose first trace names the parts that failed."""
    if not run.workers:
        return run
    first, *others = run.workers
    return msgspec.structs.replace(run, workers=(parts.with_failures(first), *others))


def _with_valid_outlooks(
    workers: Iterable[WorkerReport], outcomes: Iterable[Outcome]
) -> Iterator[WorkerReport]:
    saving: dict[str, set[str]] = {}
    for outcome in outcomes:
        if outcome.status == "found" and outcome.claim is not None and not outcome.claim.is_covered:
            saving.setdefault(outcome.trace, set()).add(outcome.rule)
    for worker in workers:
        yield with_valid_outlook(worker, frozenset(saving.get(worker.trace, ())))


def _verdict(run: RunReport) -> str:
    """Return the sentence of a single trace, or one for all traces."""
    if len(run.workers) < 2:
        return run.workers[0].verdict if run.workers else ""
    workers = undamaged(run.workers)
    slowest = max(workers, key=lambda worker: worker.step.mean_ns)
    fastest = min(workers, key=lambda worker: worker.step.mean_ns)
    unit = "step" if slowest.step.count else "time"
    spread = duration_range(fastest.step.mean_ns, slowest.step.mean_ns)
    opening = f"{count(len(run.workers), 'trace')}, {unit} {spread}"
    if worst := next(_costly(run.merged), None):
        where = f" ({worst.where})" if worst.where else ""
        cost = f"costs {duration_range(worst.low_ns or 0, worst.high_ns or 0)} of it"
        return f"{opening}; {worst.outcome.culprit} alone {cost}{where}."
    name = f"rank {slowest.rank}" if slowest.rank is not None else slowest.name
    return f"{opening}. The slowest is {name}: {slowest.verdict}"


def _costly(merged: Iterable[MergedOutcome]) -> Iterator[MergedOutcome]:
    """Yield the findings that cost enough to be named, in the order of the advice."""
    serious = (finding for finding in merged if finding.outcome.severity in SERIOUS)
    return (finding for finding in serious if finding.outcome.culprit and finding.high_ns)
