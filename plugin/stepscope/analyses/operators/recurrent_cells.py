"""Runs of recurrent cells that Python calls one after the other, which one operator could take.

Between two cells of a run are only operators that prepare inputs or store outputs. A linear layer
is one of them if its output cannot be the next cell's input, which has another width.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.operators.product_shapes import distinct, shape
from stepscope.analyses.operators.python_operators import python_operators
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

CELL = re.compile(r"^aten::(lstm_cell|gru_cell|rnn_tanh_cell|rnn_relu_cell)$")
BETWEEN = re.compile(
    r"^aten::(?:select|slice|narrow|unbind|chunk|split\w*|squeeze|unsqueeze|view|reshape|flatten|"
    r"transpose|permute|t|contiguous|detach|alias|zeros\w*|empty\w*|new_zeros|dropout|embedding|"
    r"copy_|to|lift_fresh|expand)$"
)
"""Operators that take no result of the cell into account, or only store it."""
LINEAR = "aten::linear"
COMPUTING = frozenset({LINEAR, "aten::dropout", "aten::embedding"})


@dataclass(frozen=True, kw_only=True, eq=False)
class CellRuns:
    """Recurrent cells in the window, in order; all arrays are parallel."""

    rows: Ints
    """Rows of `host_calls`."""
    run: Ints
    """Number of each cell's run."""
    end_ns: Ints
    """Start of the next cell of the run; of the last one, its end."""
    kind: tuple[str, ...]
    """Name without `aten::`: `lstm_cell`."""
    product_size: Ints
    """Multiplications of the product of the inputs with their weights; -1: shapes are unknown."""
    between: Ints
    """Rows of `host_calls` of the operators between the cells that compute; apart from `rows`."""
    cell_before: Ints
    """Of each of `between`, the index of the cell before it."""


@computed
def cell_runs(trace: Trace) -> CellRuns:
    """Return the cells that Python called, by run."""
    operators, calls = python_operators(trace), trace.host_calls
    rows = operators.rows
    is_cell = name_mask(calls["name"], CELL.match)[rows]
    at = np.flatnonzero(is_cell)
    group, shapes = distinct(trace, rows[at])
    inputs = [shape(dims, 0) for _, dims in shapes]
    weights = [shape(dims, 2) for _, dims in shapes]
    ends_run = ~is_cell & ~_may_be_between(trace, rows, {sizes[-1] for sizes in inputs if sizes})
    ended = np.cumsum(ends_run)[at]
    is_first = np.append(True, (np.diff(ended) > 0) | (np.diff(operators.step[at]) != 0))[: len(at)]
    start, end = (calls[name].to_numpy()[rows[at]] for name in ("start_ns", "end_ns"))
    size = [_product_size(*both) for both in zip(inputs, weights, strict=True)]
    followed = np.append(~is_first[1:], False)[: len(at)]
    stop = np.where(followed, np.append(start[1:], 0)[: len(at)], end)
    computing = np.flatnonzero(~is_cell & name_mask(calls["name"], COMPUTING.__contains__)[rows])
    before = np.searchsorted(at, computing) - 1
    begin = calls["start_ns"].to_numpy()[rows[computing]]
    is_between = (before != NONE) & (begin < np.append(stop, 0)[before])
    return CellRuns(
        rows=rows[at],
        run=np.cumsum(is_first) - 1,
        end_ns=stop,
        kind=tuple(shapes[number][0].removeprefix("aten::") for number in group.tolist()),
        product_size=np.array([size[number] for number in group.tolist()], dtype=np.int64),
        between=rows[computing[is_between]],
        cell_before=before[is_between],
    )


def _may_be_between(trace: Trace, rows: Ints, input_widths: set[int]) -> Mask:
    """Return which operators may be between two cells of a run."""
    names = trace.host_calls["name"]
    may_be = name_mask(names, BETWEEN.match)[rows]
    linear = np.flatnonzero(name_mask(names, LINEAR.__eq__)[rows])
    group, shapes = distinct(trace, rows[linear])
    width = [(shape(dims, 1) or (NONE,))[0] for _, dims in shapes]
    is_other = [value != NONE and value not in input_widths for value in width]
    may_be[linear] = np.array(is_other, dtype=bool)[group]
    return may_be


def _product_size(inputs: tuple[int, ...], weights: tuple[int, ...]) -> int:
    if not inputs or len(weights) != 2:
        return NONE
    batch = inputs[0] if len(inputs) == 2 else 1
    return batch * weights[0] * weights[1]
