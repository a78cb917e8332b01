"""Forward operators that run again in the backward pass, as activation checkpointing has them.

`torch.utils.checkpoint` calls the module again in the first autograd node that needs an activation.
A backward pass calls none of these operators itself, and its other operators have no sequence
number of autograd.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.forward_backward import forward_backward
from stepscope.analyses.core.group_statistics import ratio, sums
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.costs import operator_calls
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

FORWARD = frozenset(
    {
        "aten::addmm",
        "aten::batch_norm",
        "aten::conv1d",
        "aten::conv2d",
        "aten::conv3d",
        "aten::embedding",
        "aten::group_norm",
        "aten::layer_norm",
        "aten::linear",
        "aten::rms_norm",
        "aten::scaled_dot_product_attention",
    }
)
"""Operators of modules that no backward pass calls."""


SCHEMA: Schema = (
    Column("operator", "object", "text", "The operator."),
    Column("call_count", "int64", "count", "Its recomputed calls in the window."),
    Column("other_call_count", "int64", "count", "Its other calls in the window."),
    Column("host_self_ns", "int64", "ns", "Host self time of the recomputed calls."),
    Column("device_self_ns", "int64", "ns", "Time of the device work that they launched."),
    Column("device_share", "float64", "share", "Of the device work that all its calls in the window"
           " launched; NaN: none."),
    Column("recomputed_share", "float64", "share", "Of the device work of all recomputed"
           " operators; NaN: none."),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class RecomputedForward:
    """Recomputation in the window."""

    rows: Ints
    """Outermost recomputed operators (rows of `host_calls`)."""
    region_count: int
    """Autograd nodes in which a part of the model runs again."""
    times: Intervals
    """From the start of each such node to its last recomputed operator."""


@computed
def recomputed_forward(trace: Trace) -> RecomputedForward:
    """Return the recomputed operators; none without nodes of autograd."""
    calls, span = trace.host_calls, window(trace)
    parent = calls["parent"].to_numpy()
    start, end = (calls[name].to_numpy() for name in ("start_ns", "end_ns"))
    node = forward_backward(trace).node
    is_operator = calls["is_operator"].to_numpy()
    around = ancestry.nearest_of(parent, parent, is_operator)  # an annotation may lie between
    is_child = (node != NONE) & (around == node) & is_operator
    is_child &= calls["sequence_number"].to_numpy() != NONE
    is_child &= (start >= span.start_ns) & (start < span.end_ns)
    regions = np.unique(node[is_child & name_mask(calls["name"], FORWARD.__contains__)])
    rows = np.flatnonzero(is_child & np.isin(node, regions))
    last = np.zeros(len(regions), dtype=np.int64)
    np.maximum.at(last, np.searchsorted(regions, node[rows]), end[rows])
    return RecomputedForward(
        rows=rows,
        region_count=len(regions),
        times=intervals.clip(intervals.union(start[regions], last), span.start_ns, span.end_ns),
    )


@public_table(
    "recomputed-operators",
    SCHEMA,
    "One row per operator that the backward pass runs once more, as activation checkpointing has"
    " it: what recomputing costs.",
)
@computed
def recomputed_operators(trace: Trace) -> pd.DataFrame:
    """Return one row per recomputed operator, most device time first, then host time."""
    calls, span, cost = trace.host_calls, window(trace), operator_calls(trace)
    is_outermost = np.zeros(len(calls), dtype=bool)
    is_outermost[recomputed_forward(trace).rows] = True
    is_recomputed = ancestry.nearest(calls["parent"].to_numpy(), is_outermost) != NONE
    is_recomputed &= calls["is_operator"].to_numpy()
    start = calls["start_ns"].to_numpy()
    is_inside = (start >= span.start_ns) & (start < span.end_ns)
    is_recomputed &= is_inside
    names = calls["name"].cat
    count = len(names.categories)
    code = np.where(names.codes.to_numpy() >= 0, names.codes.to_numpy(), count)
    recomputed = np.bincount(code[is_recomputed], minlength=count + 1)
    rows = np.flatnonzero(recomputed[:count])
    host, device, whole = (
        sums(of[selected], code[selected], count + 1)[rows]
        for of, selected in (
            (cost.host_self_ns, is_recomputed),
            (cost.device_self_ns, is_recomputed),
            (cost.device_self_ns, is_inside),
        )
    )
    columns = {
        "operator": np.array([str(names.categories[row]) for row in rows.tolist()], dtype=object),
        "call_count": recomputed[rows],
        "other_call_count": (np.bincount(code[is_inside], minlength=count + 1) - recomputed)[rows],
        "host_self_ns": host,
        "device_self_ns": device,
        "device_share": ratio(device, whole),
        "recomputed_share": ratio(device, np.full(len(rows), device.sum())),
    }
    return to_frame(SCHEMA, columns, "-device_self_ns", "-host_self_ns", "operator")
