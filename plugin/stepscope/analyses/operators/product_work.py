"""Work of products of matrices, and of elementwise operators."""

from collections.abc import Callable
from dataclasses import replace
from math import prod

from stepscope.analyses.operators.work_inputs import Inputs, Shape, UnknownWorkError, Work
from stepscope.model.frames.data_types import PACKED_TYPE, SCALAR_TYPES


def matrices(inputs: Inputs, left: int, rank: int) -> Work:
    """Count a product of matrices, or of as many as the first dimension says."""
    a, b = inputs.shape(left, rank=rank), inputs.shape(left + 1, rank=rank)
    if a[-1] != b[-2] or a[:-2] != b[:-2]:
        raise UnknownWorkError
    return Work(flops=2 * prod(a) * b[-1], outputs=((*a[:-1], b[-1]),))


def product(left: int = 0, rank: int = 2) -> Callable[[Inputs], Work]:
    """Return the formula of a product whose left operand is at a place; rank 3: of batches."""
    return lambda inputs: matrices(inputs, left, rank)


def elementwise(inputs: Inputs) -> Work:
    """Count one operation an element of the first input, as torch does: not of the result."""
    first = inputs.shape(0)
    try:
        second = inputs.shape(1)
    except UnknownWorkError:
        second = ()
    output = _broadcast(first, second)
    larger = 1 if len(second) > len(first) else 0  # a tensor of no dimensions sets no type
    return Work(flops=prod(first), outputs=(output,), output_type=inputs.type_of(larger))


def _broadcast(first: Shape, second: Shape) -> Shape:
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    padded = (1,) * (len(longer) - len(shorter)) + shorter
    return tuple(b if a == 1 else a for a, b in zip(longer, padded, strict=True))


def linear(inputs: Inputs) -> Work:
    """Count `linear(input, weight, bias)`, the weight being transposed."""
    x, weight = inputs.shape(0), inputs.shape(1, rank=2)
    if not x or x[-1] != weight[1]:
        raise UnknownWorkError
    return Work(flops=2 * prod(x) * weight[0], outputs=((*x[:-1], weight[0]),))


def matmul(inputs: Inputs) -> Work:
    """Count `matmul(a, b)`, of vectors, matrices or batches that are broadcast."""
    a, b = inputs.shape(0), inputs.shape(1)
    if not a or not b:
        raise UnknownWorkError
    rows = a[:-1]
    inner, columns = (b[0], ()) if len(b) == 1 else (b[-2], b[-1:])
    if a[-1] != inner:
        raise UnknownWorkError
    batch = _broadcast(rows[:-1], b[:-2])
    output = (*batch, *rows[-1:], *columns)
    return Work(flops=2 * prod(output) * inner, outputs=(output,))


def vector_product(inputs: Inputs, left: int = 0) -> Work:
    """Count a matrix times a vector."""
    matrix, vector = inputs.shape(left, rank=2), inputs.shape(left + 1, rank=1)
    if matrix[1] != vector[0]:
        raise UnknownWorkError
    return Work(flops=2 * prod(matrix), outputs=(matrix[:1],))


def scaled_product(inputs: Inputs, out_type: int = 6) -> Work:
    """`_scaled_mm(self, mat2, scale_a, scale_b, bias, scale_result, out_dtype)`, and its next."""
    work = matrices(inputs, 0, 2)
    return replace(_unpacked(inputs, work), output_type=_written_type(inputs, out_type))


def scaled_grouped_product(offsets: int, out_type: int) -> Callable[[Inputs], Work]:
    """Return the formula of `_scaled_grouped_mm`, by the places of `offs` and `out_dtype`."""

    def count(inputs: Inputs) -> Work:
        written = _written_type(inputs, out_type) or "bfloat16"  # what torch takes where none is
        return replace(_unpacked(inputs, grouped_product(inputs, offsets)), output_type=written)

    return count


def _written_type(inputs: Inputs, place: int) -> str | None:
    return SCALAR_TYPES.get(inputs.value(place)) if len(inputs.values) > place else None


def _unpacked(inputs: Inputs, work: Work) -> Work:
    """Return the work of operands that may hold two numbers in an element."""
    is_packed = inputs.type_of(0) == PACKED_TYPE
    return replace(work, flops=2 * work.flops) if is_packed else work


def grouped_product(inputs: Inputs, offsets: int = 2) -> Work:
    """`_grouped_mm(self, mat2, offs)`: rows, columns or the sum are parted among the groups."""
    a, b = inputs.shape(0), inputs.shape(1)
    if len(a) == len(b) == 3:
        return matrices(inputs, 0, 3)
    groups = inputs.shape(offsets, rank=1)[0] if len(a) == len(b) == 2 else None
    if len(a) not in (2, 3) or len(b) not in (2, 3) or a[-1] != b[-2]:
        raise UnknownWorkError
    output = (a[-2], b[-1]) if groups is None else (groups, a[-2], b[-1])
    return Work(flops=2 * a[-2] * a[-1] * b[-1], outputs=(output,))
