"""Long stalls of a device: gaps in which the host was late by much, and for no device's sake."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class Stalls:
    """Gaps that hold much stalled time."""

    times: Intervals
    """All stalled time in them."""
    longest: Intervals
    """The longest of it in each gap, the longest gap's first."""
    held_ns: NDArray[np.int64]
    """How much stalled time each gap holds."""


def late_times(trace: Trace, device: DeviceActivity) -> Intervals:
    """Return when the host was late by 1 ms or more, and the time behind the last work.

    What data loading, the allocator or a wait for the device took is none of it.
    """
    ledger = idle_ledger(trace)[device.device]
    return intervals.merged(ledger.times["host-stall"], ledger.times["tail"])


def stalls_of(trace: Trace, device: DeviceActivity, late: Intervals, least_ns: int) -> Stalls:
    """Return the gaps that hold at least so much of some of the device's idle time."""
    ledger = idle_ledger(trace)[device.device]
    held = intervals.covered_ns(late, ledger.gaps[:, 0], ledger.gaps[:, 1])
    chosen = held >= least_ns
    times = intervals.intersection(ledger.gaps[chosen], late)
    gap = np.searchsorted(ledger.gaps[:, 0], times[:, 0], side="right") - 1
    order = np.lexsort((times[:, 0], times[:, 0] - times[:, 1]))  # longest first
    _, first = np.unique(gap[order], return_index=True)
    return Stalls(times=times, longest=times[order[np.sort(first)]], held_ns=held[chosen])
