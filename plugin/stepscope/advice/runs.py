"""A run's advice: rules over all its recordings, and what several of them say, said once."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any

import msgspec

from stepscope.advice.over_the_run import lessened, over_the_run
from stepscope.advice.recordings import NOTHING_CHANGED, RecordingAdvice
from stepscope.advice.settings import SEVERITIES, Changes
from stepscope.advice.suppression import judged
from stepscope.analyses.duplicates import with_duplicates
from stepscope.quantities import count, duration, number_ranges
from stepscope.report import (
    MergedOutcome,
    Outcome,
    RunReport,
    Status,
    WorkerReport,
)
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
        of_run, taken = over_the_run(name, recordings, rules)
        outcomes = [lessened(outcome, taken) for outcome in outcomes]
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
