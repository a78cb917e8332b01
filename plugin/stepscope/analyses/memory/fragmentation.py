"""Unused part of the memory that torch reserved.

torch's caching allocator takes segments from the device and keeps freed memory
(`c10/cuda/CUDACachingAllocator.cpp`). Reserved minus allocated is cache, rounding, and pieces too
small for the next request: an upper bound of fragmentation. A memory snapshot separates them
(`snapshot_tables.snapshot_pools`).

At most moments, and between steps nearly always, much reserved memory is unused. Only the unused
part when most is allocated shows pieces too small for a request, or an earlier, larger need
(`cache_fill`).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.memory.by_step import memory_by_step
from stepscope.analyses.memory.curve import MemoryCurve, memory_curves
from stepscope.analyses.memory.memory_devices import device_rows
from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import Mask
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table
from stepscope.model.trace import Trace, computed

SCHEMA: Schema = (
    Column("device_type", "category", "text", "`CUDA`, `HIP`, … (c10::DeviceType)."),
    Column("device", "int64", "id", "The allocator's number of the device."),
    Column("reserved_peak_ns", "int64", "ns", "When most was reserved, the first time."),
    Column("most_reserved_bytes", "float64", "bytes", "The most that was reserved."),
    Column("unused_bytes", "float64", "bytes", "Of it, not allocated then."),
    Column("unused_share", "float64", "share", "The same, of what was reserved then."),
    Column("most_unused_bytes", "float64", "bytes", "The most that was ever unused."),
    Column("mean_unused_share", "float64", "share", "Unused of reserved, both over time."),
    Column("end_unused_bytes", "float64", "bytes", "Unused at the recording's end."),
)


@public_table(
    "memory-fragmentation",
    SCHEMA,
    "One row per device with a caching allocator: how much of what it reserved lay idle.",
    title="Fragmentation of memory",
)
@computed
def memory_fragmentation(trace: Trace) -> pd.DataFrame:
    """Return one row per device whose allocator keeps a cache, in `SCHEMA` columns.

    Raises:
        MissingDataError: the trace has no memory events, or none says what was reserved.
    """
    curves = [curve for curve in memory_curves(trace) if _has_totals(curve).any()]
    if not curves:
        reason = "no reserved memory was recorded: CPUs have no cache, old torch does not record it"
        raise MissingDataError(reason)
    figures = [_figures(curve) for curve in curves]
    devices = tuple(curve.device for curve in curves)
    return device_rows(SCHEMA, devices, figures)


def _has_totals(curve: MemoryCurve) -> Mask:
    return ~np.isnan(curve.reserved_bytes) & ~np.isnan(curve.allocated_bytes)


def _figures(curve: MemoryCurve) -> dict[str, float]:
    has_totals = _has_totals(curve)
    time_ns, reserved = curve.time_ns[has_totals], curve.reserved_bytes[has_totals]
    unused = reserved - curve.allocated_bytes[has_totals]
    at = int(np.argmax(reserved))
    lasted = np.diff(time_ns).astype(np.float64)
    reserved_over_time = float((reserved[:-1] * lasted).sum())
    unused_over_time = float((unused[:-1] * lasted).sum())
    return {
        "reserved_peak_ns": int(time_ns[at]),
        "most_reserved_bytes": reserved[at],
        "unused_bytes": unused[at],
        "unused_share": unused[at] / reserved[at] if reserved[at] else np.nan,
        "most_unused_bytes": float(unused.max()),
        "mean_unused_share": (
            unused_over_time / reserved_over_time if reserved_over_time else np.nan
        ),
        "end_unused_bytes": unused[-1],
    }


@dataclass(frozen=True, kw_only=True)
class CacheFill:
    """One device's cache at its fullest, of the times at which most was reserved."""

    device_type: str
    device: int
    reserved_bytes: int
    unused_bytes: int
    """Reserved and allocated to no tensor."""
    time_ns: int
    step_unused_bytes: tuple[float, ...]
    """Unused bytes at the peak of each complete step; empty without steps."""

    @property
    def unused_share(self) -> float:
        """Unused fraction of reserved memory; 0 where nothing was reserved."""
        return self.unused_bytes / self.reserved_bytes if self.reserved_bytes else 0.0


@computed
def cache_fill(trace: Trace) -> tuple[CacheFill, ...]:
    """Return the cache of each device whose allocator keeps one.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    curves = (curve for curve in memory_curves(trace) if _has_totals(curve).any())
    return tuple(_fill(trace, curve) for curve in curves)


def _fill(trace: Trace, curve: MemoryCurve) -> CacheFill:
    has_totals = _has_totals(curve)
    reserved, allocated = curve.reserved_bytes[has_totals], curve.allocated_bytes[has_totals]
    at_most = np.flatnonzero(reserved == reserved.max())
    at = int(at_most[np.argmax(allocated[at_most])])
    return CacheFill(
        device_type=curve.device.type,
        device=curve.device.number,
        reserved_bytes=int(reserved[at]),
        unused_bytes=max(0, int(reserved[at] - allocated[at])),
        time_ns=int(curve.time_ns[has_totals][at]),
        step_unused_bytes=_in_steps(trace, curve),
    )


def _in_steps(trace: Trace, curve: MemoryCurve) -> tuple[float, ...]:
    try:
        steps = memory_by_step(trace)
    except MissingDataError:  # no steps
        return ()
    device = curve.device
    device_steps = steps[(steps["device_type"] == device.type) & (steps["device"] == device.number)]
    unused = (device_steps["reserved_bytes"] - device_steps["peak_bytes"]).to_numpy()
    return tuple(unused[~np.isnan(unused)].tolist())
