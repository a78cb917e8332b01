"""Devices with recorded memory, and the selection of one."""

import msgspec

from stepscope.analyses.memory.at_peak import ABSURD_SIZES, Peak, memory_at_peak, memory_peak_table
from stepscope.analyses.memory.curve import MemoryCurve
from stepscope.analyses.memory.memory_devices import CPU
from stepscope.api.endpoint import TimeRangeQuery
from stepscope.api.metrics import whole
from stepscope.base.errors import MissingDataError, UnknownNameError
from stepscope.model.trace import Trace


class DeviceQuery(TimeRangeQuery, frozen=True, kw_only=True):
    """A device's memory, with a time range."""

    device: str = ""
    """A `MemoryDeviceFacts.id`; empty: the accelerator with the highest peak, else the CPU."""


class MemoryDeviceFacts(msgspec.Struct, frozen=True):
    """One device whose memory was recorded."""

    id: str
    """`CPU`, `CUDA 0`, `HIP 1`."""
    peak_bytes: int
    """Peak of allocated memory; where `has_totals` is false, relative to the start."""
    peak_ns: int
    """Time of the first peak."""
    most_reserved_bytes: int | None
    """Peak of the caching allocator's reserved memory; null without a cache."""
    capacity_bytes: int | None
    """Total memory of the device; null: not recorded."""
    event_count: int
    """Number of allocations and frees."""
    has_totals: bool
    """False before torch 1.10, which recorded no totals."""


def device_facts(trace: Trace) -> tuple[MemoryDeviceFacts, ...]:
    """Return all devices, accelerators first, highest peak first.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    rows = memory_peak_table(trace).to_dict("records")
    facts = [
        MemoryDeviceFacts(
            id=peak.curve.device.label,
            peak_bytes=int(peak.curve.level_bytes[peak.at]),
            peak_ns=int(peak.curve.time_ns[peak.at]),
            most_reserved_bytes=whole(row["most_reserved_bytes"]),
            capacity_bytes=whole(row["capacity_bytes"]),
            event_count=len(peak.curve.time_ns),
            has_totals=peak.curve.has_totals,
        )
        for peak, row in zip(memory_at_peak(trace), rows, strict=True)
    ]
    return tuple(facts[index] for index in _order(trace))


def select_device(trace: Trace, name: str) -> tuple[int, Peak]:
    """Return the index of a device in `memory_at_peak`, and its peak.

    Raises:
        MissingDataError: the trace has no memory events, or none with plausible sizes.
        UnknownNameError: the trace has no memory of this device.
    """
    peaks = memory_at_peak(trace)
    labels = [peak.curve.device.label for peak in peaks]
    if not labels:
        raise MissingDataError(ABSURD_SIZES)
    if not name:
        index = _order(trace)[0]
        return index, peaks[index]
    if name not in labels:
        msg = f"the trace has no memory of {name!r}; its devices are {', '.join(labels)}"
        raise UnknownNameError(msg)
    return labels.index(name), peaks[labels.index(name)]


def level_at(curve: MemoryCurve, at: int) -> int | None:
    """Return the allocated memory after an event of the curve; None: unknown."""
    return whole(float(curve.level_bytes[at]))


def _order(trace: Trace) -> list[int]:
    peaks = memory_at_peak(trace)

    def rank(index: int) -> tuple[bool, float]:
        peak = peaks[index]
        return peak.curve.device.type_code == CPU, -float(peak.curve.level_bytes[peak.at])

    return sorted(range(len(peaks)), key=rank)
