"""What stands beside every allocation on the curve and in the timeline."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.memory.allocation_pairs import NONE, memory_pairs
from stepscope.analyses.memory.curve import memory_curves
from stepscope.analyses.memory.owners import operators_around
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True, eq=False)
class AllocationEvents:
    """Arrays parallel to `memory_allocations`."""

    freed_event: NDArray[np.int64]
    """The event that freed it; -1: not recorded."""
    owner_event: NDArray[np.int64]
    """The operator's call that allocated it; -1: none ran, or the allocation was not recorded."""
    allocated_level_bytes: NDArray[np.float64]
    """What the device held behind the allocation; NaN: it was not recorded."""
    freed_level_bytes: NDArray[np.float64]


@computed
def allocation_events(trace: Trace) -> AllocationEvents:
    """Return the events of every allocation, and the curve's height at them.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    pairs = memory_pairs(trace)
    allocated_at, freed_at = (
        np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(pair, name) for pair in pairs)])
        for name in ("allocated_at", "freed_at")
    )
    level = np.full(len(trace.memory) + 1, np.nan)  # the last is of no event
    for curve in memory_curves(trace):
        level[curve.device.rows] = curve.level_bytes
    event = np.append(trace.memory["event"].to_numpy(), NONE)
    call = np.append(operators_around(trace), NONE)[allocated_at]
    owner = np.append(trace.host_calls["event"].to_numpy(), NONE)[call]
    return AllocationEvents(
        freed_event=event[freed_at],
        owner_event=owner,
        allocated_level_bytes=level[allocated_at],
        freed_level_bytes=level[freed_at],
    )
