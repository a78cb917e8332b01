"""Hardware counters of CUPTI's range profiler, by kernel and by operator.

`torch.profiler` with `_ExperimentalConfig(profiler_metrics=…, profiler_measure_per_kernel=True)`
measured counters instead of the kernels' times (kineto's `CuptiRangeProfiler.cpp`, until 2026). A
range's time in the trace is no measurement: kineto divides the recorded span by the number of
ranges. Its place among the ranges is that of its launch among the launches, as in HTA
(`cupti_counter_analysis.py`), which gives its operator where there are as many of both.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import group_statistics as statistics
from stepscope.analyses.core.ancestry import nearest_of
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.links import links
from stepscope.analyses.devices.kernel_launches import single_launches
from stepscope.dialects import RANGE_COUNTERS
from stepscope.model.arrays import NONE, Floats, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.counters import NO_SERIES
from stepscope.model.frames.source import as_number
from stepscope.model.table import public_table, texts_at, to_frame
from stepscope.model.trace import Trace, computed

FLOPS = "flops"
"""The counter that is derived from `SASS_OPERATIONS`."""
SASS_OPERATIONS = {
    f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum": 2 if name.endswith("fma") else 1
    for name in ("fadd", "fmul", "ffma", "hadd", "hmul", "hfma", "dadd", "dmul", "dfma")
}
"""Instructions of the CUDA cores, with the operations of each (HTA's weights); the matrix units'
instructions are not among them."""
DEVICE_NUMBER = re.compile(r"[0-9]{1,9}")
BY_KERNEL: Schema = (
    Column("event", "int64", "id", "Index of the range in the file."),
    Column("device", "int64", "id", "The device's number; -1: unknown."),
    Column("kernel", "object", "text", "The kernel's name in short, or the range's."),
    Column("full_name", "object", "text", "The name as the profiler wrote it."),
    Column("operator", "object", "text", "The innermost operator around the launch; None: none, or"
           " not as many launches as ranges were recorded."),
    Column("top_operator", "object", "text", "The outermost operator around the launch."),
    Column("counter", "object", "text", "The counter's name, CUPTI's; `flops` is the sum of the"
           " CUDA cores' additions and products, where all nine are counted."),
    Column("value", "float64", "", "The value: exact up to 2^53."),
)  # fmt: skip
BY_OPERATOR: Schema = (
    Column("operator", "object", "text", "The innermost operator around the launches; None: none,"
           " or unknown."),
    Column("counter", "object", "text", "The counter's name, or `flops`."),
    Column("kernel_count", "int64", "count", "Kernels that it was measured for."),
    Column("total", "float64", "", "Sum over them; of a ratio, it means nothing."),
    Column("mean", "float64", "", "Mean over them."),
    Column("maximum", "float64", "", "The greatest value."),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class CounterRanges:
    """The ranges with counters, in the order of their launches."""

    events: Ints
    """Indices of events."""
    owner: Ints
    """The innermost operator around each one's launch (`host_calls` row), or -1."""
    values: dict[str, Floats]
    """Each counter's value in each range; NaN: not measured."""


@computed
def counter_ranges(trace: Trace) -> CounterRanges:
    """Return the ranges with counters; none in most traces."""
    columns = trace.columns
    codes = [code for code, text in enumerate(columns.strings) if RANGE_COUNTERS.match(text)]
    events = np.flatnonzero(np.isin(columns.category, codes)) if codes else np.zeros(0, np.int64)
    events = events[np.argsort(columns.start_ns[events], kind="stable")]
    launches = single_launches(trace)
    owner = np.full(len(events), NONE)
    if len(events) and len(launches) == len(events):
        in_order = np.argsort(trace.runtime_calls["start_ns"].to_numpy()[launches], kind="stable")
        owner = links(trace).owner_of_call[launches[in_order]]
    values = _values(trace, events)
    if values.keys() >= SASS_OPERATIONS.keys():
        values[FLOPS] = np.sum([n * values[name] for name, n in SASS_OPERATIONS.items()], axis=0)
    return CounterRanges(events=events, owner=owner, values=values)


def _values(trace: Trace, events: Ints) -> dict[str, Floats]:
    counters: dict[str, Floats] = {}
    order = np.argsort(events)
    for name, column in trace.columns.arguments.items():
        if name in NO_SERIES or not len(events):
            continue
        at = np.searchsorted(events[order], column.rows)
        is_range = np.append(events[order], NONE)[at] == column.rows
        if not is_range.any():
            continue
        values = np.full(len(events), np.nan)
        stored, texts = column.values[is_range], column.texts
        numbers = stored if texts is None else [as_number(texts[code]) for code in stored.tolist()]
        values[order[at[is_range]]] = numbers
        if not np.isnan(values).all():
            counters[name] = values
    return counters


@public_table(
    "kernel-counters",
    BY_KERNEL,
    "One row per kernel and hardware counter that CUPTI's range profiler measured, with the"
    " operator that launched the kernel.",
)
@computed
def kernel_counters(trace: Trace) -> pd.DataFrame:
    """Return one row per kernel and counter, in the order of launches."""
    ranges, columns = counter_ranges(trace), trace.columns
    names = np.array([*columns.strings, None], dtype=object)
    full, pid = names[columns.name[ranges.events]], names[columns.pid[ranges.events]]
    parent = trace.host_calls["parent"].to_numpy()
    is_top, operators = parent == NONE, trace.host_calls["name"]
    values = np.array(list(ranges.values.values())).reshape(len(ranges.values), len(ranges.events))
    counter, row = np.nonzero(~np.isnan(values))
    order = np.lexsort((counter, row))
    counter, row = counter[order], row[order]
    cells: dict[str, NDArray[Any]] = {
        "event": ranges.events[row],
        "device": np.array([_number(of) for of in pid.tolist()], dtype=np.int64)[row],
        "kernel": np.array([name and short(name) for name in full.tolist()], dtype=object)[row],
        "full_name": full[row],
        "operator": texts_at(operators, ranges.owner)[row],
        "top_operator": texts_at(operators, nearest_of(parent, ranges.owner, is_top))[row],
        "counter": np.array(list(ranges.values), dtype=object)[counter],
        "value": values[counter, row],
    }
    return to_frame(BY_KERNEL, cells)


@public_table(
    "operator-counters",
    BY_OPERATOR,
    "One row per operator and hardware counter that CUPTI's range profiler measured for its"
    " kernels.",
)
@computed
def operator_counters(trace: Trace) -> pd.DataFrame:
    """Return one row per operator and counter, by counter, the largest total first."""
    rows = kernel_counters(trace)
    group, first = statistics.group_rows(rows, ("operator", "counter"))
    by_group = rows["value"].groupby(group)
    cells: dict[str, NDArray[Any]] = {
        "operator": rows["operator"].to_numpy()[first],
        "counter": rows["counter"].to_numpy()[first],
        "kernel_count": by_group.size().to_numpy(),
        "total": by_group.sum().to_numpy(),
        "mean": by_group.mean().to_numpy(),
        "maximum": by_group.max().to_numpy(),
    }
    return to_frame(BY_OPERATOR, cells, "counter", "-total", "operator")


def mean_counters(trace: Trace, by: str) -> pd.DataFrame:
    """Return each counter's mean over the ranges of a `full_name` or `operator`.

    One row per name, one column per counter in the order of measurement; NaN: not measured.
    """
    rows = kernel_counters(trace)
    means = rows.groupby([by, "counter"], sort=False)["value"].mean().unstack("counter")
    return means.reindex(columns=rows["counter"].unique(), index=rows[by].dropna().unique())


def _number(pid: str | None) -> int:
    return int(pid) if pid is not None and DEVICE_NUMBER.fullmatch(pid) else NONE
