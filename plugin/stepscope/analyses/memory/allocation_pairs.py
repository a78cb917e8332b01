"""Pairs of allocation and release: events of one device and address, by time.

An allocation is paired with the next event of its device and address if that releases as many
bytes. The bytes allocated are the sum of the pairs, of live memory at the end of the trace, and of
allocations that cannot be paired.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.memory.memory_devices import MemoryDevice, memory_devices
from stepscope.model.arrays import NONE, Ints
from stepscope.model.trace import Trace, computed

FREED, HELD, EARLIER, LOST, UNKNOWN = range(5)
STATES = {
    "freed": "Allocated and freed while recording.",
    "held": "Allocated while recording and not freed until its end.",
    "earlier": "Freed while recording, allocated before.",
    "lost": "Its address was given out again, or freed with another size: a record is missing.",
    "unknown": "No address was recorded (torch before 1.10): it cannot be paired.",
}
"""By code; each row of the pairing is in exactly one state."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """One device's allocations; arrays are parallel, by the time of each first event."""

    device: MemoryDevice
    bytes: Ints
    """Above 0."""
    allocated_at: Ints
    """Row of `memory`; -1 where the allocation was not recorded."""
    freed_at: Ints
    """Row of `memory`; -1 where the release was not recorded."""
    freed_by: Ints
    """First row at which it is certainly freed: its release, or the next use of its address; one
    past the last row where it lives to the end or nothing shows it."""
    state: NDArray[np.int8]


@computed
def memory_pairs(trace: Trace) -> tuple[Pairs, ...]:
    """Return the pairing of each device, in the order of `memory_devices`.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    return tuple(_pairs(trace, device) for device in memory_devices(trace))


def _pairs(trace: Trace, device: MemoryDevice) -> Pairs:
    rows = device.rows
    size = trace.memory["bytes"].to_numpy()[rows]
    address = trace.memory["address"].to_numpy()[rows]
    order = np.argsort(address, kind="stable")
    at, size, address = rows[order], size[order], address[order]
    is_same_next = np.append(address[1:] == address[:-1], False) & (address != NONE)
    next_size = np.append(size[1:], 0)
    is_freed_next = is_same_next & (size > 0) & (next_size == -size)
    is_partner = np.append(False, is_freed_next[:-1])
    state = np.select(
        [is_freed_next, address == NONE, size < 0, is_same_next],
        [FREED, UNKNOWN, EARLIER, LOST],
        HELD,
    )
    next_at = np.append(at[1:], NONE)
    ended = np.where(is_same_next, next_at, len(trace.memory))
    first = np.flatnonzero(~is_partner)
    first = first[np.argsort(at[first], kind="stable")]
    is_release = size[first] < 0
    return Pairs(
        device=device,
        bytes=np.abs(size[first]),
        allocated_at=np.where(is_release, NONE, at[first]),
        freed_at=np.where(is_release, at[first], np.where(is_freed_next, next_at, NONE)[first]),
        freed_by=np.where(is_release, at[first], ended[first]),
        state=state[first].astype(np.int8),
    )
