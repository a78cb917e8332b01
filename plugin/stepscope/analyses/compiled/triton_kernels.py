"""Triton kernels with their configuration and arguments.

Inductor records a range around each launch of its kernels, with the kernel's configuration as
arguments (`torch/_inductor/runtime/triton_heuristics.py`, `get_profiler_kwargs`). Kernels with
Inductor's names that no such range launched (graph replays, other launchers) have a row by name
alone.
"""

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.compile_events import device_work
from stepscope.analyses.core.group_statistics import group_rows, ratio, sums
from stepscope.analyses.core.links import links, rows_of_keys
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.table import plain_values, public_table, to_frame
from stepscope.model.trace import Trace, computed

NAMED_BY_INDUCTOR = re.compile(r"^triton_(?:poi|red|per|tem|for|split|spl|unk|mix|mm)_")
"""Its kinds of kernels: pointwise, reduction, persistent reduction, template, foreach, …"""
SCHEMA: Schema = (
    Column("name", "object", "text", "The kernel's name."),
    Column("backend", "object", "text", "Its compiler (`kernel_backend`); None: not recorded."),
    Column("kernel_file", "object", "text", "Its source, on the machine that ran it."),
    Column("kernel_hash", "object", "text", "Inductor's hash of the source."),
    Column("configuration", "object", "text", "Its constants: `XBLOCK=2,R0_BLOCK=2048`."),
    Column("num_warps", "float64", "count", "Warps per program; NaN: not recorded."),
    Column("num_stages", "float64", "count", "Stages of software pipelining; NaN: not recorded."),
    Column("grid", "object", "text", "Programs in x, y, z (JSON); before torch 2.7 Inductor's."),
    Column("input_dims", "object", "text", "Shapes of the arguments (JSON), with record_shapes."),
    Column("input_types", "object", "text", "Types of the arguments (JSON), with record_shapes."),
    Column("concrete_inputs", "object", "text", "Values of scalar arguments (JSON)."),
    Column("call_count", "int64", "count", "Launches by Inductor's ranges."),
    Column("kernel_count", "int64", "count", "Kernels on the device."),
    Column("host_ns", "int64", "ns", "Time of the host in those ranges."),
    Column("device_ns", "int64", "ns", "Sum of the kernels' durations."),
    Column("mean_ns", "float64", "ns", "Mean duration on the device; NaN: no kernel."),
    Column("kernel_share", "float64", "share", "Of all kernels' durations."),
    Column("estimated_bytes", "float64", "bytes", "A launch's, by Inductor (`kernel_num_gb`)."),
    Column("estimated_bytes_per_second", "float64", "bytes/s", "Those over the mean duration."),
)
TOLD_BY_RANGE = ("kernel_backend", "kernel_file", "kernel_hash", "kernel_kwargs")
MOST_GIGABYTES = 1e9
"""Larger figures are damage."""
OF_CALL = ("input_dims", "input_types", "concrete_inputs")


@public_table(
    "triton-kernels",
    SCHEMA,
    "One row per Triton kernel, configuration and arguments: its source, its launches and its"
    " time.",
)
@computed
def triton_kernel_table(trace: Trace) -> pd.DataFrame:
    """Return one row per kernel, configuration and arguments, longest on the device first."""
    table = pd.concat([_by_range(trace), _by_name(trace)], ignore_index=True)
    columns: dict[str, NDArray[Any]] = {
        column.name: table[column.name].to_numpy() for column in SCHEMA if column.name in table
    }
    device_ns = columns["device_ns"]
    all_ns = max(1, int(trace.kernels["duration_ns"].sum()))
    mean = ratio(device_ns, columns["kernel_count"])
    columns |= {
        "mean_ns": mean,
        "kernel_share": device_ns / all_ns,
        "estimated_bytes_per_second": ratio(columns["estimated_bytes"] * 1e9, mean),
    }
    return to_frame(SCHEMA, columns, "-device_ns", "-host_ns")


