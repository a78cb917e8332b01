"""What the rules on waits have in common: a wait is charged with the idle time behind it."""

from collections.abc import Iterator
from dataclasses import dataclass

from stepscope import intervals
from stepscope.analyses import references, requirements
from stepscope.analyses.idle.sync_cost import SyncCost, longest, place, sites, sync_cost
from stepscope.analyses.idle.synchronizations import Cause, synchronizations
from stepscope.analyses.steps.window import window
from stepscope.calibration import ALL_OF_IT
from stepscope.quantities import duration, share
from stepscope.report import EventReference, Evidence, Link, Severity
from stepscope.rules import Claim, option, severity_of
from stepscope.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Options:
    """When waits are worth a word."""

    least_idle_share: float = option(
        0.01, "Idle time caused, of the window: blocked host time alone is no loss.", origin=""
    )
    least_a_step: float = option(
        1.0,
        "From so many a step on they are mentioned, even where they cost nothing yet.",
        origin="",
    )
    shown_count: int = option(10, "How many events are named.", origin="", is_threshold=False)


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


def waits(trace: Trace, cause: Cause, options: Options) -> Waits | None:
    """Return the waits of one cause, or None where they are few and cost nothing.

    Raises:
        MissingDataError: no device was recorded, or its idle time cannot be trusted.
    """
    requirements.main(trace)
    requirements.reliable_timeline(trace)
    cost = sync_cost(trace, cause)
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


def severity(trace: Trace, found: Waits) -> Severity:
    """Return how serious costly waits are: never less than a warning."""
    refill_ns = intervals.duration_ns(found.cost.refill)
    serious = severity_of(refill_ns / window(trace).reference_ns)
    return "critical" if serious == "critical" else "warning"


def each(trace: Trace) -> str:
    """Return what figures are of: `a step` or `in all`."""
    return "a step" if window(trace).has_steps else "in all"


def behind(trace: Trace, found: Waits, device: str) -> str:
    """Say how long the device (as the sentence calls it) stands still for the waits."""
    if not found.idle_ns:
        return "the device does not stand still for it."
    lasting = f"{duration(window(trace).per_step(found.idle_ns))} {each(trace)}"
    return f"behind that {device} stands still for {lasting} ({share(found.idle_share)})."


def works_meanwhile(trace: Trace, found: Waits) -> str:
    """Say that the host waits but the device works, where that is so; else ""."""
    if found.is_costly or found.cost.working_share <= 0.5:
        return ""
    blocked = duration(window(trace).per_step(found.cost.blocked_ns))
    return f" The host is blocked for {blocked} {each(trace)}, but the device works meanwhile: "


def evidence(trace: Trace, found: Waits, label: str, link: Link) -> tuple[Evidence, ...]:
    """Return the numbers behind a finding; `label` names what is counted."""
    cost = found.cost
    return (
        Evidence(label=label, value=cost.count, unit="count", link=link),
        Evidence(
            label="Idle time behind them",
            value=found.idle_share,
            unit="share",
            link=Link(view="overview"),
        ),
        Evidence(label="Host blocked (no loss by itself)", value=cost.blocked_ns, unit="ns"),
        Evidence(label="Device at work meanwhile", value=cost.working_share, unit="share"),
        *(
            Evidence(label=f"At {where}", value=number, unit="count", link=link)
            for where, number in sites(trace, cost)[:5]
        ),
    )


def claim(found: Waits) -> Claim:
    """Claim the idle time until the queue is filled again; what is right behind them is sure."""
    return Claim(
        intervals=found.cost.refill,
        factor=ALL_OF_IT,
        low_intervals=found.cost.idle,
        method=(
            "At least the idle time right behind the waits; at most all of it until two operations "
            "are queued again."
        ),
    )


def events(trace: Trace, found: Waits, options: Options) -> Iterator[EventReference]:
    """Name the longest waits with where they were asked for."""
    syncs = synchronizations(trace)
    for row in longest(trace, found.cost, options.shown_count):
        yield references.runtime_call(
            trace, int(syncs.calls[row]), detail=place(trace, int(syncs.owner[row]))
        )
