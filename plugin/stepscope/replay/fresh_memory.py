"""Memory that operators on the CPU write first: there, recording slows the host most.

While the profiler stores events between the tensors, a result rarely gets the memory of one that
was just freed: its pages come from the system, or are no longer in a cache. An operator without a
large result, and Python, lose nothing to it.
"""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from stepscope.analyses.core import group_statistics
from stepscope.base import recording_costs as costs
from stepscope.model.arrays import NONE, Floats
from stepscope.model.frames.data_types import BYTES, data_type
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

COLUMNS = ("name", "input_dims", "input_types")
WRITES = frozenset({"aten::copy_", "aten::normal_", "aten::uniform_"})
"""Operators that write a result for the operator that calls them, into memory that it made."""
LITTLE = frozenset(
    {
        *("aten::sum", "aten::mean", "aten::linalg_vector_norm", "aten::max", "aten::argmax"),
        *("aten::any", "aten::all", "aten::equal"),
        *("aten::index", "aten::index_select", "aten::gather", "aten::topk"),
    }
)
"""Operators whose result is much smaller than their inputs."""
COMPARISONS = frozenset(f"aten::{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge"))
"""Operators whose result has a byte per element."""
PRODUCTS = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1}
"""Matrix products to the position of their first factor."""
EMBEDDING = "aten::embedding"
MOST_BYTES = 2**62
"""Damaged shapes may have any size."""
LAYERS = frozenset(
    f"aten::{name}"
    for name in ("linear", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")
)
"""Operators whose weights are no measure of their result: its size is that of the first input."""


@computed
def most_lost_ns(trace: Trace) -> Floats:
    """Return the most that each call of `host_calls` may lose to fresh memory; shape (n,).

    0 where no shapes were recorded.
    """
    most_ns = costs.MOST_MEMORY_PART * computing_ns(trace)
    return np.asarray(np.minimum(most_ns, costs.FRESH_PAGE.ns * result_pages(trace)))


def computing_ns(trace: Trace) -> Floats:
    """Return the self time of each call of `host_calls` beyond a usual call; shape (n,)."""
    return np.asarray(np.maximum(0.0, trace.host_calls["self_ns"].to_numpy() - costs.CALL_NS))


@computed
def result_pages(trace: Trace) -> Floats:
    """Return the pages of memory that each call of `host_calls` writes first; shape (n,).

    0 for calls that take no longer than a call, and where no shapes were recorded.
    """
    calls = trace.host_calls
    is_operator = calls["is_operator"].to_numpy()
    parent = calls["parent"].to_numpy()
    is_called = (parent != NONE) & is_operator[parent] if len(calls) else is_operator
    overwrites = name_mask(calls["name"], lambda name: name.endswith("_"))
    is_write = name_mask(calls["name"], WRITES.__contains__) & is_called
    has_shapes = (calls["input_dims"].cat.codes >= 0).to_numpy()
    is_writer = is_operator & has_shapes & (~overwrites | is_write)
    rows = np.flatnonzero(is_writer & (computing_ns(trace) > 0))
    pages = np.zeros(len(calls))
    if len(rows):
        written = calls[list(COLUMNS)].iloc[rows]
        group, first = group_statistics.group_rows(written, COLUMNS)
        texts = written.iloc[first].astype(object).itertuples(index=False, name=None)
        sizes = [min(MOST_BYTES, result_bytes(*map(str, text))) for text in texts]
        of_group = np.array(sizes, dtype=np.float64)
        pages[rows] = of_group[group] / costs.PAGE_BYTES
    return pages


def result_bytes(name: str, dims: str, types: str) -> int:
    """Return the approximate size of an operator's result: mostly that of its largest input."""
    shapes, written = _as_list(dims), _as_list(types)
    item = next((BYTES[of_tensor] for kind in written if (of_tensor := data_type(str(kind)))), 4)
    return (1 if name in COMPARISONS else item) * _result_elements(name, shapes)


def _result_elements(name: str, shapes: Sequence[Any]) -> int:
    first = PRODUCTS.get(name, 0)
    pair = [shape for shape in shapes[first : first + 2] if _is_shape(shape) and shape]
    if len(pair) == 2 and name in PRODUCTS:
        return int(math.prod(pair[0][:-1]) * pair[1][-1])
    if len(pair) == 2 and name == EMBEDDING:
        return int(pair[0][-1] * math.prod(pair[1]))
    if name in LAYERS:
        return next(_elements(shapes), 0)
    return 0 if name in LITTLE else max(_elements(shapes), default=0)


def _as_list(text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) else []


def _elements(shapes: Sequence[Any]) -> Iterator[int]:
    """Yield the elements of each input; of a list of tensors, all of them."""
    for shape in shapes:
        if _is_shape(shape):
            yield math.prod(shape) if shape else 0
        elif isinstance(shape, list):
            yield sum(math.prod(part) for part in shape if _is_shape(part))


def _is_shape(value: object) -> bool:
    return isinstance(value, list) and all(type(size) is int and size >= 0 for size in value)
