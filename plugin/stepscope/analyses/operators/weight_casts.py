"""Weights of another type that inference converts again before each product.

A conversion is an outermost `aten::to` that calls `aten::_to_copy`. It is one of a weight if one of
the next five outermost operators is a product whose weight has its shape, or the transposed one,
and whose other operand has not. In training, weights change in each step; in inference they do not.
"""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.operators.product_shapes import argument, distinct, shape
from stepscope.analyses.operators.python_operators import python_operators
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames.data_types import data_type
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

CONVERSION = "aten::_to_copy"
OPERANDS = {
    "aten::linear": (0, 1),
    "aten::mm": (0, 1),
    "aten::matmul": (0, 1),
    "aten::addmm": (1, 2),
    "aten::conv1d": (0, 1),
    "aten::conv2d": (0, 1),
    "aten::conv3d": (0, 1),
    "aten::embedding": (1, 0),
}
"""Product to the positions of its input and its weight."""
MOST_BETWEEN = 4
"""Operators between a conversion and its product: scaling, shifting, transposing."""
Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightCasts:
    """Conversions of weights."""

    rows: Ints
    """Rows of `host_calls`: the conversions, in the order they began."""
    scaled: Ints
    """Rows of the operators between a conversion and its product that take the weight."""

    def __len__(self) -> int:
        """Return the number of conversions."""
        return len(self.rows)


@dataclass(frozen=True, kw_only=True)
class _Inputs:
    """Shapes of an operator's inputs; () where it has none."""

    first: Shape
    operand: Shape
    """The other factor of a product."""
    weight: Shape
    weight_at: int
    """Position of the weight."""


@computed
def weight_casts(trace: Trace) -> WeightCasts:
    """Return the conversions of weights; none in a training, or without shapes."""
    if is_training(trace):
        return _casts([], [])
    rows = python_operators(trace).rows
    group, kinds = distinct(trace, rows)
    inputs = [_inputs(name, dims) for name, dims in kinds]
    of_row = [inputs[number] for number in group.tolist()]
    casts: list[int] = []
    scaled: list[int] = []
    for index in np.flatnonzero(_converts(trace)[rows]).tolist():
        weight = of_row[index].first
        for later in range(index + 1, min(index + 2 + MOST_BETWEEN, len(rows))):
            product = of_row[later]
            if _is_weight(weight, product) and _is_converted(
                trace, int(rows[index]), int(rows[later]), product.weight_at
            ):
                casts.append(int(rows[index]))
                between = range(index + 1, later)
                scaled += [int(rows[at]) for at in between if of_row[at].first == weight]
                break
    return _casts(casts, scaled)


def _casts(casts: list[int], scaled: list[int]) -> WeightCasts:
    rows, between = (np.array(values, dtype=np.int64) for values in (casts, sorted(set(scaled))))
    return WeightCasts(rows=rows, scaled=between)


def _inputs(name: str, dims: str) -> _Inputs:
    operand_at, weight_at = OPERANDS.get(name, (0, 0))
    weight = shape(dims, weight_at) if name in OPERANDS else ()
    is_batched = name == "aten::matmul" and len(weight) != 2
    return _Inputs(
        first=shape(dims, 0),
        operand=shape(dims, operand_at),
        weight=() if is_batched else weight,
        weight_at=weight_at,
    )


def _is_weight(weight: Shape, product: _Inputs) -> bool:
    either = (weight, weight[::-1])
    return len(weight) > 1 and product.weight in either and product.operand not in either


def _is_converted(trace: Trace, cast: int, product: int, weight_at: int) -> bool:
    """Return whether the types differ, where both are known: else it moves to another device."""
    source, target = input_type(trace, cast), input_type(trace, product, weight_at)
    return not source or not target or source != target


def _converts(trace: Trace) -> Mask:
    """Return the calls that convert a type themselves, or call the operator that does."""
    calls = trace.host_calls
    converts = name_mask(calls["name"], CONVERSION.__eq__)
    parent = calls["parent"].to_numpy()[converts]
    converts[parent[parent != NONE]] = True
    return converts


def input_type(trace: Trace, row: int, index: int = 0) -> str:
    """Return the type of an input of a call; "" where it is no tensor or not recorded."""
    return data_type(argument(str(trace.host_calls["input_types"].iloc[row]), index)) or ""
