"""Products and distances of all pairs of rows, computed by broadcasting and a sum.

`(a[:, None] * b[None]).sum(-1)` writes a tensor of N x M x D elements, of which the sum leaves
N x M: a matrix product. The operators of a thread show it by name and shapes: a product or a
difference of operands that extend each other, operators on its result that keep the form, and a sum
over dimensions that both operands have. Dimensions of stride 0 (`expand`) count as broadcast.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from stepscope.analyses.core import group_statistics
from stepscope.analyses.core.forward_backward import forward_backward
from stepscope.analyses.operators.product_shapes import MOST, Shape, tensor_shapes
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.trace import Trace, computed

DOT, DISTANCE, COSINE = "dot product", "distance", "cosine similarity"
BROADCASTING: Mapping[str, str] = MappingProxyType(
    {
        "aten::mul": DOT,
        "aten::sub": DISTANCE,
        "aten::mse_loss": DISTANCE,
        "aten::cosine_similarity": COSINE,
    }
)
"""Operators of two operands, and what a sum of their result is."""
DIMENSIONS: Mapping[str, int] = MappingProxyType(
    {
        "aten::sum": 1,
        "aten::mean": 1,
        "aten::linalg_vector_norm": 2,
        "aten::norm": 2,
        "aten::linalg_norm": 2,
        "aten::cosine_similarity": 2,
    }
)
"""Reductions, and the index of their argument of dimensions."""
SUMS = frozenset({"aten::sum", "aten::mean"})
REDUCTIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {DOT: SUMS, DISTANCE: SUMS | {"aten::linalg_vector_norm", "aten::linalg_norm", "aten::norm"}}
)
SCALING = re.compile(
    r"^aten::(?:(?:mul|div|neg|to|_to_copy|contiguous|clone|view|reshape|alias|detach)_?)$"
)
"""Operators after which a sum is still one of products, or of distances."""
POWERS = re.compile(r"^aten::(?:(?:pow|square|abs|add)_?|mul_?)$")
"""The same for differences only."""
MOST_BETWEEN = 40
"""Operators from the first one on, among which the reduction is."""
LEAST_DIMENSIONS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class BroadcastProducts:
    """Products by broadcasting, in the order they began; arrays but the last two are parallel."""

    first: Ints
    """The broadcasting operator, as a row of `host_calls`."""
    elements: Ints
    """Elements of its result."""
    extension: Ints
    """Elements of its result per element of the larger operand, rounded down."""
    width: Ints
    """Elements that a sum adds up."""
    kinds: tuple[str, ...]
    shapes: tuple[str, ...]
    """Shapes of the two operands, as text."""
    rows: Ints
    """Operators on the large tensors, forward, as rows of `host_calls`."""
    product: Ints
    """Product of each of `rows`, as an index."""

    def selected(self, mask: Mask) -> "BroadcastProducts":
        """Return some of the products."""
        is_selected = mask[self.product]
        return BroadcastProducts(
            first=self.first[mask],
            elements=self.elements[mask],
            extension=self.extension[mask],
            width=self.width[mask],
            kinds=tuple(compress(self.kinds, mask)),
            shapes=tuple(compress(self.shapes, mask)),
            rows=self.rows[is_selected],
            product=(np.cumsum(mask) - 1)[self.product[is_selected]],
        )


class _Call(NamedTuple):
    name: str
    shapes: tuple[Shape, ...]
    input_count: int
    arguments: tuple[str, ...]


class _Broadcast(NamedTuple):
    call: _Call
    kind: str
    result: Shape
    shared: frozenset[int]
    """Dimensions of the result that both operands have."""
    extension: int
    operands: tuple[Shape, Shape]


class _Product(NamedTuple):
    broadcast: _Broadcast
    width: int
    rows: tuple[int, ...]


@computed
def broadcast_products(trace: Trace) -> BroadcastProducts:
    """Return the products by broadcasting in forward passes, of any size."""
    products = list(_products(trace))
    shapes = [" × ".join(map(_text, one.broadcast.operands)) for one in products]
    return BroadcastProducts(
        first=np.array([one.rows[0] for one in products], dtype=np.int64),
        elements=np.array([math.prod(one.broadcast.result) for one in products], dtype=np.int64),
        extension=np.array([one.broadcast.extension for one in products], dtype=np.int64),
        width=np.array([one.width for one in products], dtype=np.int64),
        kinds=tuple(one.broadcast.kind for one in products),
        shapes=tuple(shapes),
        rows=np.array([row for one in products for row in one.rows], dtype=np.int64),
        product=np.repeat(np.arange(len(products)), [len(one.rows) for one in products]),
    )


def _text(shape: Shape) -> str:
    return json.dumps(list(shape))


def _products(trace: Trace) -> Iterator[_Product]:
    calls = trace.host_calls
    start_ns, end_ns = (calls[name].to_numpy() for name in ("start_ns", "end_ns"))
    threads = calls["thread"].cat.codes.to_numpy()
    operators = np.flatnonzero(calls["is_operator"].to_numpy())
    of_thread: dict[int, Ints] = {}
    until_ns: dict[int, int] = {}
    for row, broadcast in _candidates(trace):
        thread = int(threads[row])
        if thread not in of_thread:
            of_thread[thread] = operators[threads[operators] == thread]
        if start_ns[row] < until_ns.get(thread, 0):
            continue  # a part of the product before
        at = int(np.searchsorted(of_thread[thread], row)) + 1
        product = _followed(trace, row, broadcast, of_thread[thread][at : at + MOST_BETWEEN])
        if product is not None:
            until_ns[thread] = int(end_ns[product.rows[-1]])
            yield product


def _candidates(trace: Trace) -> Iterator[tuple[int, _Broadcast]]:
    """Yield the forward operators whose two operands extend each other, in order."""
    calls = trace.host_calls
    names = calls["name"].cat
    is_named = np.array([str(name) in BROADCASTING for name in names.categories] + [False])
    is_candidate = is_named[names.codes.to_numpy()] & calls["is_operator"].to_numpy()
    is_candidate &= forward_backward(trace).node == NONE
    rows = np.flatnonzero(is_candidate)
    parsed, index = _parsed(trace, rows)
    has_pair = np.array([_has_pair(call) for call in parsed], dtype=bool)[index]
    rows, index = rows[has_pair], index[has_pair]
    strides = trace.source.label("Input Strides", calls["event"].to_numpy()[rows])
    texts = [*map(str, strides.categories), ""]
    codes = np.asarray(strides.codes).astype(np.int64)
    codes = np.asarray(strides.codes).tolist()
    broadcasts: dict[tuple[int, int], _Broadcast | None] = {}
    for row, call, written in zip(rows.tolist(), index.tolist(), codes, strict=True):
        if (call, written) not in broadcasts:
            broadcasts[call, written] = _broadcast(parsed[call], texts[written])
        if (broadcast := broadcasts[call, written]) is not None:
            yield row, broadcast


def _parsed(trace: Trace, rows: Ints) -> tuple[list[_Call], Ints]:
    """Return the distinct calls of some rows of `host_calls`, and each row's call as an index."""
    columns = [trace.host_calls[name].cat for name in ("name", "input_dims", "concrete_inputs")]
    codes = [column.codes.to_numpy()[rows] for column in columns]
    frame = pd.DataFrame(dict(zip(("name", "dims", "arguments"), codes, strict=True)))
    index, first = group_statistics.group_rows(frame, frame.columns)
    texts = [[*map(str, column.categories), ""] for column in columns]
    calls = [
        _call(*(text[code] for text, code in zip(texts, key, strict=True)))
        for key in frame.to_numpy()[first].tolist()
    ]
    return calls, np.asarray(index)


