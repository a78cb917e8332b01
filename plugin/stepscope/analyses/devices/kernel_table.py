"""Time of each kernel, by name, or by name and launch configuration.

Means of blocks per multiprocessor and of occupancy are weighted by duration, over the kernels that
report one. Kineto writes an occupancy of 0 where it could not compute one; such kernels are counted
separately instead of being averaged in, as torch-tb-profiler does (`kernel_parser.py`).

The launch delay is HTA's: from the end of the call that launched a kernel to the kernel's start
(`cuda_kernel_analysis.py`). It is 0 where a kernel began before its call returned. Kernels of
a graph replay share one call, and kernels without a recorded call have none: neither has a delay.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import group_statistics
from stepscope.analyses.core.group_statistics import distinct_numbers, weighted_mean
from stepscope.analyses.core.kernel_names import operand_type, short
from stepscope.analyses.core.links import links
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.kernel_launches import launches
from stepscope.analyses.operators.replayed_operators import with_operators
from stepscope.dialects import TRITON_BACKEND, TRITON_NAME, Kind
from stepscope.model.arrays import Floats, Ints, Mask
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.table import plain_values, public_table, to_frame
from stepscope.model.trace import Trace, computed

Grouping = Literal["name", "launch", "stream"]
SCHEMA: Schema = (
    Column("name", "object", "text", "The name in short: without namespaces and arguments."),
    Column("full_name", "object", "text", "The name as the profiler wrote it."),
    Column("operator", "object", "text", "The innermost operator that launched it; in a replay of"
           " a graph that of its capture, or of an eager pass, or `replayed graph, not attributed`;"
           " None: unknown."),
    Column("grid", "object", "text", "Blocks in x, y, z (JSON); None where not recorded."),
    Column("block", "object", "text", "Threads a block in x, y, z (JSON)."),
    Column("registers_per_thread", "float64", "count", "NaN where not recorded."),
    Column("shared_memory_bytes", "float64", "bytes", "A block's; NaN where not recorded."),
    Column("call_count", "int64", "count", "How often it ran."),
    Column("total_ns", "int64", "ns", "Sum of its durations."),
    Column("window_ns", "int64", "ns", "Of that, in the window (all steps): without the backlog of"
           " steps before the trace."),
    Column("mean_ns", "float64", "ns", "Mean duration."),
    Column("min_ns", "int64", "ns", "Shortest duration."),
    Column("max_ns", "int64", "ns", "Longest duration."),
    Column("p95_ns", "float64", "ns", "95th percentile of durations."),
    Column("kernel_share", "float64", "share", "Of all kernels' durations."),
    Column("blocks_per_sm", "float64", "count", "Duration-weighted mean; NaN: none reports one."),
    Column("occupancy_share", "float64", "share", "Duration-weighted mean over kernels above 0."),
    Column("no_occupancy_count", "int64", "count", "Kernels that report no occupancy, or 0."),
    Column("launch_delay_mean_ns", "float64", "ns", "Mean time from its call's end to its start,"
           " at least 0 (HTA); NaN: no call is known."),
    Column("launch_delay_p95_ns", "float64", "ns", "95th percentile of the same."),
    Column("streams", "object", "text", "The streams it ran on."),
    Column("devices", "object", "text", "The devices it ran on."),
    Column("uses_matrix_unit", "object", "", "On tensor cores or the like; None: cannot be told."),
    Column("is_collective", "bool", "", "True for kernels of NCCL, RCCL and the like."),
    Column("data_type", "object", "text", "Type of its operands, by torch's name; None: not told."),
    Column("is_triton", "bool", "", "True where the name (`triton_…`) or its operator says"
           " Triton's."),
)  # fmt: skip
"""By name, the columns `operator` to `shared_memory_bytes` are left out."""
STREAM_COLUMNS = ("device", "stream")
"""What tells rows apart by stream; they stand in `devices` and `streams`."""
LAUNCH_COLUMNS = ("operator", "grid", "block", "registers_per_thread", "shared_memory_bytes")


@public_table(
    "kernels",
    tuple(column for column in SCHEMA if column.name not in LAUNCH_COLUMNS),
    "One row per kernel name: how often it ran, for how long, and how it filled the device.",
)
def kernel_table(trace: Trace, by: Grouping = "name") -> pd.DataFrame:
    """Return one row a name, or a name and launch (with the operator) or stream, longest first."""
    return _BUILDERS[by](trace)


@computed
def _by_name(trace: Trace) -> pd.DataFrame:
    return _table(trace, ())


@computed
def _by_launch(trace: Trace) -> pd.DataFrame:
    return _table(trace, LAUNCH_COLUMNS)


@computed
def _by_stream(trace: Trace) -> pd.DataFrame:
    return _table(trace, (), STREAM_COLUMNS)


_BUILDERS: Mapping[Grouping, Callable[[Trace], pd.DataFrame]] = MappingProxyType(
    {"name": _by_name, "launch": _by_launch, "stream": _by_stream}
)


def launching_operator(trace: Trace) -> pd.Categorical:
    """Return the name of the innermost operator that launched each kernel, missing if unknown.

    Of a kernel that a graph replays, it is the operator of the capture, or of an eager pass, or
    `NOT_ATTRIBUTED`.
    """
    names = trace.host_calls["name"].cat
    codes = np.append(names.codes.to_numpy(), -1)[links(trace).owner_of_device_event]
    owners = pd.Categorical.from_codes(codes, categories=names.categories)
    return with_operators(trace, owners)[_places(trace)]


def _places(trace: Trace) -> Ints:
    """Return the row of `device_events` of each kernel."""
    return np.flatnonzero(trace.device_events["kind"].to_numpy() == int(Kind.KERNEL))


def _table(trace: Trace, launch: tuple[str, ...], others: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return the table by name, with columns of launches, and the keys of its rows."""
    kernels = trace.kernels.assign(operator=launching_operator(trace))
    group, first = group_statistics.group_rows(kernels, ("name", *launch, *others))
    full = kernels["name"].astype(object).to_numpy()[first]
    identity: dict[str, Any] = {
        "name": np.array([short(str(name)) for name in full], dtype=object),
        "full_name": full,
    }
    for column in launch:
        identity[column] = plain_values(kernels[column].iloc[first])
    duration = kernels["duration_ns"].to_numpy()
    durations = group_statistics.duration_columns(SCHEMA, duration, group, len(first))
    columns = identity | durations | _fill(kernels, group, len(first))
    columns["window_ns"] = group_statistics.sums(_in_window_ns(trace, kernels), group, len(first))
    columns["kernel_share"] = durations["total_ns"] / max(1, int(duration.sum()))
    columns |= _delays(trace, group, len(first)) | _traits(trace, kernels, group, first)
    return to_frame(SCHEMA, columns, "-total_ns", "full_name", "devices", "streams")


