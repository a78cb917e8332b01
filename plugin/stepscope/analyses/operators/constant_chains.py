"""Chains of operators that compute the same constant tensors in every step.

A chain begins with an operator whose result follows from numbers alone (`aten::arange(48)`), and
goes on with the next operators as long as all their tensors have shapes that the chain made. An
operator of which the result's shape is not computed here, or a random one, ends it.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.window import complete_steps
from stepscope.analyses.operators.product_shapes import Shape, tensor_shapes
from stepscope.analyses.operators.python_operators import python_operators
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace

DAMAGED = (ValueError, IndexError, OverflowError, TypeError)
"""Errors of arguments that are not of the expected kind."""
UNKNOWN: tuple[Shape, ...] = ((-1,),)
MOST = 2**40
"""Largest size of a dimension."""
Arguments = Sequence[str]
SAME = re.compile(
    r"^aten::(?:abs|add|atan2|ceil|clamp|cos|div|eq|exp|floor|floor_divide|fmod|ge|gt|le|log|lt|"
    r"masked_fill|maximum|minimum|mul|ne|neg|pow|reciprocal|remainder|rsqrt|rsub|sigmoid|sin|sqrt|"
    r"square|sub|tanh|to|tril|triu|where)$"
)
"""Operators whose result has the shapes of their tensors, broadcast."""
MASKS = frozenset({"aten::ones", "aten::full"})
"""Sources of a mask, if `aten::triu` or `aten::tril` follows: else they may be filled later."""
TRIANGLES = frozenset({"aten::triu", "aten::tril"})
SHORTEST = 2
"""Operators of a chain."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ConstantChains:
    """Chains that every complete step computes alike; all arrays are parallel."""

    first: Ints
    """First operator (row of `host_calls`)."""
    last: Ints
    length: Ints
    chain: Ints
    """Index into `chains`."""
    chains: tuple[tuple[str, ...], ...]
    """Names of each chain's operators."""


@dataclass(frozen=True)
class _Call:
    name: str
    shapes: tuple[Shape, ...]
    arguments: tuple[str, ...]


def constant_chains(trace: Trace) -> ConstantChains:
    """Return the chains that occur in each complete step, with the same numbers and shapes."""
    rows, steps, calls = _calls(trace)
    step_count = len(complete_steps(trace))
    occurrences: dict[tuple[_Call, ...], list[int]] = {}
    index = 0
    while index < len(calls):
        length = _length(calls, steps, index)
        if length >= SHORTEST:
            occurrences.setdefault(tuple(calls[index : index + length]), []).append(index)
        index += max(1, length)
    repeated = {
        chain: indexes
        for chain, indexes in occurrences.items()
        if step_count > 1 and len({int(steps[number]) for number in indexes}) == step_count
    }
    table = [
        (number, index, len(chain))
        for number, (chain, indexes) in enumerate(repeated.items())
        for index in indexes
    ]
    chain, begin, length_of = np.array(table, dtype=np.int64).reshape(-1, 3).T
    return ConstantChains(
        first=rows[begin],
        last=rows[begin + length_of - 1],
        length=length_of,
        chain=chain,
        chains=tuple(tuple(call.name for call in chain_calls) for chain_calls in repeated),
    )


def _calls(trace: Trace) -> tuple[Ints, Ints, list[_Call]]:
    """Return the rows, steps and calls of Python's operators in complete steps."""
    operators, frame = python_operators(trace), trace.host_calls
    inside = (operators.step >= 0) & (operators.step < len(complete_steps(trace)))
    rows = operators.rows[inside]
    columns = [frame[name].cat for name in ("name", "input_dims", "concrete_inputs")]
    codes = np.stack([column.codes.to_numpy()[rows] for column in columns], axis=1)
    distinct, index = np.unique(codes, axis=0, return_inverse=True)
    texts = [[*map(str, column.categories), ""] for column in columns]
    parsed = [
        _parsed(*(texts[number][code] for number, code in enumerate(row)))
        for row in distinct.tolist()
    ]
    return rows, operators.step[inside], [parsed[number] for number in index.reshape(-1).tolist()]


def _parsed(name: str, dims: str, arguments: str) -> _Call:
    try:
        shapes = tuple(tensor_shapes(json.loads(dims or "[]")))
        values = tuple(str(value) for value in json.loads(arguments or "[]"))
    except (ValueError, TypeError, RecursionError):
        return _Call(name, UNKNOWN, ())
    are_sizes = all(type(size) is int and 0 <= size <= MOST for sizes in shapes for size in sizes)
    return _Call(name, shapes if are_sizes else UNKNOWN, values)


def _length(calls: list[_Call], steps: Ints, index: int) -> int:
    """Return the number of operators of the chain that begins at an operator; 0: none does."""
    made = {shape} if (shape := _source(calls, index)) is not None else set()
    if not made:
        return 0
    length = 1
    for number in range(index + 1, len(calls)):
        call = calls[number]
        source = _source(calls, number)
        is_derived = bool(call.shapes) and all(shape in made for shape in call.shapes)
        result = source if source is not None else _result(call) if is_derived else None
        if result is None or steps[number] != steps[index]:
            break
        made.add(result)
        length += 1
    return length


