"""What a recording that a rule over the run blames says of itself, and its peers do not.

A late rank is told by what the others wait for it; why it is late is what its own recording says
differently: findings that only it has, or that cost far more there. Half of a job may be late for
one reason: that is told once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median

from stepscope.advice.ranks import STAGE
from stepscope.base.findings import Outcome
from stepscope.base.formatting import count, number_ranges
from stepscope.base.report import RelatedFinding, WorkerReport

FAR_LARGER = 2.0
"""From so many times the median peer's saving on, a finding is the recording's own affair."""
LEAST_SHARE = 0.01
"""Of the step, by which it must be larger: less is not worth a word."""
NO_CAUSES = frozenset({"communication", "distributed balance", "profiling", "trace quality"})
"""Categories that are not told: they are what lateness does, or about the recording itself."""
SHOWN = 8
"""Findings, the most telling first."""
RANGES_SHOWN = 4
"""Of ranks that lie apart."""

Found = Mapping[str, Mapping[str, Sequence[Outcome]]]
"""Recording to rule to findings."""
Place = tuple[str, str]
"""Time and pipeline stage; no stage: all of that time."""


@dataclass(frozen=True, kw_only=True)
class Related:
    """What the recordings that are blamed say of themselves."""

    shown: tuple[RelatedFinding, ...] = ()
    more_count: int = 0


@dataclass(frozen=True, kw_only=True)
class _Theirs:
    """What a rule found in the peers of a recording."""

    is_anywhere: bool
    median_high_ns: int


@dataclass(frozen=True, kw_only=True)
class _Own:
    """What a rule found in a recording that is blamed."""

    worker: WorkerReport
    outcome: Outcome
    high_ns: int | None
    theirs: _Theirs

    @property
    def more_ns(self) -> int:
        """What it could save there, beyond what it could in the median peer."""
        return (self.high_ns or 0) - self.theirs.median_high_ns


def findings_by_trace(outcomes: Iterable[Outcome]) -> Found:
    """Return what was found on recordings, by recording and rule."""
    found: dict[str, dict[str, list[Outcome]]] = {}
    for each in outcomes:
        if each.status == "found" and each.trace:
            found.setdefault(each.trace, {}).setdefault(each.rule, []).append(each)
    return found


def related(
    outcomes: Iterable[Outcome], workers: Mapping[str, WorkerReport], found: Found
) -> Related:
    """Return what the recordings that these blame say of themselves, differently from others."""
    blamed = dict.fromkeys(trace for each in outcomes for trace in each.blamed)
    if not blamed:
        return Related()
    peers = _peers(each for each in workers.values() if each.trace not in blamed)

    @cache  # a thousand recordings have few places between them
    def theirs(place: Place, rule: str) -> _Theirs:
        return _theirs([found.get(trace, {}).get(rule, ()) for trace in peers[place]])

    alike: dict[tuple[str, bool], list[_Own]] = {}
    for worker in (workers[trace] for trace in blamed if trace in workers):
        place = next((each for each in _places(worker) if each in peers), None)
        if place is None:
            continue
        for rule, mine in found.get(worker.trace, {}).items():
            own = _Own(
                worker=worker, outcome=mine[0], high_ns=_high_ns(mine), theirs=theirs(place, rule)
            )
            if mine[0].category not in NO_CAUSES and _is_its_own(own):
                alike.setdefault((rule, own.theirs.is_anywhere), []).append(own)
    first = {key: max(of, key=lambda own: own.more_ns) for key, of in alike.items()}
    order = sorted(alike, key=lambda key: (key[1], -first[key].more_ns, key[0]))
    return Related(
        shown=tuple(_told(first[key], alike[key]) for key in order[:SHOWN]),
        more_count=len(order[SHOWN:]),
    )


def _peers(others: Iterable[WorkerReport]) -> Mapping[Place, Sequence[str]]:
    """Return the recordings that are not blamed, by all places that they are in."""
    found: dict[Place, list[str]] = {}
    for worker in others:
        for place in _places(worker):
            found.setdefault(place, []).append(worker.trace)
    return found


def _places(worker: WorkerReport) -> Sequence[Place]:
    """Return where a recording's peers are sought: the stages of a pipeline differ by design."""
    stage = next((name for name in worker.groups if name.startswith(STAGE)), "")
    everywhere = (worker.span, "")
    return ((worker.span, stage), everywhere) if stage else (everywhere,)


def _theirs(findings: Sequence[Sequence[Outcome]]) -> _Theirs:
    return _Theirs(
        is_anywhere=any(findings),
        median_high_ns=round(median(_high_ns(each) or 0 for each in findings)),
    )


def _high_ns(outcomes: Iterable[Outcome]) -> int | None:
    claims = [each.claim.net_high_ns for each in outcomes if each.claim is not None]
    return sum(claims) if claims else None


def _is_its_own(own: _Own) -> bool:
    if not own.theirs.is_anywhere:
        return True
    high_ns = own.high_ns or 0
    return (
        high_ns >= FAR_LARGER * own.theirs.median_high_ns
        and own.more_ns >= LEAST_SHARE * own.worker.step.mean_ns
        and high_ns > 0
    )


def _told(first: _Own, alike: Sequence[_Own]) -> RelatedFinding:
    worker = first.worker
    return RelatedFinding(
        rule=first.outcome.rule,
        title=first.outcome.title,
        trace=worker.trace,
        rank=worker.rank,
        name=worker.name,
        is_only_there=not first.theirs.is_anywhere,
        net_high_ns=first.high_ns,
        peers_net_high_ns=None if first.high_ns is None else first.theirs.median_high_ns,
        where=_where(first.worker, [own.worker for own in alike]),
        trace_count=len(alike),
    )


def _where(first: WorkerReport, workers: Sequence[WorkerReport]) -> str:
    """Name the ranks; of many that lie apart, the first of them and how many there are."""
    ranks = {worker.rank for worker in workers if worker.rank is not None}
    if any(worker.rank is None for worker in workers):
        more = count(len(workers) - 1, "more recording")
        return first.name if len(workers) == 1 else f"{first.name} and {more}"
    if len(ranks) == 1:
        return f"rank {first.rank}"
    named, ranges = number_ranges(ranks, RANGES_SHOWN), number_ranges(ranks, len(ranks))
    return f"ranks {named}" if named == ranges else f"{len(ranks):,} ranks ({named})"
