"""Peak memory and capacity of each device."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepscope.model.trace import Trace, computed, whole_number

MOST_BYTES = 2**63
"""Larger figures are damage."""


@dataclass(frozen=True, kw_only=True)
class MemoryPeak:
    """One device's memory; None: not recorded."""

    device: int
    allocated_bytes: int | None
    reserved_bytes: int | None
    capacity_bytes: int | None

    @property
    def peak_bytes(self) -> int | None:
        """Peak of reserved memory, else of allocated memory."""
        return self.reserved_bytes if self.reserved_bytes is not None else self.allocated_bytes

    @property
    def capacity_share(self) -> float | None:
        """Fraction of the device's memory at the peak."""
        if self.peak_bytes is None or not self.capacity_bytes:
            return None
        return self.peak_bytes / self.capacity_bytes


@computed
def memory_peak(trace: Trace) -> dict[int, MemoryPeak]:
    """Return the peak of every device with memory events or properties, by its number."""
    memory = trace.memory
    on_device = memory["device_type_code"].isin(list(trace.dialect.memory_device_types)).to_numpy()
    device = memory["device"].to_numpy()
    capacities = _capacities(trace)
    seen = {int(number) for number in np.unique(device[on_device])} | set(capacities)
    peaks = {}
    for number in sorted(seen):
        rows = on_device & (device == number)
        peaks[number] = MemoryPeak(
            device=number,
            allocated_bytes=_most(memory["allocated_bytes"].to_numpy()[rows]),
            reserved_bytes=_most(memory["reserved_bytes"].to_numpy()[rows]),
            capacity_bytes=capacities.get(number),
        )
    return peaks


def _most(values: np.ndarray[Any, Any]) -> int | None:
    valid = values[np.abs(values) < MOST_BYTES]  # NaN is not
    return int(valid.max()) if len(valid) else None


def device_properties(trace: Trace) -> dict[int, Mapping[str, Any]]:
    """Return `deviceProperties` by the device's `id`, else by its index in the list."""
    listed = trace.metadata.get("deviceProperties")
    if not isinstance(listed, list):
        return {}
    return {
        number: entry
        for index, entry in enumerate(listed)
        if isinstance(entry, Mapping)
        and (number := whole_number(entry.get("id", index))) is not None
    }


def _capacities(trace: Trace) -> dict[int, int]:
    properties = device_properties(trace)
    return {
        number: int(entry["totalGlobalMem"])
        for number, entry in properties.items()
        if isinstance(entry.get("totalGlobalMem"), int | float)
        and 0 < entry["totalGlobalMem"] < MOST_BYTES
    }