def _ranges(trace: Trace) -> Ints:
    backend = trace.source.label("kernel_backend", trace.host_calls["event"].to_numpy())
    return np.flatnonzero(np.asarray(backend.codes) >= 0)


def _by_range(trace: Trace) -> pd.DataFrame:
    rows = _ranges(trace)
    calls, work, source = trace.host_calls.iloc[rows], device_work(trace), trace.source
    events = calls["event"].to_numpy()
    labels = {name: source.label(name, events) for name in TOLD_BY_RANGE}
    keys = pd.DataFrame(
        {
            "name": calls["name"].array,
            **labels,
            "num_warps": source.number("num_warps", events),
            "num_stages": source.number("num_stages", events),
            "grid": _grids(trace, rows),
            **{name: calls[name].array for name in OF_CALL},
        }
    )
    gigabytes = source.number("kernel_num_gb", events)
    is_valid = (gigabytes >= 0) & (gigabytes < MOST_GIGABYTES)
    group, first = group_rows(keys, keys.columns)
    count = len(first)
    texts = {str(name): plain_values(keys[name])[first] for name in keys}
    return to_frame(
        SCHEMA,
        {
            "name": texts.pop("name"),
            "backend": texts.pop("kernel_backend"),
            "configuration": texts.pop("kernel_kwargs"),
            **texts,
            "call_count": np.bincount(group, minlength=count),
            "kernel_count": sums(work.kernel_count[rows], group, count),
            "host_ns": sums(calls["duration_ns"].to_numpy(), group, count),
            "device_ns": sums(work.device_ns[rows], group, count),
            "estimated_bytes": np.where(is_valid, gigabytes, np.nan)[first] * 1e9,
        },
    )


def _grids(trace: Trace, rows: Ints) -> pd.Categorical:
    """Return each range's grid: of its kernel on the device, else of the range."""
    kernels, events = trace.kernels, trace.device_events
    index = rows_of_keys(kernels["event"].to_numpy(), events["event"].to_numpy())
    owner = links(trace).owner_of_device_event[index]
    launched = np.full(len(trace.host_calls), NONE, dtype=np.int64)
    launched[owner[owner >= 0]] = np.flatnonzero(owner >= 0)
    grids = np.array([*plain_values(kernels["grid"]), None], dtype=object)
    on_device = grids[launched[rows]]
    recorded = plain_values(trace.source.label("grid", trace.host_calls["event"].to_numpy()[rows]))
    codes, texts = pd.factorize(np.where(pd.isna(on_device), recorded, on_device))
    return pd.Categorical.from_codes(codes, categories=pd.Index(texts, dtype=object))


def _by_name(trace: Trace) -> pd.DataFrame:
    kernels, events = trace.kernels, trace.device_events
    index = rows_of_keys(kernels["event"].to_numpy(), events["event"].to_numpy())
    owner = links(trace).owner_of_device_event[index]
    is_range = np.zeros(len(trace.host_calls) + 1, dtype=bool)
    is_range[_ranges(trace)] = True
    selected = name_mask(kernels["name"], NAMED_BY_INDUCTOR.match) & ~is_range[owner]
    kernels = kernels[selected]
    group, names = pd.factorize(kernels["name"])
    count = len(names)
    nothing = np.full(count, None, dtype=object)
    zero = np.zeros(count, dtype=np.int64)
    unknown = np.full(count, np.nan)
    return to_frame(
        SCHEMA,
        {
            "name": np.array([str(name) for name in names], dtype=object),
            **dict.fromkeys(("backend", "kernel_file", "kernel_hash", "configuration"), nothing),
            **dict.fromkeys(("num_warps", "num_stages", "estimated_bytes"), unknown),
            **dict.fromkeys(("grid", *OF_CALL), nothing),
            "call_count": zero,
            "kernel_count": np.bincount(group, minlength=count),
            "host_ns": zero,
            "device_ns": sums(kernels["duration_ns"].to_numpy(), group, count),
        },
    )
