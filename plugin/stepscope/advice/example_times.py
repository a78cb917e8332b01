"""Claimed times that a finding shows as an example: those at its first event."""

import numpy as np

from stepscope.advice.rule_finding import RuleFinding
from stepscope.base.findings import ClaimedTime, EventReference
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules.shared.claimable_time import usable_times

MOST_TIMES = 8
GAP_PART = 1 / 200
"""Times nearer to each other than this part of their whole extent are shown as one."""


def example_times(trace: Trace, finding: RuleFinding) -> tuple[ClaimedTime, ...]:
    """Return the claimed times at the finding's first event, in order; empty without any.

    They are those that overlap the event, else the nearest; without an event, the longest.
    """
    claims, events = finding.finding.claims, finding.finding.events
    times = intervals.merged(intervals.EMPTY, *(usable_times(trace, claim) for claim in claims))
    if not len(times):
        return ()
    if not events:
        longest = int((times[:, 1] - times[:, 0]).argmax())
        return joined_times(times[longest : longest + 1])
    return joined_times(_at(times, events[0]))


def _at(times: Intervals, event: EventReference) -> Intervals:
    start_ns, end_ns = event.start_ns, event.start_ns + event.duration_ns
    overlaps = (times[:, 1] > start_ns) & (times[:, 0] < end_ns)
    if overlaps.any():
        return times[overlaps]
    distance_ns = np.maximum(times[:, 0] - end_ns, start_ns - times[:, 1])
    nearest = int(distance_ns.argmin())
    return times[nearest : nearest + 1]


def joined_times(times: Intervals) -> tuple[ClaimedTime, ...]:
    """Return the longest of the times, in order, where near ones are joined."""
    least_gap_ns = GAP_PART * (times[-1, 1] - times[0, 0])
    is_apart = times[1:, 0] - times[:-1, 1] >= least_gap_ns
    first = np.flatnonzero(np.append(True, is_apart))
    last = np.append(first[1:], len(times)) - 1
    claimed_ns = np.add.reduceat(times[:, 1] - times[:, 0], first)
    longest = np.sort(np.argsort(-claimed_ns, kind="stable")[:MOST_TIMES])
    return tuple(
        ClaimedTime(int(times[first[at], 0]), int(times[last[at], 1]), int(claimed_ns[at]))
        for at in longest.tolist()
    )
