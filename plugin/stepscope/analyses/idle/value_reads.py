"""Device work due only to host reads of values: the copies, and the operators of the values.

The latter are the operators right before the read on its thread that compare or reduce, and that
autograd did not record (a backward pass needs those).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import outermost_operator, synchronizations
from stepscope.analyses.idle.sync_cost import SyncCost
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace

NONE = -1
LONGEST = 4
"""`(scores.argmax(1) == labels).sum().item()` are three operators; few checks are longer."""
COMPARES_OR_REDUCES = frozenset(
    f"aten::{name}"
    for name in (
        *("abs", "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "eq", "equal"),
        *("ge", "gt", "isclose", "isfinite", "isinf", "isnan", "le", "linalg_vector_norm"),
        *("logical_and", "logical_not", "logical_or", "lt", "max", "mean", "min", "ne", "norm"),
        "sum",
    )
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ValueReads:
    """Rows of `device_events`."""

    copies: NDArray[np.int64]
    """Copies of the values."""
    makers: NDArray[np.int64]
    """Work that computed the values, apparently for the reads alone."""


def value_reads(trace: Trace, cost: SyncCost) -> ValueReads:
    """Return the device work of value reads (`sync_cost(trace, "item")`)."""
    owner = links(trace).owner_of_device_event
    is_copy = _marked(trace, cost.operators)[owner]
    makers = _makers(trace, synchronizations(trace).owner[cost.rows])
    around = outermost_operator(trace, np.where(is_copy, NONE, owner))
    is_made = _marked(trace, makers)[around]
    return ValueReads(copies=np.flatnonzero(is_copy), makers=np.flatnonzero(is_made))


def _makers(trace: Trace, reads: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the outermost operators (`host_calls` rows) right before reads."""
    calls = trace.host_calls
    is_operator = calls["is_operator"].to_numpy()
    is_inner = np.append(is_operator, False)[calls["parent"].to_numpy()]
    thread = calls["thread"].cat.codes.to_numpy()
    top = np.flatnonzero(is_operator & ~is_inner)
    top = top[np.argsort(thread[top], kind="stable")]
    fits = name_mask(calls["name"], COMPARES_OR_REDUCES.__contains__)
    fits &= calls["sequence_number"].to_numpy() < 0
    position = np.flatnonzero(_marked(trace, reads)[top])
    makers = []
    for _ in range(LONGEST):
        position = position[position > 0]
        before = top[position - 1]
        position = position[fits[before] & (thread[before] == thread[top[position]])] - 1
        makers.append(top[position])
    return np.concatenate(makers)


def _marked(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of some `host_calls` rows, with False for row -1."""
    is_marked = np.zeros(len(trace.host_calls) + 1, dtype=bool)
    is_marked[rows] = True
    is_marked[NONE] = False
    return is_marked
