"""Least traffic of gathers and scatters, which touch the elements that they pick.

At most the whole input counts: elements that are picked often are read once.
"""

from collections.abc import Mapping

from stepscope.analyses.operators.work_inputs import (
    Inputs,
    Shape,
    Traffic,
    TrafficFormula,
    UnknownWorkError,
    like,
    picked,
    traffic,
)

INDICES = "Indices in a list are not recorded."
RESULT_SIZE = "The size of the result depends on the values of the inputs."


def axis_of(inputs: Inputs, index: int, shape: Shape) -> int:
    """Return the dimension that an argument names; of one dimension it need not be recorded."""
    if len(shape) == 1:
        return 0
    (axis,) = inputs.signed(index) or (None,)
    if axis is None or not -len(shape) <= axis < len(shape):
        raise UnknownWorkError
    return axis % len(shape)


def index_select(inputs: Inputs) -> Traffic:
    """Count `index_select(self, dim, index)`."""
    x, index = inputs.tensor(0), inputs.tensor(2)
    axis = axis_of(inputs, 1, x.shape)
    result = like(x, (*x.shape[:axis], index.elements, *x.shape[axis + 1 :]))
    return traffic([picked(x, result.elements), index], [result], 0)


def embedding(inputs: Inputs) -> Traffic:
    """Count `embedding(weight, indices)`."""
    weight, index = inputs.tensor(0), inputs.tensor(1)
    if len(weight.shape) != 2:
        raise UnknownWorkError
    result = like(weight, (*index.shape, weight.shape[1]))
    return traffic([picked(weight, result.elements), index], [result], 0)


def embedding_backward(inputs: Inputs) -> Traffic:
    """Count `embedding_dense_backward(grad_output, indices, num_weights, …)`."""
    gradient, index = inputs.tensor(0), inputs.tensor(1)
    (count,) = inputs.numbers(2, 1)
    if not gradient.shape:
        raise UnknownWorkError
    weight = like(gradient, (count, gradient.shape[-1]))
    return traffic([gradient, index], [weight], gradient.elements)


def gather(inputs: Inputs) -> Traffic:
    """Count `gather(self, dim, index)`."""
    x, index = inputs.tensor(0), inputs.tensor(2)
    result = like(x, index.shape)
    return traffic([picked(x, index.elements), index], [result], 0)


def scatter(*, adds: bool) -> TrafficFormula:
    """Return the formula of `scatter(self, dim, index, src or value)`, or of one that adds."""

    def count(inputs: Inputs) -> Traffic:
        target, index = inputs.tensor(0), inputs.tensor(2)
        touched = picked(target, index.elements)
        source = [picked(tensor, index.elements) for tensor in inputs.tensors(3, 4)]
        read = [*source, index, *([touched] if adds else [])]
        return traffic(read, [touched], index.elements * adds)

    return count


def index_update(*, adds: bool) -> TrafficFormula:
    """Return the formula of `index_copy_(self, dim, index, source)`, or of `index_add_`."""

    def count(inputs: Inputs) -> Traffic:
        target, index, source = (inputs.tensor(number) for number in (0, 2, 3))
        touched = picked(target, source.elements)
        read = [source, index, *([touched] if adds else [])]
        return traffic(read, [touched], source.elements * adds)

    return count


def unknown(reason: str) -> TrafficFormula:
    """Return a formula that gives a reason only."""

    def count(_: Inputs) -> Traffic:
        raise UnknownWorkError(reason)

    return count


GATHERS: Mapping[str, TrafficFormula] = {
    "aten::index_select": index_select,
    "aten::embedding": embedding,
    "aten::embedding_dense_backward": embedding_backward,
    "aten::gather": gather,
    "aten::scatter": scatter(adds=False),
    "aten::scatter_": scatter(adds=False),
    "aten::scatter_add": scatter(adds=True),
    "aten::scatter_add_": scatter(adds=True),
    "aten::index_copy": index_update(adds=False),
    "aten::index_copy_": index_update(adds=False),
    "aten::index_add": index_update(adds=True),
    "aten::index_add_": index_update(adds=True),
    "aten::index": unknown(INDICES),
    "aten::index_put_": unknown(INDICES),
    "aten::_index_put_impl_": unknown(INDICES),
    "aten::nonzero": unknown(RESULT_SIZE),
    "aten::masked_select": unknown(RESULT_SIZE),
    "aten::repeat_interleave": unknown(RESULT_SIZE),
}
