"""Forward operators that run again in the backward pass, as activation checkpointing has them.

`torch.utils.checkpoint` calls the module again in the first autograd node that needs an activation.
A backward pass calls none of these operators itself, and its other operators have no sequence
number of autograd.
"""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.forward_backward import forward_backward
from stepscope.analyses.core.window import window
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
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
    is_child = (node != NONE) & (parent == node) & calls["is_operator"].to_numpy()
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
