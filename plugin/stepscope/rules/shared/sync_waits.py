"""Waits of the host for the device: a wait costs the idle time right behind it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.synchronizations import Cause, synchronizations
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.ledger import STALL_NS
from stepscope.analyses.idle.sync_cost import SyncCost, SyncSites, longest, sync_cost, sync_sites
from stepscope.base.calibration import ALL_OF_IT
from stepscope.base.findings import Evidence, Fix, Link, Severity
from stepscope.base.formatting import count, duration, share
from stepscope.model import intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, RuledOut, RuleResult, conclusive_if, option, severity_of
from stepscope.rules.shared import facts, phrases
from stepscope.rules.shared.claimable_time import claimed_ns

Rows = NDArray[np.int64]
MOST_SHOWN = 10
DETECTS = (
    "A wait costs the time for which the busiest device is idle right behind it: a host that waits "
    "while the device works loses nothing. The rule reports from `least_idle_share` of the window "
    "on. Waits that cost less are ruled out from `least_a_step` per step on."
)
SAVING = (
    "At least the idle time right behind the waits; at most what a replayed step gains without the "
    "waits: the host runs ahead, which may fill later gaps as well. Of a gap of 1 ms or more, a "
    "wait accounts for as much as it waited: the rest is the host's own work."
)
SILENT = (
    "Waits of the profiler itself, outside the steps, are not counted.",
    "A wait behind which the device still has work queued costs nothing.",
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Thresholds from which waits are worth reporting."""

    least_idle_share: float = option(
        0.01,
        "Idle time right behind the waits, as a fraction of the window, from which they are "
        "reported.",
        origin="ours: below 1 % no rule reports; Nsight Systems (cuda_api_sync) lists every wait, "
        "which in a trace whose GPU is 96 % busy is 43 % of the time",
    )
    least_a_step: float = option(
        1.0,
        "Waits per step from which they are mentioned even where they cost nothing.",
        origin="ours: less than once per step is no habit of the loop",
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Waits:
    """The waits of one cause that are worth reporting."""

    cost: SyncCost
    per_step: float
    """Number of waits per step, or in total where there are no steps."""
    idle_ns: int
    idle_share: float
    """Idle time right behind them, as a fraction of the window."""
    is_costly: bool
    operators: Rows | None = None
    """The operators to be named, as `sync_sites` takes them."""
    removed_calls: Rows | None = None
    """Operators that go with the waits, as rows of `host_calls`."""


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Texts about the waits of one rule."""

    counted: str
    """Label of their number: `Values read`."""
    happens: Callable[[int], str]
    """The beginning of a sentence: `24 values are read from the device`."""
    less: str
    """The change that would save nothing where they cost nothing: `reading less`."""
    link: Link


def waits(
    trace: Trace, cause: Cause, options: Options, among: NDArray[np.bool_] | None = None
) -> Waits | None:
    """Return the waits of one cause, or None where they are few and cost nothing.

    Raises:
        MissingDataError: no device was recorded, or its idle time is unreliable.
    """
    requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    cost = sync_cost(trace, cause, among)
    span = window(trace)
    idle_ns = intervals.duration_ns(cost.idle)
    is_costly = idle_ns >= options.least_idle_share * span.reference_ns
    per_step = cost.count / max(1, span.step_count)
    if not cost.count or (not is_costly and per_step < options.least_a_step):
        return None
    return Waits(
        cost=cost,
        per_step=per_step,
        idle_ns=idle_ns,
        idle_share=idle_ns / span.reference_ns,
        is_costly=is_costly,
    )


def finding(
    trace: Trace, waits: Waits, texts: Texts, fix: Fix, more: tuple[Claim, ...] = ()
) -> Finding:
    """Return the finding about waits; `more` is claimed besides the idle time behind them."""
    where = sync_sites(trace, waits.cost, waits.operators)
    claims = (_claim(trace, waits), *more)
    return Finding(
        severity=severity(trace, claims),
        message=f"{_happens(trace, waits, texts)}; {phrases.device(trace)} is then idle for "
        f"{phrases.time(trace, waits.idle_ns)} ({share(waits.idle_share)}).",
        evidence=evidence(trace, waits, texts),
        tables=(
            facts.table(
                "Waits of the host",
                {
                    "Source line": "code",
                    "Operator": "code",
                    "Waits": "count",
                    "Host blocked in total": "ns",
                    "Idle behind in total": "ns",
                },
                (
                    facts.row(
                        site.line,
                        site.operator,
                        site.count,
                        site.blocked_ns,
                        site.idle_ns,
                        link=Link(view="operators", search=site.operator, source=site.line or None),
                    )
                    for site in where.sites[:MOST_SHOWN]
                ),
            ),
        ),
        events=tuple(
            event_references.runtime_call(trace, call, detail=site)
            for call, site in _longest(trace, waits, where)
        ),
        locations=event_references.source_lines(site.line for site in where.sites),
        claims=claims,
        fix=fix,
    )


def result(
    trace: Trace, waits: Waits, texts: Texts, fix: Fix, more: tuple[Claim, ...] = ()
) -> RuleResult:
    """Return the finding about waits, or rule it out where they cost next to nothing.

    Raises:
        MissingDataError: the work that the host waited for was not recorded.
    """
    problem = finding(trace, waits, texts, fix, more)
    return problem if waits.is_costly else ruled_out(trace, waits, texts, problem)


def ruled_out(
    trace: Trace, waits: Waits, texts: Texts, problem: Finding, reason: str = ""
) -> RuledOut:
    """Return waits that cost next to nothing, with their numbers; `reason` is a last sentence."""
    cost = waits.cost
    _require_awaited_work(trace, cost)
    blocked = share(min(1.0, phrases.fraction_of_window(trace, cost.blocked_ns)))
    busy = ""
    if cost.working_share > 0.5:
        busy = f" is busy for {share(cost.working_share)} of that time, and"
    return problem.ruled_out(
        f"{_happens(trace, waits, texts)}, and the host is blocked for "
        f"{phrases.time(trace, cost.blocked_ns)} ({blocked}); but {phrases.device(trace)}{busy} is "
        f"then idle for {phrases.time(trace, waits.idle_ns)} ({share(waits.idle_share)}): "
        f"{texts.less} would save next to nothing now.{reason}"
    )


def _happens(trace: Trace, waits: Waits, texts: Texts) -> str:
    """Return how often waits happen: `4 values are read from the device (2.5 per step)`."""
    often = f"{waits.per_step:,.0f}" if waits.per_step >= 100 else f"{waits.per_step:.3g}"
    return f"{texts.happens(waits.cost.count)} ({often} {phrases.per_step(trace)})"


def _require_awaited_work(trace: Trace, cost: SyncCost) -> None:
    """Require that long waits were for work that is in the trace."""
    syncs = synchronizations(trace)
    start, end = syncs.start_ns[cost.rows], syncs.end_ns[cost.rows]
    is_long = end - start >= STALL_NS
    waited = intervals.union(start[is_long], end[is_long])
    unrecorded_ns = intervals.duration_ns(intervals.difference(waited, all_busy(trace)))
    conclusive_if(
        unrecorded_ns < 0.01 * window(trace).reference_ns,
        f"the host waits {duration(unrecorded_ns)} for device work that was not recorded",
        requirements.RECORD_DEVICE,
    )


def severity(trace: Trace, claims: tuple[Claim, ...]) -> Severity:
    """Return the severity of costly waits: at least a warning."""
    saved_ns = claimed_ns(trace, claims)
    is_critical = severity_of(phrases.fraction_of_window(trace, saved_ns)) == "critical"
    return "critical" if is_critical else "warning"


def times(number: int) -> str:
    """Return a number of times: `once`, `24 times`."""
    return "once" if number == 1 else count(number, "time")


def evidence(trace: Trace, waits: Waits, texts: Texts) -> tuple[Evidence, ...]:
    """Return the numbers of a finding, or of waits that cost nothing."""
    cost = waits.cost
    return (
        facts.count(texts.counted, cost.count, texts.link),
        facts.fraction("Idle time right behind them", waits.idle_share, "overview"),
        facts.duration("Host blocked in total (no loss by itself)", cost.blocked_ns),
        facts.fraction(f"{trace.dialect.device} busy meanwhile", cost.working_share),
    )


def _claim(trace: Trace, waits: Waits) -> Claim:
    """Claim the waits, and the idle time until the queue is filled again."""
    return Claim(
        waits.cost.refill,
        ALL_OF_IT,
        "At least the idle time right behind the waits; at most what a replayed step gains without "
        "them.",
        low_intervals=waits.cost.idle,
        waits=synchronizations(trace).calls[waits.cost.rows],
        calls=waits.removed_calls,
    )


def _longest(trace: Trace, waits: Waits, where: SyncSites) -> list[tuple[int, str]]:
    """Return the runtime calls of the longest waits with the names of their sites."""
    syncs, cost = synchronizations(trace), waits.cost
    rows = longest(trace, cost, MOST_SHOWN)
    sites = where.site_of[np.searchsorted(cost.rows, rows)].tolist()
    calls = syncs.calls[rows].tolist()
    return [(call, where.sites[site].name) for call, site in zip(calls, sites, strict=True)]