def _in_window_ns(trace: Trace, kernels: pd.DataFrame) -> Ints:
    span = window(trace)
    start_ns = np.maximum(kernels["start_ns"].to_numpy(), span.device_start_ns)
    end_ns = np.minimum(kernels["end_ns"].to_numpy(), span.device_end_ns)
    return np.asarray(np.maximum(end_ns - start_ns, 0))


def _fill(kernels: pd.DataFrame, group: Ints, count: int) -> dict[str, NDArray[Any]]:
    weight = kernels["duration_ns"].to_numpy()
    blocks = kernels["blocks_per_sm"].to_numpy()
    occupancy = kernels["occupancy_share"].to_numpy()
    reports, tells = occupancy > 0, ~np.isnan(blocks)
    return {
        "blocks_per_sm": weighted_mean(blocks[tells], weight[tells], group[tells], count),
        "occupancy_share": weighted_mean(
            occupancy[reports], weight[reports], group[reports], count
        ),
        "no_occupancy_count": np.bincount(group[~reports], minlength=count),
    }


def _delays(trace: Trace, group: Ints, count: int) -> dict[str, NDArray[Any]]:
    """Return the delays of `kernel_launches`: replays of graphs have none of their own."""
    device_launches = launches(trace)
    launch_row = np.full(len(trace.device_events), -1, dtype=np.int64)
    launch_row[device_launches.row] = np.arange(len(device_launches.row))
    launch = launch_row[_places(trace)]
    has_launch = launch >= 0
    delay = device_launches.delay_ns[launch[has_launch]]
    return {
        "launch_delay_mean_ns": group_statistics.mean(delay, group[has_launch], count),
        "launch_delay_p95_ns": group_statistics.quantile(delay, group[has_launch], count, 0.95),
    }


