"""The same finding in several recordings of a run, said once: where, when, and how much."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from stepscope.advice.blamed_ranks import Found, findings_by_trace, related
from stepscope.advice.finding_extent import ranks_of, steps_of
from stepscope.base.findings import Outcome, Status
from stepscope.base.report import JobSaving, MergedOutcome, WorkerReport

JUDGED: tuple[Status, ...] = ("found", "rejected", "passed", "suppressed")
"""Of a rule that could look."""


@dataclass(frozen=True, kw_only=True)
class Once:
    """All that is needed to say a rule's findings once."""

    workers: Sequence[WorkerReport]
    by_trace: Mapping[str, WorkerReport]
    found: Found
    judged: Mapping[str, set[str]]
    """Rule to the recordings that it could judge."""
    savings: Mapping[str, JobSaving]
    """Rule to what the job could save by it alone."""


def merged_outcomes(
    outcomes: Sequence[Outcome],
    workers: Sequence[WorkerReport],
    savings: Mapping[str, JobSaving],
) -> Iterable[MergedOutcome]:
    """Return each rule's findings as one; the outcomes come in their order, and so do these."""
    judged: dict[str, set[str]] = {}
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.status in JUDGED and outcome.trace:
            judged.setdefault(outcome.rule, set()).add(outcome.trace)
        if outcome.status == "found":
            found.setdefault(outcome.rule, []).append(outcome)
    once = Once(
        workers=workers,
        by_trace={worker.trace: worker for worker in workers},
        found=findings_by_trace(outcomes),
        judged=judged,
        savings=savings,
    )
    return (_merged(mine, once) for mine in found.values())


def _merged(mine: Sequence[Outcome], once: Once) -> MergedOutcome:
    rule = mine[0].rule
    traces = tuple(dict.fromkeys(each.trace for each in mine if each.trace))
    place, moment = ranks_of(traces, once.workers), steps_of(mine, once.by_trace)
    by_trace = saving_per_trace(mine)
    own = related(mine, once.by_trace, once.found)
    return MergedOutcome(
        outcome=mine[0],
        traces=traces,
        of_count=len(once.judged.get(rule, ())),
        where=place.where,
        net_low_ns=min(low for low, _ in by_trace) if by_trace else None,
        net_median_ns=round(median(high for _, high in by_trace)) if by_trace else None,
        net_high_ns=max(high for _, high in by_trace) if by_trace else None,
        ranks=place.ranks,
        hosts=place.hosts,
        group=place.group,
        steps=moment.steps,
        when=moment.when,
        related=own.shown,
        related_more=own.more_count,
        job_saving=once.savings.get(rule),
    )


def saving_per_trace(outcomes: Iterable[Outcome]) -> list[tuple[int, int]]:
    """Return what a rule's findings could save in each recording, at least and at most."""
    by_trace: dict[str, tuple[int, int]] = {}
    for each in outcomes:
        if each.claim is not None:
            low, high = by_trace.get(each.trace, (0, 0))
            by_trace[each.trace] = (low + each.claim.net_low_ns, high + each.claim.net_high_ns)
    return list(by_trace.values())
