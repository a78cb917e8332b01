"""Weights of another type that inference converts again before each product.

A conversion is an outermost `aten::to` that calls `aten::_to_copy`. It is one of a weight if one of
the next five outermost operators is a product whose weight has its shape, or the transposed one,
and whose other operand has not. In training, weights change in each step; in inference they do not.
"""

import json
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.operators.product_shapes import shape
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
Types = tuple[str | None, ...]
"""Types of inputs; None: no tensor, or unknown."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightCasts:
    """Conversions of weights; arrays are parallel."""

    rows: Ints
    """Rows of `host_calls`: the conversions, in the order they began."""
    products: Ints
    """Row of each product."""
    scaled: Ints
    """Rows of the operators between a conversion and its product that take the weight."""

    def __len__(self) -> int:
        """Return the number of conversions."""
        return len(self.rows)


@computed
def weight_casts(trace: Trace) -> WeightCasts:
    """Return the conversions of weights; none in a training, or without shapes."""
    if is_training(trace):
        return _casts([], [], [])
    rows = python_operators(trace).rows
    is_cast = _converts(trace)[rows]
    first, operands = _shapes(trace)
    types = _types(trace, rows)
    codes = trace.host_calls["input_dims"].cat.codes.to_numpy()[rows]
    names = trace.host_calls["name"].cat.codes.to_numpy()[rows]
    texts = [str(name) for name in trace.host_calls["name"].cat.categories]
    casts: list[int] = []
    products: list[int] = []
    scaled: list[int] = []
    for index in np.flatnonzero(is_cast).tolist():
        weight = first[codes[index]]
        if len(weight) < 2:
            continue
        for later in range(index + 1, min(index + 2 + MOST_BETWEEN, len(rows))):
            pair = operands.get((int(names[later]), int(codes[later])))
            is_weight = pair is not None and _is_weight(weight, *pair)
            if is_weight and _is_converted(
                types[index], types[later], OPERANDS[texts[names[later]]]
            ):
                casts.append(int(rows[index]))
                products.append(int(rows[later]))
                between = range(index + 1, later)
                scaled += [int(rows[at]) for at in between if first[codes[at]] == weight]
                break
    return _casts(casts, products, scaled)


def _casts(casts: list[int], products: list[int], scaled: list[int]) -> WeightCasts:
    rows, of_product, between = (
        np.array(values, dtype=np.int64) for values in (casts, products, sorted(set(scaled)))
    )
    return WeightCasts(rows=rows, products=of_product, scaled=between)


def _is_weight(weight: Shape, operand: Shape, of_product: Shape) -> bool:
    return of_product in (weight, weight[::-1]) and operand not in (weight, weight[::-1])


def _is_converted(cast: Types, product: Types, operands: tuple[int, int]) -> bool:
    """Return whether the types differ, where both are known: else it moves to another device."""
    source, target = (
        types[position] if position < len(types) else None
        for types, position in ((cast, 0), (product, operands[1]))
    )
    return source is None or target is None or source != target


def _types(trace: Trace, rows: Ints) -> list[Types]:
    """Return the types of each row's inputs."""
    column = trace.host_calls["input_types"].cat
    parsed = [*(_parsed_types(str(text)) for text in column.categories), ()]
    return [parsed[code] for code in column.codes.to_numpy()[rows].tolist()]


def _parsed_types(text: str) -> Types:
    try:
        return tuple(data_type(str(kind)) for kind in json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return ()


def _converts(trace: Trace) -> Mask:
    """Return the calls that convert a type themselves, or call the operator that does."""
    calls = trace.host_calls
    converts = name_mask(calls["name"], CONVERSION.__eq__)
    parent = calls["parent"].to_numpy()[converts]
    converts[parent[parent != NONE]] = True
    return converts


def _shapes(trace: Trace) -> tuple[list[Shape], dict[tuple[int, int], tuple[Shape, Shape]]]:
    """Return the first input's shape of each text, and both operands of products.

    By code of `input_dims` (the last, -1, is unknown), and by codes of name and `input_dims`.
    """
    calls = trace.host_calls
    texts = [str(text) for text in calls["input_dims"].cat.categories]
    first = [shape(text, 0) for text in texts]
    names = {str(name): code for code, name in enumerate(calls["name"].cat.categories)}
    operands = {
        (names[name], code): (shape(text, operand), shape(text, weight))
        for name, (operand, weight) in OPERANDS.items()
        if name in names
        for code, text in enumerate(texts)
        if name != "aten::matmul" or len(shape(text, weight)) == 2
    }
    return [*first, ()], operands


def converted_types(trace: Trace, row: int) -> str:
    """Return the type of a conversion's input; "" where it was not recorded."""
    [types] = _types(trace, np.array([row]))
    return (types[0] if types else None) or ""