def _traits(
    trace: Trace, kernels: pd.DataFrame, group: Ints, first: Ints
) -> dict[str, NDArray[Any]]:
    names = [str(name) for name in kernels["name"].iloc[first]]
    dialect, count = trace.dialect, len(first)
    on_matrix_unit = {name: dialect.uses_matrix_unit(name) for name in set(names)}
    types = {name: operand_type(dialect, name) for name in set(names)}
    return {
        "streams": distinct_numbers(kernels["stream"].to_numpy(), group, count),
        "devices": distinct_numbers(kernels["device"].to_numpy(), group, count),
        "uses_matrix_unit": np.array([on_matrix_unit[name] for name in names], dtype=object),
        "is_collective": kernels["is_collective"].to_numpy()[first],
        "data_type": np.array([types[name] for name in names], dtype=object),
        "is_triton": _are_tritons(trace, names, group),
    }


def _are_tritons(trace: Trace, names: list[str], group: Ints) -> Mask:
    is_named = np.array([bool(TRITON_NAME.match(name)) for name in names], dtype=bool)
    calls = trace.host_calls["event"].to_numpy()
    backend = trace.source.label("kernel_backend", calls)
    launches = np.append(name_mask(backend, TRITON_BACKEND.__eq__), False)  # -1: no operator
    is_named[group[launches[links(trace).owner_of_device_event[_places(trace)]]]] = True
    return is_named


public_table(
    "kernels-by-launch",
    SCHEMA,
    "One row per kernel, the operator that launched it, and the grid, block, registers and shared"
    " memory with which it ran.",
)(partial(kernel_table, by="launch"))

EDGES_US = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000)
DURATIONS: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("from_ns", "int64", "ns", "Durations from this."),
    Column("below_ns", "float64", "ns", "Durations below this; infinite in the last class."),
    Column("kernel_count", "int64", "count", "Kernels of such a duration."),
    Column("name_count", "int64", "count", "Distinct names among them."),
    Column("total_ns", "int64", "ns", "Sum of their durations."),
    Column("count_share", "float64", "share", "Of the device's kernels."),
    Column("time_share", "float64", "share", "Of the durations of the device's kernels."),
)


@public_table(
    "kernel-durations",
    DURATIONS,
    "One row per device and class of durations (1, 2, 5, 10 µs …): how many kernels are that short,"
    " and what they take together. A histogram of short kernels, which launching limits.",
    title="Durations of kernels",
)
@computed
def kernel_durations(trace: Trace) -> pd.DataFrame:
    """Return one row per device and class of durations, shortest first; empty classes included."""
    kernels = trace.kernels
    device, devices = pd.factorize(kernels["device"].to_numpy(), sort=True)
    duration = kernels["duration_ns"].to_numpy()
    edges = np.array(EDGES_US, dtype=np.int64) * 1_000
    width = len(edges)
    group = device * width + np.searchsorted(edges, duration, side="right") - 1
    count = len(devices) * width
    name_width = len(kernels["name"].cat.categories) + 1
    names = pd.unique(group * name_width + kernels["name"].cat.codes.to_numpy() + 1) // name_width
    number = np.bincount(group, minlength=count)
    total = group_statistics.sums(duration, group, count)
    columns: dict[str, NDArray[Any]] = {
        "device": np.repeat(devices, width),
        "from_ns": np.tile(edges, len(devices)),
        "below_ns": np.tile(np.append(edges[1:], np.inf), len(devices)),
        "kernel_count": number,
        "name_count": np.bincount(names, minlength=count),
        "total_ns": total,
        "count_share": _of_device(number, width),
        "time_share": _of_device(total, width),
    }
    return to_frame(DURATIONS, columns)


def _of_device(values: Ints, width: int) -> Floats:
    """Return each class's fraction of its device; each device has `width` classes."""
    whole = np.repeat(values.reshape(-1, width).sum(axis=1), width)
    return group_statistics.ratio(values, whole)
