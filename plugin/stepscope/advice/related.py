"""What a recording that a rule over the run blames says of itself, and its peers do not.

A late rank is told by what the others wait for it; why it is late is what its own recording says
differently: findings that only it has, or that cost far more there.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from stepscope.advice.members import STAGE
from stepscope.report import Outcome, RelatedFinding, WorkerReport

FAR_LARGER = 2.0
"""From so many times the median peer's saving on, a finding is the recording's own affair."""
LEAST_SHARE = 0.01
"""Of the step, by which it must be larger: less is not worth a word."""
NO_CAUSES = frozenset({"communication", "distributed balance", "profiling", "trace quality"})
"""Categories that are not told: they are what lateness does, or about the recording itself."""
SHOWN = 5
"""Of a recording, the most telling first."""

Found = Mapping[str, Mapping[str, Sequence[Outcome]]]
"""Recording to rule to findings."""


def found_by_recording(outcomes: Iterable[Outcome]) -> Found:
    """Return what was found on recordings, by recording and rule."""
    found: dict[str, dict[str, list[Outcome]]] = {}
    for each in outcomes:
        if each.status == "found" and each.trace:
            found.setdefault(each.trace, {}).setdefault(each.rule, []).append(each)
    return found


def related(
    outcomes: Iterable[Outcome], workers: Mapping[str, WorkerReport], found: Found
) -> tuple[RelatedFinding, ...]:
    """Return what the recordings that these blame say of themselves, differently from others."""
    blamed = dict.fromkeys(trace for each in outcomes for trace in each.blamed)
    return tuple(
        told
        for trace in blamed
        if trace in workers
        for told in _own(workers[trace], _peers(workers[trace], workers, blamed), found)
    )


def _peers(
    worker: WorkerReport, workers: Mapping[str, WorkerReport], blamed: Mapping[str, None]
) -> list[str]:
    """Return recordings of the same time that are not blamed, of its own stage where it has one.

    The stages of a pipeline differ by design.
    """
    same = [
        each for each in workers.values() if each.span == worker.span and each.trace not in blamed
    ]
    stage = _stage(worker)
    beside = [each for each in same if stage and _stage(each) == stage]
    return [each.trace for each in beside or same]


def _stage(worker: WorkerReport) -> str:
    """Return the name of its pipeline stage; empty where it has none."""
    return next((name for name in worker.groups if name.startswith(STAGE)), "")


def _own(worker: WorkerReport, peers: Sequence[str], found: Found) -> list[RelatedFinding]:
    if not peers:
        return []
    told = [
        _told(worker, outcomes[0], _high_ns(outcomes), peers, found)
        for outcomes in found.get(worker.trace, {}).values()
        if outcomes[0].category not in NO_CAUSES
    ]
    kept = [each for each in told if each.is_only_there or _is_far_larger(each, worker)]
    return sorted(kept, key=_telling)[:SHOWN]


def _told(
    worker: WorkerReport,
    outcome: Outcome,
    high_ns: int | None,
    peers: Sequence[str],
    found: Found,
) -> RelatedFinding:
    theirs = [found.get(trace, {}).get(outcome.rule, ()) for trace in peers]
    return RelatedFinding(
        rule=outcome.rule,
        title=outcome.title,
        trace=worker.trace,
        rank=worker.rank,
        name=worker.name,
        is_only_there=not any(theirs),
        net_high_ns=high_ns,
        peers_net_high_ns=(
            None if high_ns is None else round(median(_high_ns(of) or 0 for of in theirs))
        ),
    )


def _high_ns(outcomes: Iterable[Outcome]) -> int | None:
    claims = [each.claim.net_high_ns for each in outcomes if each.claim is not None]
    return sum(claims) if claims else None


def _is_far_larger(each: RelatedFinding, worker: WorkerReport) -> bool:
    mine, theirs = each.net_high_ns or 0, each.peers_net_high_ns or 0
    return (
        mine >= FAR_LARGER * theirs
        and mine - theirs >= LEAST_SHARE * worker.step.mean_ns
        and mine > 0
    )


def _telling(each: RelatedFinding) -> tuple[bool, int, str]:
    more_ns = (each.net_high_ns or 0) - (each.peers_net_high_ns or 0)
    return (not each.is_only_there, -more_ns, each.rule)