def _call(name: str, dims: str, arguments: str) -> _Call:
    try:
        sizes = json.loads(dims or "[]")
        shapes = tuple(tensor_shapes(sizes))
        values = tuple(str(value) for value in json.loads(arguments or "[]"))
    except (ValueError, TypeError, RecursionError):
        return _Call(name, (), 0, ())
    are_sizes = all(type(size) is int and 0 < size < MOST for sizes in shapes for size in sizes)
    return _Call(name, shapes if are_sizes else (), len(sizes), values)


def _has_pair(call: _Call) -> bool:
    return len(call.shapes) == 2 and max(map(len, call.shapes)) >= LEAST_DIMENSIONS


def _broadcast(call: _Call, strides: str) -> _Broadcast | None:
    """Return how two operands extend each other; None where one is not extended."""
    try:
        written = tensor_shapes(json.loads(strides or "[]"))
    except (ValueError, TypeError, RecursionError):
        written = []
    rank = max(map(len, call.shapes))
    left, right = (_in_memory(shape, written, at, rank) for at, shape in enumerate(call.shapes))
    try:
        result = tuple(np.broadcast_shapes(*call.shapes))
    except ValueError:
        return None
    extension = math.prod(result) // max(math.prod(left), math.prod(right))
    if extension < 2:
        return None
    shared = frozenset(at for at in range(rank) if left[at] == right[at] == result[at] > 1)
    return _Broadcast(call, BROADCASTING[call.name], result, shared, extension, (left, right))


