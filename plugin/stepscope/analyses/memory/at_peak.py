"""Peak of each device's memory, and the allocations live at it.

Recorded and unrecorded bytes sum to the allocator's total. Unrecorded bytes were allocated before
the trace and not freed in it, or their events are missing. Where the file has no totals, the peak
is that of the recorded allocations: a lower bound.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core.memory_peak import memory_peak
from stepscope.analyses.memory.curve import MemoryCurve, memory_curves
from stepscope.analyses.memory.memory_devices import (
    DEVICE_COLUMNS,
    EARLIER,
    UNKNOWN,
    Pairs,
    device_rows,
    memory_pairs,
)
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table
from stepscope.model.trace import Trace, computed

SCHEMA: Schema = (
    *DEVICE_COLUMNS,
    Column("peak_ns", "int64", "ns", "When most was allocated, the first time."),
    Column("allocated_bytes", "float64", "bytes", "Allocated then (torch); NaN before torch 1.10."),
    Column("change_bytes", "int64", "bytes", "More than when the recording began."),
    Column("recorded_bytes", "int64", "bytes", "Of it, allocated while recording."),
    Column("earlier_bytes", "int64", "bytes", "Allocated before, and freed while recording."),
    Column("unrecorded_bytes", "float64", "bytes", "The rest of what was allocated: before the"
           " recording, and held beyond it. NaN: no totals."),
    Column("reserved_bytes", "float64", "bytes", "Reserved then; NaN: the allocator keeps none."),
    Column("unused_bytes", "float64", "bytes", "Reserved then and not allocated; NaN: not known."),
    Column("most_reserved_bytes", "float64", "bytes", "The most that was ever reserved."),
    Column("capacity_bytes", "float64", "bytes", "`deviceProperties.totalGlobalMem`; NaN: not"
           " known."),
    Column("capacity_share", "float64", "share", "Most reserved of it; NaN: not known."),
)  # fmt: skip
ABSURD_SIZES = "this trace has no usable memory events: their sizes are impossible"


@dataclass(frozen=True, kw_only=True, eq=False)
class Peak:
    """Memory of one device at its peak or at another moment."""

    curve: MemoryCurve
    pairs: Pairs
    at: int
    """Index into the curve."""
    live: Ints
    """Indices into `pairs` of the live allocations."""

    @property
    def earlier_bytes(self) -> int:
        """Bytes allocated before the trace and freed later in it."""
        return int(self.pairs.bytes[self.live][self.is_earlier].sum())

    @property
    def recorded_bytes(self) -> int:
        """Bytes allocated during the trace."""
        return int(self.pairs.bytes[self.live][~self.is_earlier].sum())

    @property
    def is_earlier(self) -> Mask:
        """Mask of `live`: allocated before the trace."""
        return np.asarray(self.pairs.state[self.live] == EARLIER)

    @property
    def unrecorded_bytes(self) -> float:
        """Bytes that no event explains; below 0 where events are missing. NaN: no totals."""
        recorded = self.earlier_bytes + self.recorded_bytes
        return float(self.curve.allocated_bytes[self.at]) - recorded


@computed
def memory_at_peak(trace: Trace) -> tuple[Peak, ...]:
    """Return each device's peak, in the order of `memory_devices`.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    both = zip(memory_curves(trace), memory_pairs(trace), strict=True)
    return tuple(
        live_at(curve, pairs, int(np.nanargmax(curve.level_bytes))) for curve, pairs in both
    )


def peak_between(curve: MemoryCurve, start_ns: int, end_ns: int) -> int:
    """Return the index of the curve's peak in a time range, the level at its start included."""
    low, high = np.searchsorted(curve.time_ns, [start_ns, end_ns], side="left").tolist()
    low = max(0, low - 1)
    levels = curve.level_bytes[low : max(high, low + 1)]
    return int(low) if np.isnan(levels).all() else int(low + np.nanargmax(levels))


def latest_at(curve: MemoryCurve, time_ns: int) -> int:
    """Return the index of the curve's last event up to a time; before the first, the first."""
    return max(0, int(np.searchsorted(curve.time_ns, time_ns, side="right")) - 1)


def live_at(curve: MemoryCurve, pairs: Pairs, at: int) -> Peak:
    """Return a device's live memory after the event at this index of its curve."""
    row = curve.device.rows[at]
    begun = (pairs.allocated_at == NONE) | (pairs.allocated_at <= row)
    is_live = begun & (pairs.freed_by > row) & (pairs.state != UNKNOWN)
    return Peak(curve=curve, pairs=pairs, at=at, live=np.flatnonzero(is_live))


@public_table(
    "memory-peak",
    SCHEMA,
    "One row per device: peak of allocated memory, its time, and the part with a recorded origin.",
    title="Peak of memory",
)
def memory_peak_table(trace: Trace) -> pd.DataFrame:
    """Return one row per device, in `SCHEMA` columns.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    peaks = memory_at_peak(trace)
    devices = tuple(peak.curve.device for peak in peaks)
    figures = [_figures(trace, peak) for peak in peaks]
    return device_rows(SCHEMA, devices, figures)


def _figures(trace: Trace, peak: Peak) -> dict[str, float]:
    curve, at = peak.curve, peak.at
    reserved = curve.reserved_bytes
    most = float(np.fmax.reduce(reserved))
    capacity = _capacity(trace, peak)
    return {
        "peak_ns": int(curve.time_ns[at]),
        "allocated_bytes": curve.allocated_bytes[at],
        "change_bytes": int(curve.change_bytes[at]),
        "recorded_bytes": peak.recorded_bytes,
        "earlier_bytes": peak.earlier_bytes,
        "unrecorded_bytes": peak.unrecorded_bytes,
        "reserved_bytes": reserved[at],
        "unused_bytes": reserved[at] - curve.allocated_bytes[at],
        "most_reserved_bytes": most,
        "capacity_bytes": capacity,
        "capacity_share": most / capacity,
    }


def _capacity(trace: Trace, peak: Peak) -> float:
    device = peak.curve.device
    if device.type_code not in trace.dialect.memory_device_types:
        return np.nan
    peak_and_capacity = memory_peak(trace).get(device.number)
    return peak_and_capacity.capacity_bytes or np.nan if peak_and_capacity else np.nan
