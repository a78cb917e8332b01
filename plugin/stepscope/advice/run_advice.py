"""A run's advice: rules over all its recordings, and what several of them say, said once."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from stepscope.advice.duplicate_ranks import with_duplicates
from stepscope.advice.job_savings import JobRequest, job_savings, with_job
from stepscope.advice.merging import merged_outcomes
from stepscope.advice.ranks import representative_recordings, worker_reports
from stepscope.advice.run_rules import ALL_READ, Unread, apply_run_rules, reduce_saving
from stepscope.advice.settings import SEVERITIES, Changes
from stepscope.advice.suppression import apply_changes
from stepscope.advice.trace_advice import NO_CHANGES, TraceAdvice
from stepscope.advice.undamaged import undamaged
from stepscope.base.findings import Outcome, Status
from stepscope.base.formatting import count, duration
from stepscope.base.report import MergedOutcome, RunReport
from stepscope.rules import Rule

STATUSES: tuple[Status, ...] = (
    "found",
    "rejected",
    "failed",
    "passed",
    "cannot-tell",
    "not-applicable",
    "suppressed",
)


def run_report(
    name: str,
    recordings: Iterable[TraceAdvice],
    rules: Sequence[Rule[Any]],
    changes: Changes = NO_CHANGES,
    *,
    unread: Unread = ALL_READ,
) -> RunReport:
    """Return the advice on a run's recordings, made one by one, as the run's.

    The changes are for rules over the run; what the recordings found has been through them.
    """
    recordings = tuple(recordings)
    workers = tuple(with_duplicates(worker_reports(recordings)))
    outcomes = [outcome for each in recordings for outcome in each.outcomes]
    if recordings:
        of_run, taken = apply_run_rules(name, recordings, rules, unread)
        outcomes = [reduce_saving(outcome, taken) for outcome in outcomes]
        outcomes += (each for each in apply_changes(of_run, changes, rules) if each is not None)
    asked = JobRequest(gpu_count=changes.gpus, gpu_hour_price=changes.price)
    run = RunReport(
        name=name,
        workers=workers,
        outcomes=(),
        representatives=representative_recordings(recordings),
    )
    run = with_job(run, asked)
    run = with_outcomes(run, outcomes)
    return msgspec.structs.replace(run, verdict=_verdict(run))


def with_outcomes(run: RunReport, outcomes: Iterable[Outcome]) -> RunReport:
    """Return a run's report with these outcomes in place of its own."""
    ordered = tuple(sorted(outcomes, key=order))
    savings = job_savings(run, ordered)
    joined = tuple(merged_outcomes(ordered, run.workers, savings.by_rule))
    return msgspec.structs.replace(run, outcomes=ordered, merged=joined, job=savings.job)


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


def _verdict(run: RunReport) -> str:
    """Return the sentence of the only recording, or one for all of them."""
    if len(run.workers) < 2:
        return run.workers[0].verdict if run.workers else ""
    workers = undamaged(run.workers)
    slowest = max(workers, key=lambda worker: worker.step.mean_ns)
    quickest = min(workers, key=lambda worker: worker.step.mean_ns)
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
