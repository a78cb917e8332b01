"""Growth of memory from step to step, and suspected leaks: allocations that stay behind.

Growth is the robust slope of allocated memory at the steps' ends. Leaks are by operator, module and
stack; the last step is ignored, since its allocations are freed in the next.
"""

import numpy as np
import pandas as pd

from stepscope.analyses.core.robust_slope import LIKELY, SURE, Slope, slope
from stepscope.analyses.core.window import complete_steps
from stepscope.analyses.memory.at_peak import memory_peak_table
from stepscope.analyses.memory.by_step import memory_by_step
from stepscope.analyses.memory.memory_devices import (
    DEVICE_COLUMNS,
    HELD,
    Pairs,
    device_columns,
    device_rows,
    memory_devices,
    memory_pairs,
)
from stepscope.analyses.memory.owners import module_names, operator_names, user_stacks
from stepscope.model.arrays import Floats, Ints, Objects
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.steps import step_at
from stepscope.model.table import public_table
from stepscope.model.trace import Trace, computed

MANY_STEPS = 6
SCHEMA: Schema = (
    *DEVICE_COLUMNS,
    Column("step_count", "int64", "count", "Complete steps that were compared: those at"
           " whose end the allocated memory is known."),
    Column("growth_bytes", "float64", "bytes", "A step (Theil-Sen); NaN: fewer than two steps."),
    Column("least_growth_bytes", "float64", "bytes", "A step, with 95 % confidence (Sen 1968)."),
    Column("most_growth_bytes", "float64", "bytes", "A step, with 95 % confidence (Sen 1968)."),
    Column("total_growth_bytes", "float64", "bytes", "From the first of these ends to the last."),
    Column("trend", "float64", "", "z of the Mann-Kendall test; beyond 1.96 no chance."),
    Column("confidence", "object", "text", "That it grows: `none`, `low`, `medium` (5 %), `high`"
           " (1 %, at least 6 steps)."),
    Column("full_after_step_count", "float64", "count", "Steps until the device is full, were it"
           " to go on; NaN: no growth, or not known."),
)  # fmt: skip


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
    trend, ends = slope(level), level[~np.isnan(level)]
    confidence = _confidence(trend, len(ends))
    grows = confidence != "none"
    return {
        "step_count": len(ends),
        "growth_bytes": trend.median,
        "least_growth_bytes": trend.low,
        "most_growth_bytes": trend.high,
        "total_growth_bytes": ends[-1] - ends[0] if len(ends) else np.nan,
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


FEW_STEPS, SURE_LEAK_STEPS = 3, 5
"""Steps before the last that a suspicion needs for medium and for high confidence."""
MOST_LEAKS = 10_000
LEAK_SCHEMA: Schema = (
    *DEVICE_COLUMNS,
    Column("operator", "category", "text", "Who allocated it; missing: no operator ran."),
    Column("module", "category", "text", "In which `nn.Module`; missing: none, or not recorded."),
    Column("stack", "category", "text", "In which functions, outermost first."),
    Column("left_bytes", "int64", "bytes", "Left behind by all steps but the last."),
    Column("allocation_count", "int64", "count", "In so many allocations."),
    Column("step_count", "int64", "count", "In how many steps something stayed behind."),
    Column("step_share", "float64", "share", "In that share of the steps before the last."),
    Column("bytes_per_step", "float64", "bytes", "The median of those steps."),
    Column("confidence", "object", "text", "That it leaks: `high` where every step of 5 or more"
           " leaves some and the device's memory grows, `medium` where three steps of four do,"
           " else `low`."),
)  # fmt: skip


@public_table(
    "memory-leaks",
    LEAK_SCHEMA,
    "One row per operator, module and stack whose allocations stay behind step after step.",
    title="Suspected leaks of memory",
)
@computed
def memory_leaks(trace: Trace) -> pd.DataFrame:
    """Return one row per device, operator, module and stack whose allocations accumulate.

    In `LEAK_SCHEMA` columns, the most memory first: allocations left behind in at least two steps,
    and in half of them.


    Raises:
        MissingDataError: the trace has no memory events, or no steps.
    """
    growth = memory_growth(trace)
    devices = memory_devices(trace)[: len(growth)]
    names = (operator_names(trace), module_names(trace), user_stacks(trace))
    grows = growth["confidence"].isin(["medium", "high"]).tolist()
    tables = [
        _of_device(trace, pairs, names, does_grow=does)
        for pairs, does in zip(memory_pairs(trace), grows, strict=False)
    ]
    counts = [len(table) for table in tables]
    plain = {column.name: column.dtype for column in LEAK_SCHEMA[5:]}
    joined = {
        name: np.concatenate([np.zeros(0, dtype), *(table[name].to_numpy() for table in tables)])
        for name, dtype in plain.items()
    }
    rows = np.concatenate(
        [np.zeros(0, dtype=np.int64), *(table["example"].to_numpy() for table in tables)]
    )
    owners = {
        column.name: pd.Categorical.from_codes(name.codes[rows], categories=name.categories)
        for column, name in zip(LEAK_SCHEMA[2:5], names, strict=True)
    }
    table = pd.DataFrame({**device_columns(devices, counts), **owners, **joined})
    table["confidence"] = pd.Series(joined["confidence"], dtype=object)
    ordered = table.sort_values("left_bytes", ascending=False, kind="stable")
    return ordered.head(MOST_LEAKS).reset_index(drop=True)


def _of_device(
    trace: Trace, pairs: Pairs, names: tuple[pd.Categorical, ...], *, does_grow: bool
) -> pd.DataFrame:
    """Return a device's suspects, each with an example row of `memory`."""
    steps = complete_steps(trace).steps.iloc[:-1]
    left = np.flatnonzero(pairs.state == HELD)
    rows = pairs.allocated_at[left]
    step = step_at(steps, trace.memory["start_ns"].to_numpy()[rows])
    left, rows, step = left[step >= 0], rows[step >= 0], step[step >= 0]
    group, example = _grouped(rows, names)
    allocations = pd.DataFrame({"group": group, "step": step, "bytes": pairs.bytes[left]})
    by_step = allocations.groupby(["group", "step"], sort=True)["bytes"].agg(["sum", "size"])
    groups = by_step.groupby(level="group", sort=True)
    step_count = groups.size().to_numpy()
    share = step_count / max(1, len(steps))
    table = pd.DataFrame(
        {
            "example": example,
            "left_bytes": groups["sum"].sum().to_numpy(),
            "allocation_count": groups["size"].sum().to_numpy(),
            "step_count": step_count,
            "step_share": share,
            "bytes_per_step": groups["sum"].median().to_numpy().astype(np.float64),
            "confidence": _leak_confidence(share, len(steps), does_grow=does_grow),
        }
    )
    return table[(step_count >= 2) & (share >= 0.5)]


def _grouped(rows: Ints, names: tuple[pd.Categorical, ...]) -> tuple[Ints, Ints]:
    """Return each row's group of equal names, and a row of each group."""
    group: Ints = np.zeros(len(rows), dtype=np.int64)
    for name in names:
        codes = name.codes[rows].astype(np.int64)
        group = pd.factorize(group * (len(name.categories) + 1) + codes + 1)[0]
    _, first = np.unique(group, return_index=True)
    return group, rows[first]


def _leak_confidence(share: Floats, step_count: int, *, does_grow: bool) -> Objects:
    is_high = (share >= 1) & does_grow & (step_count >= SURE_LEAK_STEPS)
    is_medium = (share >= 0.75) & (step_count >= FEW_STEPS)
    return np.array(
        np.select([is_high, is_medium], ["high", "medium"], default="low"), dtype=object
    )
