"""Savings of claims: how much sooner the replayed window ends without the claimed time.

A step is a race between host and device, so that a local sum of times says little: without a claim,
the trace is simulated (`stepscope.replay`), as recorded.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import gpu_bound_times
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import TimedStep
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed
from stepscope.replay.changes import Change, Shorten, Unblock
from stepscope.replay.launches import remove_calls
from stepscope.replay.simulation import Simulation, simulate
from stepscope.replay.unrecorded import unrecorded_world
from stepscope.rules import Claim


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


def usable_times(trace: Trace, claim: Claim) -> Intervals:
    """Return the part of a claim that lies in the window.

    Without a replay, of device work only the part in which the device, not the host, is the limit.
    """
    span = window(trace)
    times = intervals.clip(claim.intervals, span.start_ns, span.device_end_ns)
    if claim.is_device_work and unchanged(trace).simulation is None:
        return intervals.intersection(times, gpu_bound_times(trace).possible)
    return times


@computed
def unrecorded(trace: Trace) -> Simulation | None:
    """Return the replay of the step as it runs without the profiler; None without a replay."""
    replay = unchanged(trace).simulation
    return replay and replay.with_changes(unrecorded_world(trace).changes)


def changes_at_most(
    trace: Trace, claim: Claim, times: Intervals, replay: Simulation | None = None
) -> tuple[Change, ...]:
    """Return the changes of a claim's `times` that save most.

    They shorten the host and the devices of `replay`, by default the recorded ones.
    """
    if claim.changes is not None:
        return claim.changes.most if len(times) else ()
    if claim.waits is None and claim.calls is None:
        return _shortened(claim, times, claim.factor.high, replay or unchanged(trace).simulation)
    unblocked = () if claim.waits is None else (Unblock(calls=claim.waits),)
    return unblocked if claim.calls is None else (*unblocked, *remove_calls(trace, claim.calls))


def changes_at_least(
    trace: Trace, claim: Claim, times: Intervals, replay: Simulation | None = None
) -> tuple[Change, ...]:
    """Return the changes of a claim's `times` that save least.

    Of waits and calls that go, they are the same: then the claimed times limit the saving.
    """
    if claim.changes is not None:
        return claim.changes.least if len(times) else ()
    if claim.waits is None and claim.calls is None:
        return _shortened(claim, times, claim.factor.low, replay or unchanged(trace).simulation)
    return changes_at_most(trace, claim, times, replay) if claim.factor.low else ()


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


def _shortened(
    claim: Claim, times: Intervals, saved_share: float, replay: Simulation | None
) -> tuple[Change, ...]:
    if not saved_share or not len(times) or replay is None:
        return ()
    change = Shorten(
        times=times,
        share=saved_share,
        is_device_work=claim.is_device_work,
        reference_ns=replay.weight_ns,
    )
    return (change,)


def claimed_ns(trace: Trace, claims: Sequence[Claim]) -> float:
    """Return the greatest saving of claims in the window, without all other findings.

    Where no replay describes the trace, it is the sum of the claimed times.
    """
    return _cached(trace, claims, "recorded")


def unrecorded_ns(trace: Trace, claims: Sequence[Claim]) -> float | None:
    """Return the greatest saving of claims in the window as it runs without the profiler.

    None where no replay describes the trace.
    """
    return None if unrecorded(trace) is None else _cached(trace, claims, "unrecorded")


def _cached(trace: Trace, claims: Sequence[Claim], step: TimedStep) -> float:
    simulated, key = _simulated(trace), (step, *claims)
    if key not in simulated:
        replay = unchanged(trace).simulation if step == "recorded" else unrecorded(trace)
        simulated[key] = (
            summed_ns(trace, claims) if replay is None else _saved_ns(trace, claims, replay)
        )
    return simulated[key]


@computed
def _simulated(trace: Trace) -> dict[tuple[TimedStep | Claim, ...], float]:  # noqa: ARG001 (the key)
    """Return the savings that were simulated: a rule, the engine and the severity ask alike."""
    return {}


def _saved_ns(trace: Trace, claims: Sequence[Claim], replay: Simulation) -> float:
    changes = [
        change
        for claim in claims
        for change in changes_at_most(trace, claim, usable_times(trace, claim), replay)
    ]
    return float(max(0, replay.simulated_ns - replay.with_changes(changes).simulated_ns))


def summed_ns(trace: Trace, claims: Iterable[Claim]) -> float:
    """Return the sum of the claimed times in the window, at their greatest factors."""
    taken = intervals.EMPTY
    total = 0.0
    for claim in claims:
        times = usable_times(trace, claim)
        total += claim.factor.high * intervals.duration_ns(intervals.difference(times, taken))
        taken = intervals.merged(taken, times) if len(taken) else times
    return total
