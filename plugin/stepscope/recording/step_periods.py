"""Periods of steps: every so many steps one takes much longer, and belongs to the others.

A policy is updated several times after each rollout; a loop logs or saves now and then. A window
without the long step would not show most of the time, so a period is recorded as a whole.
"""

import statistics
from collections.abc import Sequence

LONG = 3
"""A step of this many median steps is long."""
LEAST_FRACTION = 0.1
"""Long steps matter from this fraction of all steps' time on."""
LEAST_COUNT = 3
"""Long steps at even distances that show a period."""
MOST_STEPS = 64
MOST_NS = 10 * 10**9
"""Longer periods are not recorded as a whole."""


def has_long_steps(durations_ns: Sequence[int]) -> bool:
    """Return whether steps that are long take a large part of all steps' time."""
    if not durations_ns:
        return False
    least_ns = LONG * statistics.median(durations_ns)
    long_ns = sum(duration for duration in durations_ns if duration >= least_ns)
    return long_ns >= LEAST_FRACTION * sum(durations_ns)


def period(durations_ns: Sequence[int]) -> int:
    """Return the smallest number of steps after which a step is long each time; 0 without one.

    Other steps may be long, too: other programs delay some of them.
    """
    if not durations_ns:
        return 0
    least_ns = LONG * statistics.median(durations_ns)
    total_ns, count = sum(durations_ns), len(durations_ns)
    for steps in range(2, min(count // LEAST_COUNT, MOST_STEPS) + 1):
        if steps * total_ns > MOST_NS * count:
            return 0
        for first in range(steps):
            long = durations_ns[first::steps]
            if min(long) >= least_ns and sum(long) >= LEAST_FRACTION * total_ns:
                return steps
    return 0
