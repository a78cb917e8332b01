"""Savings of claims: how much sooner the replayed window ends without the claimed time.

A step is a race between host and device, so that a local sum of times says little: without a claim,
the trace is simulated (`stepscope.replay`), as recorded.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import gpu_bound_times
from stepscope.base.errors import MissingDataError, in_one_line
from stepscope.base.findings import TimedStep
from stepscope.base.urls import redacted
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed
from stepscope.replay.changes import NO_COSTS, Change, ChangeRange, Part, Shorten, Unblock
from stepscope.replay.launches import RemovedCalls, remove_calls
from stepscope.replay.simulation import Simulation, simulate
from stepscope.replay.unrecorded import unrecorded_world
from stepscope.rules import Claim

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, eq=False)
class Unchanged:
    """The unchanged replay of a trace, to which claims are compared."""

    simulation: Simulation | None
    """None: the replay does not describe this trace."""
    reason: str = ""
    """Reason why it does not."""


@computed
def unchanged(trace: Trace) -> Unchanged:
    """Return the unchanged replay of a trace, or the reason why it has none."""
    try:
        return Unchanged(simulation=simulate(trace, ()))
    except MissingDataError as error:
        return Unchanged(simulation=None, reason=error.reason)
    except MemoryError:
        raise
    except Exception as error:  # without the simulation, savings are sums of times
        log.warning("the simulation of %s failed: %s", redacted(trace.path), in_one_line(error))
        return Unchanged(simulation=None, reason=f"the simulation failed ({in_one_line(error)})")


def usable_times(trace: Trace, claim: Claim) -> Intervals:
    """Return the part of a claim that lies in the window.

    Without a replay, of device work only the part in which the device, not the host, is the limit.
    """
    span = window(trace)
    times = intervals.clip(claim.intervals, span.device_start_ns, span.device_end_ns)
    if claim.is_device_work and unchanged(trace).simulation is None:
        return intervals.intersection(times, gpu_bound_times(trace).possible)
    return times


@computed
def unrecorded(trace: Trace) -> Simulation | None:
    """Return the replay of the step as it runs without the profiler; None without a replay."""
    recorded = unchanged(trace).simulation
    if recorded is None:
        return None
    try:
        world = unrecorded_world(trace)
        return replace(recorded.with_changes(world.changes), costs=world.costs)
    except MemoryError:
        raise
    except Exception as error:  # without it, savings are those of the recorded step
        log.warning("%s: no unrecorded step: %s", redacted(trace.path), in_one_line(error))
        return None


def changes_at_most(
    trace: Trace, claim: Claim, times: Intervals, replay: Simulation, taken: Intervals
) -> tuple[Change, ...]:
    """Return the changes of a claim's `times` that save most.

    They shorten the host and the devices of `replay`; the host not where it is `taken`.
    """
    if claim.changes is not None:
        return claim.changes.most if len(times) else ()
    return _changes(trace, [(claim, Part(times, claim.factor.high))], replay, taken)


def changes_at_least(
    trace: Trace, claim: Claim, times: Intervals, replay: Simulation, taken: Intervals
) -> tuple[Change, ...]:
    """Return the changes of a claim's `times` that save least.

    Of waits and calls that go, they are the same: then the claimed times limit the saving.
    """
    if claim.changes is not None:
        return claim.changes.least if len(times) else ()
    return _changes(trace, [(claim, Part(times, claim.factor.low))], replay, taken)


def host_times(trace: Trace, claim: Claim, times: Intervals) -> Intervals:
    """Return the times of the host that the changes of a claim's `times` shorten."""
    if claim.calls is not None:
        removed = remove_calls(trace, claim.calls).host
        return intervals.merged(intervals.EMPTY, *(of_chain.times for of_chain in removed))
    return intervals.EMPTY if claim.is_device_work or claim.waits is not None else times


