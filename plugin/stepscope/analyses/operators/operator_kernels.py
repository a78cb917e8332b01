"""Tables of operators: their device work with its delays, and the cost of their backward pass.

Each device event belongs to the innermost operator around its launch on the launching thread, or to
the annotation where there is no operator (`costs.py`). The two delays are those of HTA's
`get_aten_op_kernels_and_delay` (`hta/analyzers/cuda_kernel_analysis.py`), which however takes the
operator that started last on any thread.

The forward operator is the one that made autograd's node (`forward_backward`): `aten::addmm`, not
the `aten::linear` around it. Backward time is that of the engine's call around the node, if there
is one: the node and the accumulation of its gradients.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.forward_backward import forward_backward
from stepscope.analyses.core.group_statistics import (
    duration_columns,
    nan_mean,
    ratio,
    sums,
)
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.links import links
from stepscope.analyses.operators.costs import operator_calls, owners_of_device_events
from stepscope.analyses.operators.grouping import names
from stepscope.dialects import Kind
from stepscope.model.arrays import NONE, Floats, Ints, Objects
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

KIND_NAMES = {
    int(Kind.KERNEL): "kernel",
    int(Kind.COPY): "copy",
    int(Kind.MEMORY_SET): "memory set",
}
SCHEMA: Schema = (
    Column("operator", "object", "text", "The operator or annotation; None: none around its"
           " launch, or that is not known."),
    Column("kernel", "object", "text", "The kernel's name in short; the copy's or memory set's."),
    Column("full_name", "object", "text", "The name as the profiler wrote it."),
    Column("kind", "object", "text", "`kernel`, `copy` or `memory set`."),
    Column("event_count", "int64", "count", "How often the operator ran it."),
    Column("total_ns", "int64", "ns", "Sum of durations."),
    Column("mean_ns", "float64", "ns", "Mean duration."),
    Column("min_ns", "int64", "ns", "Shortest duration."),
    Column("max_ns", "int64", "ns", "Longest duration."),
    Column("operator_share", "float64", "share", "Of the operator's device self time."),
    Column("mean_call_delay_ns", "float64", "ns", "Mean time from the operator's start to its"
           " launch call (HTA); NaN: unknown."),
    Column("mean_launch_delay_ns", "float64", "ns", "Mean time from the launch call's start to"
           " the device's (HTA); NaN: call not recorded."),
)  # fmt: skip


@public_table(
    "operator-kernels",
    SCHEMA,
    "One row per operator and a kernel, copy or memory set that it launched itself.",
    title="Kernels of operators",
)
@computed
def operator_kernels(trace: Trace) -> pd.DataFrame:
    """Return one row per operator and device work, by the operator's device time."""
    events = trace.device_events
    owner = owners_of_device_events(trace)
    labels = names(trace)
    operator = np.append(labels.codes, NONE)[owner]
    ran, kind = events["name"].cat, events["kind"].to_numpy().astype(np.int64)
    width, kinds = len(ran.categories) + 1, int(max(KIND_NAMES)) + 1
    key = ((operator + 1) * width + ran.codes.to_numpy() + 1) * kinds + kind
    group, keys = pd.factorize(key, sort=True)
    of_operator, of_name = np.divmod(keys // kinds, width)
    full = np.array([*map(str, ran.categories), None], dtype=object)[of_name - 1]
    duration = events["duration_ns"].to_numpy()
    durations = duration_columns(SCHEMA, duration, group, len(keys))
    total = durations["total_ns"]
    whole = sums(total, of_operator, len(labels.texts) + 1)[of_operator]
    to_call, to_device = _delays(trace, owner)
    columns: dict[str, NDArray[Any]] = {
        "operator": labels.at(of_operator - 1),
        "kernel": _short(full, keys % kinds),
        "full_name": full,
        "kind": np.array([KIND_NAMES.get(which) for which in (keys % kinds).tolist()], object),
        "event_count": np.bincount(group, minlength=len(keys)),
        **durations,
        "operator_share": ratio(total, whole),
        "mean_call_delay_ns": nan_mean(to_call, group, len(keys)),
        "mean_launch_delay_ns": nan_mean(to_device, group, len(keys)),
    }
    schema = (*SCHEMA, Column("whole", "int64", "ns", "Total of the operator's device work."))
    order = ("-whole", "operator", "-total_ns", "full_name")
    return to_frame(schema, columns | {"whole": whole}, *order).drop(columns="whole")


def _short(full: Objects, kind: Ints) -> Objects:
    is_kernel = (kind == int(Kind.KERNEL)).tolist()
    texts = [
        short(name) if kernel and name is not None else name
        for name, kernel in zip(full.tolist(), is_kernel, strict=True)
    ]
    return np.array(texts, dtype=object)


def _delays(trace: Trace, owner: Ints) -> tuple[Floats, Floats]:
    """Return each device event's delays, operator to launch and launch to start; NaN if unknown."""
    call = links(trace).call_of_device_event
    begun = np.append(trace.host_calls["start_ns"].to_numpy(), 0)[owner]
    called = np.append(trace.runtime_calls["start_ns"].to_numpy(), 0)[call]
    started = trace.device_events["start_ns"].to_numpy()
    to_call = np.where((call != NONE) & (owner != NONE), called - begun, np.nan)
    return to_call, np.where(call != NONE, started - called, np.nan)


FORWARD_BACKWARD: Schema = (
    Column("name", "object", "text", "The forward operator that made the node."),
    Column("backward_name", "object", "text", "Autograd's node, such as `AddmmBackward0`."),
    Column("forward_call_count", "int64", "count", "Forward calls that have a node recorded."),
    Column("backward_call_count", "int64", "count", "Their nodes; more where one ran twice."),
    Column("forward_host_ns", "int64", "ns", "Host time of the forward calls, calls within too."),
    Column("backward_host_ns", "int64", "ns", "Host time of the engine's calls around the nodes."),
    Column("host_ratio", "float64", "ratio", "Backward over forward host time; NaN: no forward."),
    Column("forward_device_ns", "int64", "ns", "Device time that the forward calls launched."),
    Column("backward_device_ns", "int64", "ns", "Device time launched around the nodes."),
    Column("device_ratio", "float64", "ratio", "Backward over forward device time; NaN: no"
           " forward."),
)  # fmt: skip


@public_table(
    "forward-backward",
    FORWARD_BACKWARD,
    "One row per forward operator and autograd's node of it: the time of both passes.",
    title="Forward and backward",
)
@computed
def forward_backward_table(trace: Trace) -> pd.DataFrame:
    """Return one row per forward operator and node name, largest backward cost first."""
    links = forward_backward(trace)
    nodes = np.flatnonzero(links.forward != NONE)
    makers = links.forward[nodes]
    labels = names(trace)
    width = len(labels.texts) + 1
    group, keys = pd.factorize(labels.codes[makers] * width + labels.codes[nodes], sort=True)
    around = np.where(links.wrapper[nodes] != NONE, links.wrapper[nodes], nodes)
    once = np.unique(makers, return_index=True)[1]
    of_name, of_node = np.divmod(keys, width)
    columns: dict[str, NDArray[Any]] = {
        "name": labels.at(of_name),
        "backward_name": labels.at(of_node),
        "forward_call_count": np.bincount(group[once], minlength=len(keys)),
        "backward_call_count": np.bincount(group, minlength=len(keys)),
    }
    spent = {
        "host": trace.host_calls["duration_ns"].to_numpy(),
        "device": operator_calls(trace).device_total_ns,
    }
    for side, ns in spent.items():
        before = sums(ns[makers[once]], group[once], len(keys))
        after = sums(ns[around], group, len(keys))
        columns |= {f"forward_{side}_ns": before, f"backward_{side}_ns": after}
        columns[f"{side}_ratio"] = ratio(after, before)
    order = ("-backward_device_ns", "-backward_host_ns", "name", "backward_name")
    return to_frame(FORWARD_BACKWARD, columns, *order)
