"""Memory allocated and freed by each operator: torch-tb-profiler's Memory Statistics.

Sizes and counts are as in `torch_tb_profiler/profiler/memory_parser.py`: *self* while the operator
was the innermost, *total* on its thread while it ran. An only child of its caller's name is merged
into it, and totals of other recursive operators count twice. Unlike there, calls that cross
another's end count, and all device types are included.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core.group_statistics import sums_where
from stepscope.analyses.memory.memory_devices import (
    DEVICE_COLUMNS,
    MemoryDevice,
    device_columns,
    memory_devices,
)
from stepscope.analyses.memory.owners import calls_around
from stepscope.analyses.operators.costs import operator_calls
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, rows_to_frame
from stepscope.model.trace import Trace, computed

NEVER = np.iinfo(np.int64).max
SCHEMA: Schema = (
    *DEVICE_COLUMNS,
    Column("operator", "object", "text", "The operator's name."),
    Column("call_count", "int64", "count", "All calls of the name, allocating or not."),
    Column("increase_bytes", "int64", "bytes", "Allocated less freed, with what it called."),
    Column("self_increase_bytes", "int64", "bytes", "Allocated less freed by itself."),
    Column("allocation_count", "int64", "count", "Allocations, with what it called."),
    Column("self_allocation_count", "int64", "count", "Allocations by itself."),
    Column("allocation_bytes", "int64", "bytes", "Allocated, with what it called; frees apart."),
    Column("self_allocation_bytes", "int64", "bytes", "Allocated by itself; frees apart."),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class _EventRanges:
    """Calls in which a device's memory changed, with their events `order[low:high]`."""

    order: Ints
    calls: Ints
    low: Ints
    high: Ints


@public_table(
    "memory-statistics",
    SCHEMA,
    "One row per device and operator: what its calls allocated and freed there.",
    title="Memory by operator",
)
@computed
def memory_statistics(trace: Trace) -> pd.DataFrame:
    """Return one row per device and operator with memory events, most allocated first.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    devices = memory_devices(trace)
    call_count = _call_counts(trace)
    tables = [_of_device(trace, device, call_count) for device in devices]
    if not tables:
        return rows_to_frame(SCHEMA, ())
    table = pd.concat(tables, ignore_index=True)
    columns = device_columns(devices, [len(part) for part in tables])
    return table.assign(**columns)[[column.name for column in SCHEMA]]


def _of_device(trace: Trace, device: MemoryDevice, call_count: Ints) -> pd.DataFrame:
    names = trace.host_calls["name"].cat.categories
    size = trace.memory["bytes"].to_numpy()[device.rows]
    measures = {
        "increase_bytes": size,
        "allocation_count": (size > 0).astype(np.int64),
        "allocation_bytes": np.maximum(size, 0),
    }
    owner = np.append(operator_calls(trace).counted, NONE)[calls_around(trace)[device.rows]]
    ranges = _event_ranges(trace, device)
    sums = pd.DataFrame({"call_count": call_count})
    for name, values in measures.items():
        before = np.append(0, np.cumsum(values[ranges.order]))
        total = before[ranges.high] - before[ranges.low]
        sums[name] = _by_name(trace, ranges.calls, total)
        sums[f"self_{name}"] = _by_name(trace, owner[owner >= 0], values[owner >= 0])
    is_shown = (sums.drop(columns="call_count") != 0).any(axis=1).to_numpy()
    operator = np.array([str(name) for name in names], dtype=object)[is_shown]
    table = sums[is_shown].reset_index(drop=True).assign(operator=pd.Series(operator, dtype=object))
    by = ["allocation_bytes", "self_allocation_bytes", "operator"]
    return table.sort_values(by, ascending=[False, False, True], kind="stable")


def _call_counts(trace: Trace) -> Ints:
    rows = _counted_rows(trace)
    return _by_name(trace, rows, np.ones(len(rows), dtype=np.int64))


def _counted_rows(trace: Trace) -> Ints:
    counted = operator_calls(trace).counted
    return np.flatnonzero(counted == np.arange(len(counted)))


def _by_name(trace: Trace, calls: Ints, values: Ints) -> Ints:
    """Return the values' sum for each operator name."""
    names, is_operator = trace.host_calls["name"].cat, trace.host_calls["is_operator"].to_numpy()
    code = names.codes.to_numpy()[calls]
    return sums_where(values, code, len(names.categories), is_operator[calls])


def _event_ranges(trace: Trace, device: MemoryDevice) -> _EventRanges:
    """Return, for each call, the device's events on its thread from its start up to its end."""
    thread = trace.memory["thread"].cat.codes.to_numpy()[device.rows]
    order = np.argsort(thread, kind="stable")
    time_ns = trace.memory["start_ns"].to_numpy()[device.rows][order]
    codes, first = np.unique(thread[order], return_index=True)
    bounds = np.append(first, len(order)).tolist()
    calls = trace.host_calls
    of_call = calls["thread"].cat.codes.to_numpy()
    by_thread = _counted_rows(trace)
    by_thread = by_thread[np.argsort(of_call[by_thread], kind="stable")]
    border = np.asarray(np.searchsorted(of_call[by_thread], np.append(codes, codes + 1)))
    start_ns, end_ns = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    parts = [np.zeros((3, 0), dtype=np.int64)]
    for number in range(len(codes)):
        rows = by_thread[border[number] : border[number + len(codes)]]
        thread_times = time_ns[bounds[number] : bounds[number + 1]]
        low = np.searchsorted(thread_times, start_ns[rows], side="left")
        some = np.append(thread_times, NEVER)[low] < end_ns[rows]
        rows, low = rows[some], low[some]
        high = np.searchsorted(thread_times, end_ns[rows], side="left")
        parts.append(np.stack((rows, bounds[number] + low, bounds[number] + high)))
    call_rows, low, high = np.concatenate(parts, axis=1)
    return _EventRanges(order=order, calls=call_rows, low=low, high=high)
