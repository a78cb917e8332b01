"""Findings that blamed ranks have and their peers do not.

A late rank is known by the time that others wait for it; the cause is in its own trace: findings
that only it has, or that cost far more there. Blamed ranks with the same cause share one entry.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import NamedTuple

from stepscope.advice.ranks import STAGE
from stepscope.base.findings import Outcome
from stepscope.base.formatting import count, number_ranges
from stepscope.base.report import RelatedFinding, WorkerReport

FAR_LARGER = 2.0
"""Factor over the median peer's saving from which a finding counts as the rank's alone."""
LEAST_SHARE = 0.01
"""Of the step: the least difference that is worth reporting."""
NO_CAUSES = frozenset({"communication", "distributed balance", "profiling", "trace quality"})
"""Categories left out: effects of lateness, and defects of the trace."""
SHOWN = 8
RANGES_SHOWN = 4

TraceFindings = Mapping[str, Mapping[str, Sequence[Outcome]]]
"""Trace to rule to findings."""
PeerGroup = tuple[str, str]
"""Span and pipeline stage; without a stage: the whole span."""


@dataclass(frozen=True, kw_only=True)
class Related:
    """The most telling findings of blamed ranks, and the number of the others."""

    shown: tuple[RelatedFinding, ...] = ()
    more_count: int = 0


@dataclass(frozen=True, kw_only=True)
class _PeerFindings:
    """Findings of a rule in the peers of a trace."""

    is_anywhere: bool
    median_high_ns: int


@dataclass(frozen=True, kw_only=True)
class _BlamedFinding:
    """A finding of a rule in a blamed trace, compared with its peers."""

    worker: WorkerReport
    outcome: Outcome
    low_ns: int | None
    high_ns: int | None
    peers: _PeerFindings

    @property
    def more_ns(self) -> int:
        """The saving beyond that of the median peer."""
        return (self.high_ns or 0) - self.peers.median_high_ns

    @property
    def is_distinct(self) -> bool:
        """Check whether no peer has it, or it is far larger than in the median peer."""
        if not self.peers.is_anywhere:
            return True
        high_ns = self.high_ns or 0
        return (
            high_ns >= FAR_LARGER * self.peers.median_high_ns
            and self.more_ns >= LEAST_SHARE * self.worker.step.mean_ns
            and high_ns > 0
        )


def findings_by_trace(outcomes: Iterable[Outcome]) -> TraceFindings:
    """Return the findings on traces, by trace and rule."""
    findings: dict[str, dict[str, list[Outcome]]] = {}
    for outcome in outcomes:
        if outcome.status == "found" and outcome.trace:
            findings.setdefault(outcome.trace, {}).setdefault(outcome.rule, []).append(outcome)
    return findings


def related(
    outcomes: Iterable[Outcome], workers: Mapping[str, WorkerReport], findings: TraceFindings
) -> Related:
    """Return the findings that distinguish the traces blamed by these outcomes from their peers."""
    blamed = dict.fromkeys(trace for outcome in outcomes for trace in outcome.blamed)
    if not blamed:
        return Related()
    peers = _peers(worker for worker in workers.values() if worker.trace not in blamed)

    @cache  # a thousand traces have few peer groups
    def peer_findings(group: PeerGroup, rule: str) -> _PeerFindings:
        return _peer_findings([findings.get(trace, {}).get(rule, ()) for trace in peers[group]])

    same: dict[tuple[str, bool], list[_BlamedFinding]] = {}
    for worker in (workers[trace] for trace in blamed if trace in workers):
        group = next((group for group in _peer_groups(worker) if group in peers), None)
        if group is None:
            continue
        for rule, of_rule in findings.get(worker.trace, {}).items():
            finding = _BlamedFinding(
                worker=worker,
                outcome=of_rule[0],
                low_ns=_saving_ns(of_rule).low_ns,
                high_ns=_saving_ns(of_rule).high_ns,
                peers=peer_findings(group, rule),
            )
            if of_rule[0].category not in NO_CAUSES and finding.is_distinct:
                same.setdefault((rule, finding.peers.is_anywhere), []).append(finding)
    largest = {key: max(group, key=lambda finding: finding.more_ns) for key, group in same.items()}
    order = sorted(same, key=lambda key: (key[1], -largest[key].more_ns, key[0]))
    return Related(
        shown=tuple(_related_finding(largest[key], same[key]) for key in order[:SHOWN]),
        more_count=len(order[SHOWN:]),
    )


def _peers(others: Iterable[WorkerReport]) -> Mapping[PeerGroup, Sequence[str]]:
    """Return the traces that are not blamed, by peer group."""
    peers: dict[PeerGroup, list[str]] = {}
    for worker in others:
        for group in _peer_groups(worker):
            peers.setdefault(group, []).append(worker.trace)
    return peers


def _peer_groups(worker: WorkerReport) -> Sequence[PeerGroup]:
    """Return a trace's peer groups, the nearest first: pipeline stages differ by design."""
    stage = next((name for name in worker.groups if name.startswith(STAGE)), "")
    everywhere = (worker.span, "")
    return ((worker.span, stage), everywhere) if stage else (everywhere,)


def _peer_findings(findings: Sequence[Sequence[Outcome]]) -> _PeerFindings:
    return _PeerFindings(
        is_anywhere=any(findings),
        median_high_ns=round(median(_saving_ns(outcomes).high_ns or 0 for outcomes in findings)),
    )


class _Saving(NamedTuple):
    low_ns: int | None = None
    high_ns: int | None = None


def _saving_ns(outcomes: Iterable[Outcome]) -> _Saving:
    """Return the saving per step of a rule's findings; None if they claim nothing."""
    claims = [outcome.claim.decisive for outcome in outcomes if outcome.claim is not None]
    if not claims:
        return _Saving()
    return _Saving(sum(claim.low_ns for claim in claims), sum(claim.high_ns for claim in claims))


def _related_finding(first: _BlamedFinding, same: Sequence[_BlamedFinding]) -> RelatedFinding:
    worker = first.worker
    return RelatedFinding(
        rule=first.outcome.rule,
        title=first.outcome.title,
        trace=worker.trace,
        rank=worker.rank,
        name=worker.name,
        is_only_there=not first.peers.is_anywhere,
        low_ns=first.low_ns,
        high_ns=first.high_ns,
        peers_high_ns=None if first.high_ns is None else first.peers.median_high_ns,
        where=_where(worker, [finding.worker for finding in same]),
        trace_count=len(same),
    )


def _where(first: WorkerReport, workers: Sequence[WorkerReport]) -> str:
    """Return the ranks as ranges; of many ranges the first, with the number of ranks."""
    ranks = {worker.rank for worker in workers if worker.rank is not None}
    if any(worker.rank is None for worker in workers):
        more = count(len(workers) - 1, "more trace")
        return first.name if len(workers) == 1 else f"{first.name} and {more}"
    if len(ranks) == 1:
        return f"rank {first.rank}"
    shown, full = number_ranges(ranks, RANGES_SHOWN), number_ranges(ranks, len(ranks))
    return f"ranks {shown}" if shown == full else f"{len(ranks):,} ranks ({shown})"
