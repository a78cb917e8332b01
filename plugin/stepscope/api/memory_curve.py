"""A device's memory over time, decimated to the pixels of a chart."""

from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.memory.at_peak import Peak
from stepscope.analyses.memory.curve import MemoryCurve, decimated_indices
from stepscope.analyses.memory.memory_report import CPU_ONLY, NO_TOTALS, memory_ooms
from stepscope.api.memory_devices import DeviceQuery, MemoryDeviceFacts, device_facts, select_device
from stepscope.api.messages import Response
from stepscope.api.metrics import whole
from stepscope.model.trace import Trace

MOST_PIXELS = 8192
MOST_OOMS = 200
MOST_STEPS = 2000


class CurveQuery(DeviceQuery, frozen=True, kw_only=True):
    """A part of the curve, and its resolution."""

    pixels: Annotated[int, msgspec.Meta(ge=1, le=MOST_PIXELS)] = 1200
    """Width of the chart: each pixel keeps its first, least, greatest and last event."""


class MemoryPoint(msgspec.Struct, frozen=True):
    """A point of the curve."""

    time_ns: int
    bytes: int


class MemoryOom(msgspec.Struct, frozen=True):
    """An out-of-memory error of the device."""

    event: int
    time_ns: int
    asked_bytes: int | None
    unused_bytes: int | None
    """Reserved memory that was not allocated."""
    cause: str
    """`fragmented`: unused memory sufficed, in too small pieces. `full`: it did not."""
    operator: str | None


class MemoryStep(msgspec.Struct, frozen=True):
    """A step of the host."""

    number: int
    start_ns: int
    end_ns: int


class MemoryLevels(msgspec.Struct, frozen=True):
    """Memory after events of the trace; a level holds until the next."""

    time_ns: list[int]
    allocated_bytes: list[int | None]
    reserved_bytes: list[int | None]
    """Empty where the allocator has no cache."""
    event_count: int
    """Number of all events in the time range."""


class MemoryOverTime(Response, frozen=True, kw_only=True):
    """A device's memory over time."""

    devices: tuple[MemoryDeviceFacts, ...]
    device: str
    """Id of the device."""
    start_ns: int
    end_ns: int
    """End of the requested range, or of the recorded memory and steps."""
    levels: MemoryLevels
    peak: MemoryPoint | None
    """The highest allocated level in the time range."""
    reserved_peak: MemoryPoint | None
    ooms: tuple[MemoryOom, ...]
    oom_count: int
    steps: tuple[MemoryStep, ...]
    notes: tuple[str, ...]
    """Limitations of the curve."""


def over_time(trace: Trace, query: CurveQuery) -> MemoryOverTime:
    """Return a device's allocated and reserved memory over time.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    _, peak = select_device(trace, query.device)
    start_ns, end_ns = bounds(trace, query)
    ooms = _ooms(trace, peak)
    curve = peak.curve
    return MemoryOverTime(
        devices=device_facts(trace),
        device=curve.device.label,
        start_ns=start_ns,
        end_ns=end_ns,
        levels=levels(curve, start_ns, end_ns, query.pixels),
        peak=_most(curve, curve.level_bytes, start_ns, end_ns),
        reserved_peak=_most(curve, curve.reserved_bytes, start_ns, end_ns),
        ooms=ooms[:MOST_OOMS],
        oom_count=len(ooms),
        steps=_steps(trace, start_ns, end_ns),
        notes=_notes(curve),
    )


def bounds(trace: Trace, query: DeviceQuery) -> tuple[int, int]:
    """Return the requested time range, or that of the recorded memory and steps."""
    if query.start_ns is not None and query.end_ns is not None:
        return query.start_ns, query.end_ns
    times = trace.memory["start_ns"].to_numpy()
    steps = trace.steps
    starts = [times.min(), *steps["start_ns"].to_numpy()[:1]]
    ends = [times.max() + 1, *steps["end_ns"].to_numpy()[-1:]]
    return int(min(starts)), int(max(ends))


def levels(curve: MemoryCurve, start_ns: int, end_ns: int, pixels: int) -> MemoryLevels:
    """Return the curve in a time range, beginning with the level at its start."""
    has_reserved = not np.isnan(curve.reserved_bytes).all()
    drawn = [curve.level_bytes, *([curve.reserved_bytes] if has_reserved else [])]
    indices = decimated_indices(curve.time_ns, drawn, start_ns, end_ns, pixels)
    before = int(np.searchsorted(curve.time_ns, start_ns, side="left")) - 1
    count = int(np.searchsorted(curve.time_ns, end_ns, side="right")) - before - 1
    time_ns = curve.time_ns[indices]
    if before >= 0:
        indices, time_ns = np.append(before, indices), np.append(start_ns, time_ns)
    return MemoryLevels(
        time_ns=time_ns.tolist(),
        allocated_bytes=_numbers(curve.level_bytes[indices]),
        reserved_bytes=_numbers(curve.reserved_bytes[indices]) if has_reserved else [],
        event_count=count,
    )


def _numbers(values: NDArray[np.float64]) -> list[int | None]:
    return [whole(value) for value in values.tolist()]


def _most(
    curve: MemoryCurve, level: NDArray[np.float64], start_ns: int, end_ns: int
) -> MemoryPoint | None:
    """Return the first maximum of a level in a time range, its start included."""
    low, high = np.searchsorted(curve.time_ns, [start_ns, end_ns], side="left").tolist()
    low = max(0, low - 1)
    part = level[low:high]
    if not len(part) or np.isnan(part).all():
        return None
    at = low + int(np.nanargmax(part))
    return MemoryPoint(time_ns=max(start_ns, int(curve.time_ns[at])), bytes=int(level[at]))


def _ooms(trace: Trace, peak: Peak) -> tuple[MemoryOom, ...]:
    ooms, device = memory_ooms(trace), peak.curve.device
    of_device = ooms[(ooms["device_type"] == device.type) & (ooms["device"] == device.number)]
    return tuple(
        MemoryOom(
            event=int(row["event"]),
            time_ns=int(row["time_ns"]),
            asked_bytes=int(row["asked_bytes"]) if row["asked_bytes"] >= 0 else None,
            unused_bytes=whole(row["unused_bytes"]),
            cause=row["cause"],
            operator=row["operator"],
        )
        for row in of_device.to_dict("records")
    )


def _steps(trace: Trace, start_ns: int, end_ns: int) -> tuple[MemoryStep, ...]:
    steps = trace.steps
    is_shown = (steps["end_ns"] > start_ns) & (steps["start_ns"] < end_ns)
    shown = steps[is_shown.to_numpy()].head(MOST_STEPS)
    names = ("number", "start_ns", "end_ns")
    return tuple(
        MemoryStep(number=number, start_ns=start, end_ns=end)
        for number, start, end in zip(*(shown[name].tolist() for name in names), strict=True)
    )


def _notes(curve: MemoryCurve) -> tuple[str, ...]:
    if not curve.has_totals:
        return (NO_TOTALS,)
    return (CPU_ONLY,) if curve.device.type == "CPU" else ()
