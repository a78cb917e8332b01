"""Which devices' memory a recording tells of, and the one that is asked about."""

import msgspec

from stepscope.analyses.memory.at_peak import ABSURD_SIZES, Peak, memory_at_peak, memory_peak_table
from stepscope.analyses.memory.curve import MemoryCurve
from stepscope.analyses.memory.memory_devices import CPU
from stepscope.api.endpoint import TimeRangeQuery
from stepscope.api.metrics import whole
from stepscope.base.errors import MissingDataError, UnknownNameError
from stepscope.model.trace import Trace


class DeviceQuery(TimeRangeQuery, frozen=True, kw_only=True):
    """Parameters of what is asked of one device's memory."""

    device: str = ""
    """A `MemoryDeviceFacts.id`; empty: the accelerator that held most, else the CPU."""


class MemoryDeviceFacts(msgspec.Struct, frozen=True):
    """One device whose memory was recorded."""

    id: str
    """`CPU`, `CUDA 0`, `HIP 1`."""
    peak_bytes: int
    """The most that tensors held; where `has_totals` is false, more than at the beginning."""
    peak_ns: int
    """When, the first time."""
    most_reserved_bytes: int | None
    """The most that the caching allocator took from the device; null where it keeps no cache."""
    capacity_bytes: int | None
    """All that the device has; null: not recorded."""
    event_count: int
    """Allocations and releases."""
    has_totals: bool
    """False before torch 1.10, which wrote no totals."""


def device_facts(trace: Trace) -> tuple[MemoryDeviceFacts, ...]:
    """Return all devices, those that are no CPU first, the most held first.

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
    order = _order(trace)
    return tuple(facts[place] for place in order)


def select_device(trace: Trace, name: str) -> tuple[int, Peak]:
    """Return the place among `memory_devices` of the device that is asked about, and its peak.

    Raises:
        MissingDataError: the trace has no memory events, or none that can be told.
        UnknownNameError: it tells of no device of that name.
    """
    peaks = memory_at_peak(trace)
    labels = [peak.curve.device.label for peak in peaks]
    if not labels:
        raise MissingDataError(ABSURD_SIZES)
    if not name:
        place = _order(trace)[0]
        return place, peaks[place]
    if name not in labels:
        msg = f"the recording tells of no device {name!r}; it does of {', '.join(labels)}"
        raise UnknownNameError(msg)
    return labels.index(name), peaks[labels.index(name)]


def level_at(curve: MemoryCurve, at: int) -> int | None:
    """Return what is held behind an event of the curve; None: not known."""
    return whole(float(curve.level_bytes[at]))


def _order(trace: Trace) -> list[int]:
    peaks = memory_at_peak(trace)

    def rank(place: int) -> tuple[bool, float]:
        peak = peaks[place]
        return peak.curve.device.type_code == CPU, -float(peak.curve.level_bytes[peak.at])

    return sorted(range(len(peaks)), key=rank)
