"""Growth of memory from step to step: the robust slope of allocated memory at the steps' ends."""

import numpy as np
import pandas as pd

from stepscope.analyses.core.complete_steps import complete_steps
from stepscope.analyses.core.robust_slope import LIKELY, SURE, Slope, slope
from stepscope.analyses.memory.at_peak import memory_peak_table
from stepscope.analyses.memory.by_step import memory_by_step
from stepscope.analyses.memory.memory_devices import DEVICE_COLUMNS, device_rows, memory_devices
from stepscope.model.arrays import Floats
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table
from stepscope.model.trace import Trace, computed

MANY_STEPS = 6
SCHEMA: Schema = (
    *DEVICE_COLUMNS,
    Column("step_count", "int64", "count", "Complete steps that were compared."),
    Column("growth_bytes", "float64", "bytes", "A step (Theil-Sen); NaN: fewer than two steps."),
    Column("least_growth_bytes", "float64", "bytes", "A step, with 95 % confidence (Sen 1968)."),
    Column("most_growth_bytes", "float64", "bytes", "A step, with 95 % confidence (Sen 1968)."),
    Column("total_growth_bytes", "float64", "bytes", "From the first step's end to the last's."),
    Column("trend", "float64", "", "z of the Mann-Kendall test; beyond 1.96 no chance."),
    Column(
        "confidence",
        "object",
        "text",
        "That it grows: `none`, `low`, `medium` (5 %), `high` (1 %, at least 6 steps).",
    ),
    Column(
        "full_after_step_count",
        "float64",
        "count",
        "Steps until the device is full, were it to go on; NaN: no growth, or not known.",
    ),
)


@public_table(
    "memory-growth",
    SCHEMA,
    "One row per device: how much more it holds with every step, and whether that is chance.",
    title="Growth of memory",
)
@computed
def memory_growth(trace: Trace) -> pd.DataFrame:
    """Return one row per device, in `SCHEMA` columns.

    Raises:
        MissingDataError: the trace has no memory events, or no steps.
    """
    steps = memory_by_step(trace)
    levels = steps["end_bytes"].to_numpy().reshape(-1, len(complete_steps(trace)))
    devices, peaks = memory_devices(trace)[: len(levels)], memory_peak_table(trace)
    room = (peaks["capacity_bytes"] - peaks["most_reserved_bytes"]).to_numpy()
    figures = [_figures(level, left) for level, left in zip(levels, room, strict=False)]
    return device_rows(SCHEMA, devices, figures)


def _figures(level: Floats, room: float) -> dict[str, float | str]:
    trend = slope(level)
    confidence = _confidence(trend, len(level))
    grows = confidence != "none"
    return {
        "step_count": len(level),
        "growth_bytes": trend.median,
        "least_growth_bytes": trend.low,
        "most_growth_bytes": trend.high,
        "total_growth_bytes": level[-1] - level[0],
        "trend": trend.z,
        "confidence": confidence,
        "full_after_step_count": max(room, 0.0) / trend.median if grows else np.nan,
    }


def _confidence(trend: Slope, step_count: int) -> str:
    if not trend.median > 0:
        return "none"
    if trend.z >= SURE and step_count >= MANY_STEPS:
        return "high"
    return "medium" if trend.z >= LIKELY else "low"
