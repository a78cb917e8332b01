"""Operand shapes of matrix products, and single arguments of operators, as recorded (JSON)."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.core import group_statistics
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace

LEFT_OPERAND: Mapping[str, int] = MappingProxyType(
    {
        "aten::mm": 0,
        "aten::bmm": 0,
        "aten::addmm": 1,
        "aten::addmm_": 1,
        "aten::_addmm_activation": 1,
        "aten::baddbmm": 1,
        "aten::baddbmm_": 1,
    }
)
"""Index of a product's left operand; the right one follows."""
MOST = 2**63
"""Above int64: no tensor has such a size or stride."""
Pair = tuple[int, int]
Shape = tuple[int, ...]


def operands(name: str, text: str) -> tuple[Pair, Pair] | None:
    """Return the last two numbers of both operands, of shapes or of strides (JSON).

    Of shapes `((m, k), (k, n))`. None for other operators, or without such numbers.
    """
    both = _both(name, text)
    if both is None or min(map(len, both)) < 2:
        return None
    left, right = both
    return (left[-2], left[-1]), (right[-2], right[-1])


def batched(name: str, text: str) -> tuple[int, int, int, int] | None:
    """Return batch, rows, inner dimension and columns of a batched product, or None."""
    both = _both(name, text)
    if both is None or [len(sizes) for sizes in both] != [3, 3]:
        return None
    (batch, rows, inner), right = both
    return batch, rows, inner, right[2]


def _both(name: str, text: str) -> tuple[list[int], list[int]] | None:
    at = LEFT_OPERAND.get(name)
    if at is None or not text:
        return None
    try:
        left, right = json.loads(text)[at : at + 2]
        numbers = [*left, *right]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    if not all(isinstance(number, int) and 0 <= number < MOST for number in numbers):
        return None
    return list(left), list(right)


def distinct(trace: Trace, calls: Ints) -> tuple[Ints, list[tuple[str, str]]]:
    """Return the group of some rows of `host_calls`, and each group's name and shapes.

    Shapes are JSON text, "" where not recorded. Row -1, no call, has two empty texts.
    """
    columns = [trace.host_calls[name].cat for name in ("name", "input_dims")]
    codes = [np.append(column.codes.to_numpy(), -1)[calls] for column in columns]
    frame = pd.DataFrame({"name": codes[0], "dims": codes[1]})
    group, first = group_statistics.group_rows(frame, frame.columns)
    names, dims = ([*map(str, column.categories), ""] for column in columns)
    return group, [(names[name], dims[shape]) for name, shape in frame.to_numpy()[first].tolist()]


"""Larger numbers are no sizes."""


def argument(arguments: str, index: int) -> str:
    """Return an argument as text (`True`, `float`); "" where there is none."""
    value = _at(arguments, index)
    return "" if value is None else str(value)


def shape(dims: str, index: int) -> tuple[int, ...]:
    """Return the shape of an input; () where it is no tensor or not recorded."""
    value = _at(dims, index)
    sizes = value if isinstance(value, list) else []
    return tuple(sizes) if all(type(size) is int and 0 <= size < MOST for size in sizes) else ()


def list_of_shapes(dims: str, index: int) -> list[Shape]:
    """Return the shapes of an input that is a list of tensors."""
    values = _at(dims, index)
    text = json.dumps(values) if isinstance(values, list) else "[]"
    return [shape(text, at) for at in range(len(values) if isinstance(values, list) else 0)]


def _at(text: str, index: int) -> Any:  # noqa: ANN401 (whatever is written)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return values[index] if isinstance(values, list) and len(values) > index else None


def tensor_shapes(dims: list[object]) -> list[Shape]:
    """Return the shapes of an operator's tensors, those of lists as well; () are numbers."""
    shapes: list[Shape] = []
    for value in dims:
        if isinstance(value, list) and value and isinstance(value[0], list):
            shapes.extend(tuple(sizes) for sizes in value)
        elif isinstance(value, list) and value:
            shapes.append(tuple(value))
    return shapes
