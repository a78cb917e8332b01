"""What the rules on waits have in common: a wait is charged with the idle time behind it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.synchronizations import Cause, synchronizations
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.ledger import STALL_NS
from stepscope.analyses.idle.sync_cost import SyncCost, longest, sync_cost
from stepscope.analyses.idle.sync_sites import SyncSites, sync_sites
from stepscope.base.calibration import ALL_OF_IT
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import EventReference, Evidence, EvidenceTable, Fix, Link, Severity
from stepscope.base.formatting import count, duration, share
from stepscope.model import intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, RuledOut, option, severity_of
from stepscope.rules.shared import facts, phrases

Rows = NDArray[np.int64]
MOST_SHOWN = 10
DETECTS = (
    "A wait is charged with the time for which the busiest device stands still behind it, since "
    "a host that waits while the device works loses nothing. It speaks from `least_idle_share` of "
    "the window on. From `least_a_step` waits a step that cost less, it lists them as considered "
    "and rejected."
)
SAVING = (
    "At least the idle time right behind the waits; at most all idle time until two operations are "
    "queued again, in the same step. Of a gap of 1 ms or more a wait is charged with as much as it "
    "waited: the rest is the host's own."
)
SILENT = (
    "Waits of the profiler itself, outside the steps, are not counted.",
    "A wait behind which the device still has work queued costs nothing.",
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """When waits are worth a word."""

    least_idle_share: float = option(
        0.01,
        "Idle time right behind the waits, of the window, from which they are a fault.",
        origin="ours: below 1 % no rule speaks; Nsight Systems (cuda_api_sync) lists every wait, "
        "which in a trace whose GPU is 96 % busy is 43 % of the time",
    )
    least_a_step: float = option(
        1.0,
        "Waits a step from which they are mentioned even where they cost nothing.",
        origin="ours: what happens less than once a step is no habit of the loop",
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Waits:
    """The waits of one cause that are worth a word."""

    cost: SyncCost
    a_step: float
    """How many there are a step, or in all where there are no steps."""
    idle_ns: int
    idle_share: float
    """Of the window: how long the device stands still right behind them."""
    is_costly: bool
    operators: Rows | None = None
    """The operators to be named, as `sync_sites` takes them."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """What the waits of one rule are called."""

    counted: str
    """Label of their number: `Values read`."""
    happens: Callable[[int], str]
    """What happens so many times, as a sentence begins."""
    less: str
    """What would save nothing where they cost nothing: `reading less`."""
    link: Link


def waits(
    trace: Trace, cause: Cause, options: Options, among: NDArray[np.bool_] | None = None
) -> Waits | None:
    """Return the waits of one cause, or None where they are few and cost nothing.

    Raises:
        MissingDataError: no device was recorded, or its idle time cannot be trusted.
    """
    requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    cost = sync_cost(trace, cause, among)
    within = window(trace)
    idle_ns = intervals.duration_ns(cost.idle)
    found = Waits(
        cost=cost,
        a_step=cost.count / max(1, within.step_count),
        idle_ns=idle_ns,
        idle_share=idle_ns / within.reference_ns,
        is_costly=idle_ns >= options.least_idle_share * within.reference_ns,
    )
    if not cost.count or (not found.is_costly and found.a_step < options.least_a_step):
        return None
    return found


def finding(
    trace: Trace,
    found: Waits,
    words: Words,
    fix: Fix,
    also: tuple[Claim, ...] = (),
) -> Finding:
    """Return the finding about costly waits; `also` is claimed beside the idle time."""
    where = sync_sites(trace, found.cost, found.operators)
    claims = (_claim(found), *also)
    return Finding(
        severity=severity(trace, claims),
        message=f"{words.happens(found.cost.count)} ({_often(found)} {phrases.per_step(trace)}); "
        f"behind that {phrases.device(trace)} stands still for "
        f"{phrases.time(trace, found.idle_ns)} ({share(found.idle_share)}).",
        evidence=evidence(trace, found, words),
        tables=(_table(where),),
        events=_events(trace, found, where),
        locations=event_references.source_lines(site.line for site in where.sites),
        claims=claims,
        fix=fix,
    )


def rejected(trace: Trace, found: Waits, words: Words, why: str = "") -> RuledOut:
    """Return the numbers that acquit waits; `why` is a last sentence.

    Raises:
        MissingDataError: what the host waited for was not recorded.
    """
    cost, within = found.cost, window(trace)
    _insist_on_awaited_work(trace, cost)
    where = sync_sites(trace, cost, found.operators)
    blocked = share(min(1.0, cost.blocked_ns / within.reference_ns))
    meanwhile = ""
    if cost.working_share > 0.5:
        meanwhile = f" is at work {share(cost.working_share)} of that time, and"
    return RuledOut(
        message=f"{words.happens(cost.count)} ({_often(found)} {phrases.per_step(trace)}), and the "
        f"host is blocked for {phrases.time(trace, cost.blocked_ns)} ({blocked}); but "
        f"{phrases.device(trace)}{meanwhile} stands still behind it for "
        f"{phrases.time(trace, found.idle_ns)} ({share(found.idle_share)}): {words.less} would "
        f"save next to nothing now.{why}",
        evidence=evidence(trace, found, words),
        tables=(_table(where),),
        events=_events(trace, found, where),
    )


def _insist_on_awaited_work(trace: Trace, cost: SyncCost) -> None:
    """Insist that long waits were for work that is in the recording."""
    syncs = synchronizations(trace)
    start, end = syncs.start_ns[cost.rows], syncs.end_ns[cost.rows]
    is_long = end - start >= STALL_NS
    waited = intervals.union(start[is_long], end[is_long])
    for_nothing_ns = intervals.duration_ns(intervals.difference(waited, all_busy(trace)))
    if for_nothing_ns >= 0.01 * window(trace).reference_ns:
        msg = f"the host waits {duration(for_nothing_ns)} for device work that was not recorded"
        raise MissingDataError(msg, requirements.RECORD_DEVICE)


def severity(trace: Trace, claims: tuple[Claim, ...]) -> Severity:
    """Return how serious costly waits are: never less than a warning."""
    won_ns = sum(claim.factor.high * intervals.duration_ns(claim.intervals) for claim in claims)
    serious = severity_of(won_ns / window(trace).reference_ns)
    return "critical" if serious == "critical" else "warning"


def _often(found: Waits) -> str:
    """Return how many waits there are a step, as a sentence has it: `1`, `2.5`, `6,000`."""
    return f"{found.a_step:,.0f}" if found.a_step >= 100 else f"{found.a_step:.3g}"


def times(number: int) -> str:
    """Return how often: `once`, `24 times`."""
    return "once" if number == 1 else count(number, "time")


def evidence(trace: Trace, found: Waits, words: Words) -> tuple[Evidence, ...]:
    """Return the numbers behind a finding, or that acquit."""
    cost = found.cost
    overview = Link(view="overview")
    return (
        facts.count(words.counted, cost.count, words.link),
        facts.fraction("Idle time behind them", found.idle_share, overview),
        facts.duration("Host blocked (no loss by itself)", cost.blocked_ns),
        facts.fraction(f"{trace.dialect.device} at work meanwhile", cost.working_share),
    )


def _claim(found: Waits) -> Claim:
    """Claim the idle time until the queue is filled again; what is right behind them is sure."""
    return Claim(
        found.cost.refill,
        ALL_OF_IT,
        "At least the idle time right behind the waits; at most all of it until two operations are "
        "queued again.",
        low_intervals=found.cost.idle,
    )


def _table(where: SyncSites) -> EvidenceTable:
    rows = tuple(
        facts.row(
            site.line or None,
            site.operator,
            site.count,
            site.blocked_ns,
            site.idle_ns,
            link=Link(view="operators", search=site.operator, source=site.line or None),
        )
        for site in where.sites[:MOST_SHOWN]
    )
    return facts.table(
        "Where the host waits",
        {
            "Source line": "code",
            "Operator": "code",
            "Waits": "count",
            "Host blocked": "ns",
            "Idle behind": "ns",
        },
        rows,
    )


def _events(trace: Trace, found: Waits, where: SyncSites) -> tuple[EventReference, ...]:
    """Name the longest waits with where they were asked for."""
    syncs, cost = synchronizations(trace), found.cost
    rows = longest(trace, cost, MOST_SHOWN)
    places = where.site_of[np.searchsorted(cost.rows, rows)]
    return tuple(
        event_references.runtime_call(trace, int(syncs.calls[row]), detail=where.sites[place].name)
        for row, place in zip(rows.tolist(), places.tolist(), strict=True)
    )