def fixes_at_most(trace: Trace, claims: Sequence[Claim], replay: Simulation) -> tuple[Change, ...]:
    """Return the changes of claims whose fixes are all made, and save most.

    Of a time that several of them claim, the greatest of their fractions goes: so a further fix
    never makes the step longer, and their order does not matter. What a claim changes by itself
    (`Claim.changes`) comes first, and no other claim shortens its times.
    """
    stated = [changes.most for changes in _stated(trace, claims)]
    timed = [(claim, Part(usable_times(trace, claim), claim.factor.high)) for claim in claims]
    return (*chain.from_iterable(stated), *_changes(trace, timed, replay))


def fixes_at_least(trace: Trace, claims: Sequence[Claim], replay: Simulation) -> tuple[Change, ...]:
    """Return the changes of claims whose fixes are all made, and save least."""
    stated = [changes.least for changes in _stated(trace, claims)]
    timed = [
        (claim, Part(sure_times(trace, claim, usable_times(trace, claim)), claim.factor.low))
        for claim in claims
    ]
    return (*chain.from_iterable(stated), *_changes(trace, timed, replay))


def _stated(trace: Trace, claims: Iterable[Claim]) -> Iterator[ChangeRange]:
    """Yield the changes that claims state, without those of times that an earlier one changes."""
    taken = intervals.EMPTY
    for claim in claims:
        if claim.changes is None:
            continue
        times = usable_times(trace, claim)
        if len(intervals.difference(times, taken)):
            yield claim.changes
        taken = intervals.merged(taken, times)


def sure_times(trace: Trace, claim: Claim, times: Intervals) -> Intervals:
    """Return the part of a claim's `times` to which the factor's `low` applies.

    Device work whose successor's launch was not recorded may be awaited by a late launch.
    """
    sure = times
    if claim.low_intervals is not None:
        sure = intervals.intersection(sure, claim.low_intervals)
    if claim.is_device_work:
        sure = intervals.difference(sure, gpu_bound_times(trace).unknown)
    return sure


Timed = tuple[Claim, Part]
"""A claim, and the times of which its fix saves a fraction."""
NO_CALLS = RemovedCalls(changes=(), host=())
LEAST_FACTOR = 0.01
"""Of the host's time without the profiler."""


def _changes(
    trace: Trace, timed: Iterable[Timed], replay: Simulation, taken: Intervals = intervals.EMPTY
) -> tuple[Change, ...]:
    """Return the changes of claims: waits and calls that go; of others, their times."""
    active = [(claim, part) for claim, part in timed if part.share]
    moved = [usable_times(trace, claim) for claim, _ in active if claim.changes is not None]
    moved_times = intervals.merged(intervals.EMPTY, *moved)
    parts = [item for item in active if _is_timed(item[0])]
    waits = [claim.waits for claim, _ in active if claim.waits is not None]
    calls = [claim.calls for claim, _ in active if claim.calls is not None]
    removed = remove_calls(trace, np.unique(np.concatenate(calls))) if calls else NO_CALLS
    taken = intervals.merged(taken, moved_times)
    shorten = Shorten(
        device=_greatest((part for _, part in parts), moved_times),
        host=_greatest(
            (_in_step_of(trace, replay, *item) for item in parts if not item[0].is_device_work),
            taken,
        ),
        removed=tuple(
            of_chain._replace(times=intervals.difference(of_chain.times, taken))
            for of_chain in removed.host
        ),
        reference_ns=replay.weight_ns,
        costs=replay.costs,
        event_costs=unrecorded_world(trace).event_costs if replay.costs else NO_COSTS,
    )
    return (*(Unblock(calls=of_claim) for of_claim in waits), *removed.changes, shorten)


def _in_step_of(trace: Trace, replay: Simulation, claim: Claim, part: Part) -> Part:
    """Return a part of the host's time; without the profiler, of which more remains.

    The replay without the profiler scales all of the host's time but events: not this one.
    """
    if not claim.is_unslowed or not replay.costs:
        return part
    factor = max(LEAST_FACTOR, unrecorded_world(trace).host_factor)
    return part._replace(share=part.share / factor, is_unslowed=True)


