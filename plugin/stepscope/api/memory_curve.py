"""A device's memory over time, with as many points as a screen shows."""

from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.memory.at_peak import Peak
from stepscope.analyses.memory.curve import MemoryCurve, decimated_indices
from stepscope.analyses.memory.memory_report import CPU_ONLY, NO_TOTALS
from stepscope.analyses.memory.ooms import memory_ooms
from stepscope.api.memory_devices import DeviceQuery, MemoryDeviceFacts, device_facts, select_device
from stepscope.api.metrics import whole
from stepscope.base.report import SCHEMA_VERSION
from stepscope.model.trace import Trace

MOST_PIXELS = 8192
MOST_OOMS = 200
MOST_STEPS = 2000


class CurveQuery(DeviceQuery, frozen=True, kw_only=True):
    """Which part of the curve, and how finely."""

    pixels: Annotated[int, msgspec.Meta(ge=1, le=MOST_PIXELS)] = 1200
    """How wide it is drawn: each pixel keeps its first, least, most and last event."""


class MemoryPoint(msgspec.Struct, frozen=True):
    """A moment of the curve."""

    time_ns: int
    bytes: int


class MemoryOom(msgspec.Struct, frozen=True):
    """A time that the device ran out of memory."""

    event: int
    time_ns: int
    asked_bytes: int | None
    unused_bytes: int | None
    """Reserved then, and not allocated."""
    cause: str
    """`fragmented`: so much lay unused, in pieces too small. `full`: there was not so much."""
    operator: str | None


class MemoryStep(msgspec.Struct, frozen=True):
    """A step of the host, for orientation."""

    number: int
    start_ns: int
    end_ns: int


class MemoryLevels(msgspec.Struct, frozen=True):
    """Levels behind events of the recording; each holds until the next."""

    time_ns: list[int]
    allocated_bytes: list[int | None]
    reserved_bytes: list[int | None]
    """Empty where the allocator keeps no cache."""
    event_count: int
    """How many events there are in that time; not all of them need be drawn."""


class MemoryOverTime(msgspec.Struct, frozen=True):
    """A device's memory over time."""

    schema: int
    devices: tuple[MemoryDeviceFacts, ...]
    device: str
    """Which of them this is."""
    start_ns: int
    end_ns: int
    """The time that is shown: what was asked for, else all of the recording that has memory."""
    levels: MemoryLevels
    peak: MemoryPoint | None
    """The most that was allocated in the time shown."""
    reserved_peak: MemoryPoint | None
    ooms: tuple[MemoryOom, ...]
    oom_count: int
    steps: tuple[MemoryStep, ...]
    notes: tuple[str, ...]
    """What should be known before the curve is believed."""


def over_time(trace: Trace, query: CurveQuery) -> MemoryOverTime:
    """Return the curve of one device.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    _, peak = select_device(trace, query.device)
    start_ns, end_ns = bounds(trace, query)
    ooms = _ooms(trace, peak)
    curve = peak.curve
    return MemoryOverTime(
        schema=SCHEMA_VERSION,
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
    """Return the time that was asked for, or that in which memory and steps were recorded."""
    if query.start_ns is not None and query.end_ns is not None:
        return query.start_ns, query.end_ns
    times = trace.memory["start_ns"].to_numpy()
    steps = trace.steps
    starts = [times.min(), *steps["start_ns"].to_numpy()[:1]]
    ends = [times.max() + 1, *steps["end_ns"].to_numpy()[-1:]]
    return int(min(starts)), int(max(ends))


def levels(curve: MemoryCurve, start_ns: int, end_ns: int, pixels: int) -> MemoryLevels:
    """Return the curve in a time; the level with which that begins is its first point."""
    has_reserved = not np.isnan(curve.reserved_bytes).all()
    drawn = [curve.level_bytes, *([curve.reserved_bytes] if has_reserved else [])]
    places = decimated_indices(curve.time_ns, drawn, start_ns, end_ns, pixels)
    before = int(np.searchsorted(curve.time_ns, start_ns, side="left")) - 1
    count = int(np.searchsorted(curve.time_ns, end_ns, side="right")) - before - 1
    time_ns = curve.time_ns[places]
    if before >= 0:
        places, time_ns = np.append(before, places), np.append(start_ns, time_ns)
    return MemoryLevels(
        time_ns=time_ns.tolist(),
        allocated_bytes=_numbers(curve.level_bytes[places]),
        reserved_bytes=_numbers(curve.reserved_bytes[places]) if has_reserved else [],
        event_count=count,
    )


def _numbers(values: NDArray[np.float64]) -> list[int | None]:
    return [whole(value) for value in values.tolist()]


def _most(
    curve: MemoryCurve, level: NDArray[np.float64], start_ns: int, end_ns: int
) -> MemoryPoint | None:
    """Return when a level was highest in a time, the first time; what it began with counts."""
    low, high = np.searchsorted(curve.time_ns, [start_ns, end_ns], side="left").tolist()
    low = max(0, low - 1)
    part = level[low:high]
    if not len(part) or np.isnan(part).all():
        return None
    at = low + int(np.nanargmax(part))
    return MemoryPoint(time_ns=max(start_ns, int(curve.time_ns[at])), bytes=int(level[at]))


def _ooms(trace: Trace, peak: Peak) -> tuple[MemoryOom, ...]:
    ooms, device = memory_ooms(trace), peak.curve.device
    own = ooms[(ooms["device_type"] == device.type) & (ooms["device"] == device.number)]
    return tuple(
        MemoryOom(
            event=int(row["event"]),
            time_ns=int(row["time_ns"]),
            asked_bytes=int(row["asked_bytes"]) if row["asked_bytes"] >= 0 else None,
            unused_bytes=whole(row["unused_bytes"]),
            cause=row["cause"],
            operator=row["operator"],
        )
        for row in own.to_dict("records")
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
