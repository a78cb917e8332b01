"""Memory of each step: allocated, freed, peak, and not freed."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.window import complete_steps
from stepscope.analyses.memory.curve import MemoryCurve, memory_curves
from stepscope.analyses.memory.memory_devices import (
    DEVICE_COLUMNS,
    HELD,
    Pairs,
    device_columns,
    memory_devices,
    memory_pairs,
)
from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import Floats, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table
from stepscope.model.trace import Trace, computed

MOST_ROWS = 2**22
"""More rows come from damaged or made-up files with many devices."""
HOW_TO_STEP = "profiler.step()  # in the loop, at the end of each step"
SCHEMA: Schema = (
    *DEVICE_COLUMNS,
    Column("step", "int64", "id", "N in `ProfilerStep#N`."),
    Column("start_ns", "int64", "ns", "When the host began it."),
    Column("end_ns", "int64", "ns", "When the host ended it."),
    Column("end_bytes", "float64", "bytes", "Allocated at its end (torch); before torch 1.10 the"
           " change since the recording began."),
    Column("growth_bytes", "float64", "bytes", "More than at its beginning."),
    Column("peak_bytes", "float64", "bytes", "The most that was allocated in it."),
    Column("reserved_bytes", "float64", "bytes", "Reserved at its end; NaN: not known."),
    Column("allocated_bytes", "int64", "bytes", "Allocated in it, one after the other."),
    Column("freed_bytes", "int64", "bytes", "Freed in it."),
    Column("allocation_count", "int64", "count", "Allocations in it."),
    Column("left_bytes", "int64", "bytes", "Allocated in it and held to the recording's end."),
)  # fmt: skip


@public_table(
    "memory-by-step",
    SCHEMA,
    "One row per device and step: what it allocated, freed, reached and left behind.",
)
@computed
def memory_by_step(trace: Trace) -> pd.DataFrame:
    """Return one row per device and complete step, in `SCHEMA` columns.

    Raises:
        MissingDataError: the trace has no memory events, or no steps.
    """
    devices = memory_devices(trace)
    steps = complete_steps(trace).steps
    if not len(steps):
        reason = "no steps were recorded"
        raise MissingDataError(reason, HOW_TO_STEP)
    devices = devices[: max(1, MOST_ROWS // len(steps))]
    both = zip(memory_curves(trace), memory_pairs(trace), strict=True)
    of_device = [_figures(trace, steps, *next(both)) for _ in devices]
    columns = {
        column.name: np.concatenate(
            [np.zeros(0, dtype=column.dtype), *(figures[column.name] for figures in of_device)]
        )
        for column in SCHEMA[2:]
    }
    return pd.DataFrame({**device_columns(devices, [len(steps)] * len(devices)), **columns})


def _figures(
    trace: Trace, steps: pd.DataFrame, curve: MemoryCurve, pairs: Pairs
) -> dict[str, NDArray[np.generic]]:
    start_ns, end_ns = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    low = np.searchsorted(curve.time_ns, start_ns, side="left")
    high = np.searchsorted(curve.time_ns, end_ns, side="left")
    level = _before(curve, curve.level_bytes)
    size = trace.memory["bytes"].to_numpy()[curve.device.rows]
    left = pairs.state == HELD
    times = trace.memory["start_ns"].to_numpy()[pairs.allocated_at[left]]
    return {
        "step": steps["number"].to_numpy(),
        "start_ns": start_ns,
        "end_ns": end_ns,
        "end_bytes": level[high],
        "growth_bytes": level[high] - level[low],
        "peak_bytes": np.fmax(level[low], _most(level[1:], low, high)),
        "reserved_bytes": np.append(np.nan, curve.reserved_bytes)[high],
        "allocated_bytes": _sum(np.maximum(size, 0), low, high),
        "freed_bytes": _sum(np.maximum(-size, 0), low, high),
        "allocation_count": _sum((size > 0).astype(np.int64), low, high),
        "left_bytes": _sum(
            pairs.bytes[left],
            np.searchsorted(times, start_ns, side="left"),
            np.searchsorted(times, end_ns, side="left"),
        ),
    }


def _before(curve: MemoryCurve, level: Floats) -> Floats:
    """Return the level before each event, and after the last."""
    first_change = curve.change_bytes[:1].astype(np.float64)
    return np.concatenate((level[:1] - first_change, level))


def _sum(values: Ints, low: Ints, high: Ints) -> Ints:
    before = np.append(0, np.cumsum(values))
    sums: Ints = before[high] - before[low]
    return sums


def _most(level: Floats, low: Ints, high: Ints) -> Floats:
    """Return the maximum of each `level[low:high]`, NaN where that is empty."""
    ranges = np.stack((low, high), axis=1).ravel()
    most = np.fmax.reduceat(np.append(level, np.nan), ranges)[::2]
    return np.where(high > low, most, np.nan)