def _is_timed(claim: Claim) -> bool:
    return claim.waits is None and claim.calls is None and claim.changes is None


def _greatest(parts: Iterable[Part], taken: Intervals) -> tuple[Part, ...]:
    """Return disjoint parts: of each time that is not taken, the greatest fraction."""
    times_of: dict[tuple[float, bool], list[Intervals]] = {}
    for times, fraction, is_unslowed in parts:
        times_of.setdefault((fraction, is_unslowed), []).append(times)
    disjoint = []
    for fraction, is_unslowed in sorted(times_of, reverse=True):
        whole = intervals.merged(taken, *times_of[fraction, is_unslowed])
        disjoint.append(Part(intervals.difference(whole, taken), fraction, is_unslowed))
        taken = whole
    return tuple(part for part in disjoint if len(part.times))


class Alone(NamedTuple):
    """Saving of claims in the window without all other findings, in nanoseconds."""

    low_ns: float
    high_ns: float


def claimed_ns(trace: Trace, claims: Sequence[Claim]) -> float:
    """Return the greatest saving of claims in the window, without all other findings.

    Where no replay describes the trace, it is the sum of the claimed times.
    """
    return alone(trace, claims, "recorded").high_ns


def unrecorded_ns(trace: Trace, claims: Sequence[Claim]) -> float | None:
    """Return the greatest saving of claims in the window as it runs without the profiler.

    None where no replay describes the trace.
    """
    return None if unrecorded(trace) is None else alone(trace, claims, "unrecorded").high_ns


def alone(trace: Trace, claims: Sequence[Claim], step: TimedStep) -> Alone:
    """Return the saving of claims without all other findings, as recorded or without the profiler.

    Where no replay describes the trace, it is at most the sum of the claimed times.
    """
    simulated, key = _simulated(trace), (step, *claims)
    if key not in simulated:
        replay = unchanged(trace).simulation if step == "recorded" else unrecorded(trace)
        simulated[key] = (
            Alone(0.0, summed_ns(trace, claims))
            if replay is None
            else _saved(trace, claims, replay)
        )
    return simulated[key]


@computed
def _simulated(trace: Trace) -> dict[tuple[TimedStep | Claim, ...], Alone]:  # noqa: ARG001 (the key)
    """Return the savings that were simulated: a rule, the engine and the severity ask alike."""
    return {}


def _saved(trace: Trace, claims: Sequence[Claim], replay: Simulation) -> Alone:
    """Return the simulated saving; its least is no more than the sum of the sure times."""
    most = replay.with_changes(fixes_at_most(trace, claims, replay))
    high_ns = float(max(0, replay.simulated_ns - most.simulated_ns))
    sure_ns = _sure_ns(trace, claims)
    if not high_ns or not sure_ns:
        return Alone(0.0, high_ns)
    least = replay.with_changes(fixes_at_least(trace, claims, replay))
    return Alone(max(0.0, min(high_ns, sure_ns, replay.simulated_ns - least.simulated_ns)), high_ns)


def _sure_ns(trace: Trace, claims: Iterable[Claim]) -> float:
    """Return the sum of the claimed times that certainly go, at their least factors."""
    taken, total_ns = intervals.EMPTY, 0.0
    for claim in claims:
        times = usable_times(trace, claim)
        sure = sure_times(trace, claim, intervals.difference(times, taken))
        total_ns += claim.factor.low * intervals.duration_ns(sure)
        taken = intervals.merged(taken, times)
    return total_ns


def summed_ns(trace: Trace, claims: Iterable[Claim]) -> float:
    """Return the sum of the claimed times in the window, at their greatest factors."""
    taken = intervals.EMPTY
    total = 0.0
    for claim in claims:
        times = usable_times(trace, claim)
        total += claim.factor.high * intervals.duration_ns(intervals.difference(times, taken))
        taken = intervals.merged(taken, times) if len(taken) else times
    return total
