"""Memory of each device over time: allocated to tensors, and reserved from the device.

The totals are the allocators' own, which the profiler writes with every event. On devices they are
the caching allocator's (`c10/cuda/CUDACachingAllocator.cpp`, `reportMemoryUsageToProfiler`). On the
CPU torch counts allocations made while a profiler runs, and reserves nothing
(`c10/core/CPUAllocator.cpp`, `ProfiledCPUMemoryReporter`). Traces of torch before 1.10 have no
totals: their curve is the change since the start of the trace, from the events' sizes.

Nothing is averaged: a peak of one event keeps its height. (Jugel et al., M4, VLDB 2014.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.memory.memory_devices import (
    DEVICE_COLUMNS,
    MemoryDevice,
    device_columns,
    memory_devices,
)
from stepscope.model.arrays import Floats, Ints, Mask
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table
from stepscope.model.trace import Trace, computed

MOST_TOTAL_BYTES = 2.0**63
SCHEMA: Schema = (
    Column("event", "int64", "id", "The memory event's place in the file."),
    *DEVICE_COLUMNS,
    Column("time_ns", "int64", "ns", "When, from the trace's first event."),
    Column("change_bytes", "int64", "bytes", "Allocated less freed since the recording began."),
    Column("allocated_bytes", "float64", "bytes", "Held by tensors (torch); NaN before torch"
           " 1.10."),
    Column("reserved_bytes", "float64", "bytes", "Taken from the device by torch's caching"
           " allocator; NaN where it keeps none, as on CPUs."),
    Column("unused_bytes", "float64", "bytes", "Reserved but not allocated; NaN: not known."),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryCurve:
    """One device's memory after each of its events; parallel to `device.rows`."""

    device: MemoryDevice
    time_ns: Ints
    change_bytes: Ints
    allocated_bytes: Floats
    reserved_bytes: Floats

    @property
    def has_totals(self) -> bool:
        """Whether the file has the total of allocated memory."""
        return not bool(np.isnan(self.allocated_bytes).all())

    @property
    def level_bytes(self) -> Floats:
        """Allocated bytes; without totals, the change since the start of the trace."""
        return self.allocated_bytes if self.has_totals else self.change_bytes.astype(np.float64)


@computed
def memory_curves(trace: Trace) -> tuple[MemoryCurve, ...]:
    """Return each device's curve, in the order of `memory_devices`.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    return tuple(_curve(trace, device) for device in memory_devices(trace))


@public_table(
    "memory-curve",
    SCHEMA,
    "One row per allocation or release: what its device's allocator held behind it.",
    title="Memory over time",
)
def memory_curve(trace: Trace) -> pd.DataFrame:
    """Return one row per memory event, in `SCHEMA` columns, by device and then by time."""
    curves = memory_curves(trace)
    devices = tuple(curve.device for curve in curves)
    rows = _joined([device.rows for device in devices], np.int64)
    allocated = _joined([curve.allocated_bytes for curve in curves], np.float64)
    reserved = _joined([curve.reserved_bytes for curve in curves], np.float64)
    columns = {
        "event": trace.memory["event"].to_numpy()[rows],
        **device_columns(devices, [len(device.rows) for device in devices]),
        "time_ns": trace.memory["start_ns"].to_numpy()[rows],
        "change_bytes": _joined([curve.change_bytes for curve in curves], np.int64),
        "allocated_bytes": allocated,
        "reserved_bytes": reserved,
        "unused_bytes": reserved - allocated,
    }
    return pd.DataFrame(columns, copy=False)


def _curve(trace: Trace, device: MemoryDevice) -> MemoryCurve:
    memory, rows = trace.memory, device.rows
    reserved = _sound(memory["reserved_bytes"].to_numpy()[rows])
    if not (reserved > 0).any():  # an allocator without a cache writes 0
        reserved = np.full(len(rows), np.nan)
    return MemoryCurve(
        device=device,
        time_ns=memory["start_ns"].to_numpy()[rows],
        change_bytes=np.cumsum(memory["bytes"].to_numpy()[rows]),
        allocated_bytes=_sound(memory["allocated_bytes"].to_numpy()[rows]),
        reserved_bytes=reserved,
    )


def _sound(total: Floats) -> Floats:
    """Return totals, NaN for damaged ones: negative, or above 64 bits."""
    return np.where((total >= 0) & (total < MOST_TOTAL_BYTES), total, np.nan)


def _joined(parts: list[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=dtype), *parts])


def decimated_indices(
    time_ns: Ints, levels: Sequence[Floats], start_ns: int, end_ns: int, pixels: int
) -> Ints:
    """Return the indices of the events to draw, in order, for curves over the same times.

    Times ascend; `[start_ns, end_ns]` is the range that the pixels show.
    """
    low = int(np.searchsorted(time_ns, start_ns, side="left"))
    high = int(np.searchsorted(time_ns, end_ns, side="right"))
    if high - low <= (2 + 2 * len(levels)) * pixels:
        return np.arange(low, high)
    pixel = (time_ns[low:high] - start_ns) * pixels // max(1, end_ns - start_ns + 1)
    first = np.flatnonzero(np.append(True, pixel[1:] != pixel[:-1]))
    last = np.append(first[1:], len(pixel)) - 1
    group = np.repeat(np.arange(len(first)), last - first + 1)
    parts = [first, last]
    for level in levels:
        for extreme in (np.fmin, np.fmax):
            values = level[low:high]
            parts.append(_first_of(group, values == extreme.reduceat(values, first)[group]))
    indices: Ints = low + np.unique(np.concatenate(parts))
    return indices


def _first_of(group: Ints, is_one: Mask) -> Ints:
    """Return the first index of each group where the mask is true; groups ascend."""
    places = np.flatnonzero(is_one)
    is_first = np.append(True, np.diff(group[places]) != 0)[: len(places)]
    first: Ints = places[is_first]
    return first
