"""Dense gradients of embedding tables, and the operators that go through them.

`aten::embedding_dense_backward` fills a gradient with as many rows as the table has, however few a
batch reads. The accumulation of gradients and the optimizer then go through all of it.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.product_shapes import distinct, shape
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

BACKWARD = frozenset({"aten::embedding_dense_backward", "aten::_embedding_bag_dense_backward"})
FILLS = frozenset({"aten::zero_", "aten::fill_"})
ACCUMULATES = "torch::autograd::AccumulateGrad"
LISTWISE = ("aten::_foreach_", "aten::_fused_")
WEIGHT_AT = {"aten::linear": 1, "aten::mm": 1, "aten::matmul": 1, "aten::addmm": 2}
"""Index of the argument that is a weight, or its transpose."""
NORMS = frozenset({"aten::_foreach_norm", "aten::linalg_vector_norm", "aten::norm"})
SCALES = frozenset({"aten::mul_", "aten::_foreach_mul_"})
Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class EmbeddingGradient:
    """A table's dense gradients in the window; rows are of `host_calls`."""

    table: Shape
    """Rows of the table, and numbers of each."""
    index_count: int
    """Most indices of one lookup."""
    backward: Ints
    """Operators that fill and add up the gradient."""
    updates: Ints
    """Operators of optimizers, and accumulations, on the table or its gradient only."""
    list_updates: Ints
    """Operators of optimizers on lists with the table."""
    list_share: float
    """Part of the lists' numbers that the table has."""
    is_tied: bool
    """Whether a linear layer has a weight of the table's shape, as a language model's output."""
    is_clipped: bool
    """Whether a norm is taken of the table or its gradient, and one of them is multiplied outside
    of an optimizer: so gradients are clipped."""


@computed
def embedding_gradients(trace: Trace) -> tuple[EmbeddingGradient, ...]:
    """Return the dense gradients, by table shape."""
    calls, span = trace.host_calls, window(trace)
    start = calls["start_ns"].to_numpy()
    is_inside = (start >= span.start_ns) & (start < span.end_ns)
    is_backward = name_mask(calls["name"], BACKWARD.__contains__) & is_inside
    if not is_backward.any():
        return ()
    fills = np.flatnonzero(name_mask(calls["name"], FILLS.__contains__) & is_inside)
    filled = ancestry.nearest_of(calls["parent"].to_numpy(), fills.copy(), is_backward)
    tables: dict[Shape, set[int]] = {}
    for row, dims in zip(filled.tolist(), _dims(trace, fills), strict=True):
        if row != NONE and len(table := shape(dims, 0)) == 2:
            tables.setdefault(table, set()).add(row)
    optimizing = _optimizing(trace, is_inside)
    group, updates = distinct(trace, optimizing)
    is_clipping = is_inside.copy()
    is_clipping[optimizing] = False
    clipped = _shapes_of(trace, is_clipping, NORMS) & _shapes_of(trace, is_clipping, SCALES)
    other_uses = _weights(trace, is_inside), clipped
    return tuple(
        _gradient(trace, table, np.array(sorted(rows)), (optimizing, group, updates), other_uses)
        for table, rows in tables.items()
    )


def _gradient(
    trace: Trace,
    table: Shape,
    backward: Ints,
    optimizing: tuple[Ints, Ints, list[tuple[str, str]]],
    other_uses: tuple[set[Shape], set[Shape]],
) -> EmbeddingGradient:
    rows, group, updates = optimizing
    weights, clipped = other_uses
    shares = np.array([_list_share(name, dims, table) for name, dims in updates])[group]
    is_single = np.array([shape(dims, 0) == table for _, dims in updates], dtype=bool)[group]
    is_list = shares > 0
    return EmbeddingGradient(
        table=table,
        index_count=max(math.prod(shape(dims, 1)) for dims in _dims(trace, backward)),
        backward=backward,
        updates=rows[is_single & ~is_list],
        list_updates=rows[is_list],
        list_share=float(shares[is_list].mean()) if is_list.any() else 0.0,
        is_tied=bool({table, table[::-1]} & weights),
        is_clipped=table in clipped,
    )


def _dims(trace: Trace, rows: Ints) -> list[str]:
    return [str(dims) for dims in trace.host_calls["input_dims"].iloc[rows]]


def _optimizing(trace: Trace, is_inside: np.ndarray) -> Ints:
    """Return operators that optimizers, or accumulations of gradients, call directly."""
    calls = trace.host_calls
    is_caller = name_mask(
        calls["name"], lambda name: name == ACCUMULATES or name.startswith("Optimizer.")
    )
    is_child = np.append(is_caller, False)[calls["parent"].to_numpy()]
    rows: Ints = np.flatnonzero(is_child & is_inside & calls["is_operator"].to_numpy())
    return rows


def _list_share(name: str, dims: str, table: Shape) -> float:
    """Return the part of the numbers of a list's tensors that a table has; 0 without it."""
    if not name.startswith(LISTWISE):
        return 0.0
    sizes = Counter[Shape]()
    for tensor in _first_list(dims):
        sizes[tensor] += math.prod(tensor)
    return sizes[table] / max(1, sizes.total())


def _first_list(dims: str) -> Iterator[Shape]:
    try:
        tensors = json.loads(dims)[0]
    except (ValueError, LookupError, TypeError):
        return
    if isinstance(tensors, list):
        yield from (tuple(tensor) for tensor in tensors if isinstance(tensor, list))


def _shapes_of(trace: Trace, is_inside: np.ndarray, names: frozenset[str]) -> set[Shape]:
    """Return the shapes of tensors that some operators take first, one by one or in lists."""
    rows = np.flatnonzero(name_mask(trace.host_calls["name"], names.__contains__) & is_inside)
    tensors = [dims for _, dims in distinct(trace, rows)[1]]
    return {shape(dims, 0) for dims in tensors} | {
        tensor for dims in tensors for tensor in _first_list(dims)
    }


def _weights(trace: Trace, is_inside: np.ndarray) -> set[Shape]:
    """Return the shapes of weights of products."""
    rows = np.flatnonzero(name_mask(trace.host_calls["name"], WEIGHT_AT.__contains__) & is_inside)
    return {shape(dims, WEIGHT_AT[name]) for name, dims in distinct(trace, rows)[1]}
