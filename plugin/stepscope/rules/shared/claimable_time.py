"""Potential savings of claims: time in the window; of device work only where it is the limit."""

from collections.abc import Iterable

from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import gpu_bound_times
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, severity_of


def possible(trace: Trace, claim: Claim) -> Intervals:
    """Return the part of a claim in which time can be saved."""
    span = window(trace)
    times = intervals.clip(claim.intervals, span.start_ns, span.device_end_ns)
    if not claim.is_device_work:
        return times
    return intervals.intersection(times, gpu_bound_times(trace).possible)


def claimed_ns(trace: Trace, claims: Iterable[Claim]) -> float:
    """Return the greatest potential saving of claims, apart from all other findings."""
    taken = intervals.EMPTY
    total = 0.0
    for claim in claims:
        times = possible(trace, claim)
        total += claim.factor.high * intervals.duration_ns(intervals.difference(times, taken))
        taken = intervals.merged(taken, times) if len(taken) else times
    return total


def is_worth_reporting(trace: Trace, claims: Iterable[Claim]) -> bool:
    """Return whether claims could save enough of the window for a finding."""
    return severity_of(claimed_ns(trace, claims) / window(trace).reference_ns) is not None
