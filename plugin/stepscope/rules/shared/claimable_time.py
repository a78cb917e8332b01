"""What claims could save: time within the window, of device work where the device is the limit."""

from collections.abc import Iterable

from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import gpu_bound_times
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, severity_of


def possible(trace: Trace, claim: Claim) -> Intervals:
    """Return that part of a claim in which time can be won."""
    span = window(trace)
    mine = intervals.clip(claim.intervals, span.start_ns, span.device_end_ns)
    if not claim.is_device_work:
        return mine
    return intervals.intersection(mine, gpu_bound_times(trace).possible)


def claimed_ns(trace: Trace, claims: Iterable[Claim]) -> float:
    """Return what claims could save at most, if they were alone."""
    taken = intervals.EMPTY
    total = 0.0
    for claim in claims:
        mine = possible(trace, claim)
        total += claim.factor.high * intervals.duration_ns(intervals.difference(mine, taken))
        taken = intervals.merged(taken, mine) if len(taken) else mine
    return total


def is_worth_a_word(trace: Trace, claims: Iterable[Claim]) -> bool:
    """Tell whether claims could save enough of the window to be a finding."""
    return severity_of(claimed_ns(trace, claims) / window(trace).reference_ns) is not None