def _source(calls: list[_Call], index: int) -> Shape | None:
    """Return the shape of a result that follows from numbers alone, or None."""
    try:
        return _source_shape(calls, index)
    except DAMAGED:
        return None


def _source_shape(calls: list[_Call], index: int) -> Shape | None:
    call = calls[index]
    if call.shapes:
        return None
    if call.name in MASKS:
        following = calls[min(index + 1, len(calls) - 1)]
        return _sizes(call.arguments[:1]) if following.name in TRIANGLES else None
    compute = SOURCES.get(call.name)
    return compute([_number(text) for text in call.arguments]) if compute else None


def _arange(numbers: list[float | None]) -> Shape | None:
    """Return the shape of `arange`: after its numbers come four arguments that are none."""
    bounds = [number for number in numbers[:-4] if number is not None]
    if not bounds or len(bounds) != len(numbers) - 4:
        return None
    begin, end = (0.0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = bounds[2] if len(bounds) > 2 else 1.0
    return (math.ceil((end - begin) / step),) if step else None


def _eye(numbers: list[float | None]) -> Shape | None:
    sizes = [int(number) for number in numbers[:2] if number is not None]
    return (sizes[0], sizes[-1]) if sizes else None


def _spaced(numbers: list[float | None]) -> Shape | None:
    """Return the shape of `linspace(begin, end, steps)`."""
    steps = numbers[2] if len(numbers) > 2 else None
    return None if steps is None else (int(steps),)


SOURCES: dict[str, Callable[[list[float | None]], Shape | None]] = {
    "aten::arange": _arange,
    "aten::eye": _eye,
    "aten::linspace": _spaced,
    "aten::logspace": _spaced,
}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _sizes(arguments: Arguments) -> Shape | None:
    """Return a list of sizes (`[48, 2]`) among the arguments, or None."""
    for text in arguments:
        if text.startswith("["):
            return tuple(int(size) for size in text.strip("[]").split(",") if size.strip())
    return None


def _result(call: _Call) -> Shape | None:
    """Return the shape of an operator's result, or None where it is not known."""
    compute = RESULTS.get(call.name)
    try:
        if SAME.match(call.name):
            return _broadcast(call.shapes)
        return compute(call.shapes, call.arguments) if compute else None
    except DAMAGED:
        return None


def _broadcast(shapes: tuple[Shape, ...]) -> Shape | None:
    try:
        return tuple(np.broadcast_shapes(*shapes))
    except ValueError:
        return None


def _unsqueezed(shapes: tuple[Shape, ...], arguments: Arguments) -> Shape:
    sizes = list(shapes[0])
    at = int(arguments[1])
    sizes.insert(at if at >= 0 else at + len(sizes) + 1, 1)
    return tuple(sizes)


def _joined(shapes: tuple[Shape, ...], arguments: Arguments) -> Shape:
    sizes = list(shapes[0])
    at = int(arguments[1])
    sizes[at] = sum(shape[at] for shape in shapes)
    return tuple(sizes)


def _stacked(shapes: tuple[Shape, ...], arguments: Arguments) -> Shape:
    sizes = list(shapes[0])
    at = int(arguments[1])
    sizes.insert(at if at >= 0 else at + len(sizes) + 1, len(shapes))
    return tuple(sizes)


def _viewed(shapes: tuple[Shape, ...], arguments: Arguments) -> Shape | None:
    sizes = _sizes(arguments)
    if sizes is None:
        return None
    fixed = math.prod(size for size in sizes if size >= 0)
    return tuple(size if size >= 0 else math.prod(shapes[0]) // max(1, fixed) for size in sizes)


def _sliced(shapes: tuple[Shape, ...], arguments: Arguments) -> Shape:
    sizes = list(shapes[0])
    at, begin, end, step = (int(text) for text in arguments[1:5])
    sizes[at] = len(range(sizes[at])[begin:end:step])
    return tuple(sizes)


def _meshed(shapes: tuple[Shape, ...], arguments: Arguments) -> Shape:
    del arguments
    return tuple(shape[0] for shape in shapes)


def _distances(shapes: tuple[Shape, ...], arguments: Arguments) -> Shape:
    del arguments
    left, right = shapes[:2]
    return (*left[:-1], right[-2])


def _reduced(shapes: tuple[Shape, ...], arguments: Arguments) -> Shape | None:
    sizes = list(shapes[0])
    if len(arguments) < 3 or arguments[2] != "False":
        return None
    del sizes[int(arguments[1].strip("[]"))]
    return tuple(sizes)


def _outer(shapes: tuple[Shape, ...], arguments: Arguments) -> Shape:
    del arguments
    return (shapes[0][0], shapes[1][0])


RESULTS: dict[str, Callable[[tuple[Shape, ...], Arguments], Shape | None]] = {
    "aten::unsqueeze": _unsqueezed,
    "aten::cat": _joined,
    "aten::stack": _stacked,
    "aten::view": _viewed,
    "aten::reshape": _viewed,
    "aten::slice": _sliced,
    "aten::meshgrid": _meshed,
    "aten::cdist": _distances,
    "aten::min": _reduced,
    "aten::max": _reduced,
    "aten::mean": _reduced,
    "aten::sum": _reduced,
    "aten::outer": _outer,
}
