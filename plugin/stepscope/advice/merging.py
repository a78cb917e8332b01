"""Findings of a rule in several traces of a run, merged into one: ranks, steps, savings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from stepscope.advice.blamed_ranks import TraceFindings, findings_by_trace, related
from stepscope.advice.finding_extent import RankExtent, StepExtent, ranks_of, steps_of
from stepscope.advice.parts import Parts
from stepscope.base.findings import Outcome, Status
from stepscope.base.report import JobSaving, MergedOutcome, WorkerReport

JUDGED: tuple[Status, ...] = ("found", "rejected", "passed", "suppressed")
"""Statuses of a rule that could check."""


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """The run's data that merging a rule's findings needs."""

    workers: Sequence[WorkerReport]
    by_trace: Mapping[str, WorkerReport]
    findings: TraceFindings
    judged: Mapping[str, set[str]]
    """Rule to the traces that it could check."""
    savings: Mapping[str, JobSaving]
    """Rule to the job's saving by it alone."""
    parts: Parts


def merged_outcomes(
    outcomes: Sequence[Outcome],
    workers: Sequence[WorkerReport],
    savings: Mapping[str, JobSaving],
    parts: Parts,
) -> Iterable[MergedOutcome]:
    """Return each rule's findings as one, in the order of the outcomes."""
    judged: dict[str, set[str]] = {}
    by_rule: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.status in JUDGED and outcome.trace:
            judged.setdefault(outcome.rule, set()).add(outcome.trace)
        if outcome.status == "found":
            by_rule.setdefault(outcome.rule, []).append(outcome)
    context = RunContext(
        workers=workers,
        by_trace={worker.trace: worker for worker in workers},
        findings=findings_by_trace(outcomes),
        judged=judged,
        savings=savings,
        parts=parts,
    )
    return (_merged(findings, context) for findings in by_rule.values())


def _merged(findings: Sequence[Outcome], context: RunContext) -> MergedOutcome:
    rule = findings[0].rule
    traces = tuple(dict.fromkeys(finding.trace for finding in findings if finding.trace))
    parts, savings = context.parts, saving_per_trace(findings)
    ranks = parts.of(
        f"The ranks of {rule}", lambda: ranks_of(traces, context.workers), RankExtent()
    )
    steps = parts.of(
        f"The steps of {rule}", lambda: steps_of(findings, context.by_trace), StepExtent()
    )
    of_blamed = parts.of(
        f"Related findings of {rule}",
        lambda: related(findings, context.by_trace, context.findings),
        None,
    )
    return MergedOutcome(
        outcome=findings[0],
        traces=traces,
        of_count=len(context.judged.get(rule, ())),
        where=ranks.where,
        low_ns=min(low for low, _ in savings) if savings else None,
        median_ns=round(median(high for _, high in savings)) if savings else None,
        high_ns=max(high for _, high in savings) if savings else None,
        ranks=ranks.ranks,
        hosts=ranks.hosts,
        group=ranks.group,
        steps=steps.steps,
        when=steps.when,
        related=of_blamed.shown if of_blamed is not None else (),
        related_more=of_blamed.more_count if of_blamed is not None else 0,
        job_saving=context.savings.get(rule),
    )


def saving_per_trace(outcomes: Iterable[Outcome]) -> list[tuple[int, int]]:
    """Return the least and greatest saving of a rule's findings in each trace."""
    savings: dict[str, tuple[int, int]] = {}
    for outcome in outcomes:
        if (claim := outcome.claim) is not None:
            low, high = savings.get(outcome.trace, (0, 0))
            savings[outcome.trace] = (low + claim.decisive.low_ns, high + claim.decisive.high_ns)
    return list(savings.values())
