"""Cost of the backward pass compared with the forward pass, by forward operator.

The forward operator is the one that made autograd's node (`forward_backward`): `aten::addmm`, not
the `aten::linear` around it. Backward time is that of the engine's call around the node, if there
is one: the node and the accumulation of its gradients.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.forward_backward import forward_backward
from stepscope.analyses.core.group_statistics import ratio, sums
from stepscope.analyses.operators.costs import operator_calls
from stepscope.analyses.operators.grouping import names
from stepscope.model.arrays import NONE
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

SCHEMA: Schema = (
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
    SCHEMA,
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
    return to_frame(SCHEMA, columns, *order)