def _in_memory(shape: Shape, strides: Sequence[Shape], at: int, rank: int) -> Shape:
    """Return an operand's shape in memory: 1 for missing dimensions, and for those of stride 0."""
    of_operand = strides[at] if at < len(strides) else ()
    if len(of_operand) == len(shape):
        shape = tuple(size if stride else 1 for size, stride in zip(shape, of_operand, strict=True))
    return (1,) * (rank - len(shape)) + shape


def _followed(trace: Trace, row: int, broadcast: _Broadcast, following: Ints) -> _Product | None:
    """Return the product that begins at a row, if the operators after it complete one."""
    if broadcast.kind == COSINE:
        return _product(broadcast, broadcast.call, [row])
    start_ns, end_ns = (trace.host_calls[name].to_numpy() for name in ("start_ns", "end_ns"))
    calls, index = _parsed(trace, following)
    elements = math.prod(broadcast.result)
    rows = [row]
    for after, number in zip(following.tolist(), index.tolist(), strict=True):
        call = calls[number]
        large = sum(math.prod(shape) == elements for shape in call.shapes)
        if not large or start_ns[after] < end_ns[rows[-1]]:
            continue  # of other tensors, or a part of the operator before
        rows.append(after)
        if call.name in REDUCTIONS[broadcast.kind]:
            return _product(broadcast, call, rows) if call.shapes[0] == broadcast.result else None
        if not _keeps_form(call, broadcast.kind, large):
            return None
    return None


def _keeps_form(call: _Call, kind: str, large: int) -> bool:
    """Return whether a sum after this operator is still one of products, or of distances."""
    if kind == DISTANCE and POWERS.match(call.name):
        is_sum = call.name.startswith("aten::add")
        return len(call.shapes) == 1 if is_sum else True
    return large == 1 and SCALING.match(call.name) is not None


def _product(broadcast: _Broadcast, reduction: _Call, rows: Sequence[int]) -> _Product | None:
    """Return the product, if the reduction is over dimensions that both operands have."""
    rank, at = len(broadcast.result), DIMENSIONS[reduction.name]
    if reduction.arguments:
        text = reduction.arguments[at] if at < len(reduction.arguments) else ""
        dimensions = [int(number) for number in re.findall(r"-?\d{1,19}", text)]
    else:  # not recorded; a reduction over all dimensions has no such argument
        dimensions = [rank - 1] if reduction.input_count > at else []
    reduced = {number % rank for number in dimensions}
    if not reduced or not reduced <= broadcast.shared:
        return None
    return _Product(
        broadcast, math.prod(broadcast.result[number] for number in reduced), tuple(rows)
    )
