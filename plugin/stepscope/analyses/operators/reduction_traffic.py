"""Least traffic and operations of reductions, scans and softmax.

Operations are those of the definition, by element of the input: a sum one, a variance four.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from stepscope.analyses.operators.elementwise_traffic import ELEMENTWISE, PROMOTED
from stepscope.analyses.operators.work_inputs import (
    NO_VALUES,
    Inputs,
    Shape,
    Traffic,
    TrafficFormula,
    UnknownWorkError,
    like,
    new_tensor,
    traffic,
)
from stepscope.model.frames.data_types import SCALAR_TYPES


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """A reduction of all elements, or over dimensions."""

    arguments: int
    """Of the form with dimensions, before `out=`."""
    dimensions: int = 1
    """Index of the dimensions."""
    all_arguments: int = 1
    """Of the form without dimensions."""
    results: tuple[str, ...] = ("same",)
    operations: int = 1
    """Per element of the input."""
    of_numbers: bool = False
    """Whether integers become int64, as in a sum; `dtype` is then the last argument."""

    def __call__(self, inputs: Inputs) -> Traffic:
        """Count a reduction."""
        if self.results == ("same", "int64") and inputs.has(1):
            return ELEMENTWISE["aten::maximum"](inputs)  # max(self, other)
        x = inputs.tensor(0)
        over_dimensions = len(inputs) >= self.arguments
        behind = self.arguments if over_dimensions else self.all_arguments
        flops = self.operations * x.elements
        if outputs := inputs.tensors(behind):
            return traffic([x], outputs, flops)
        left = self._left(inputs, x.shape) if over_dimensions else 1
        results = self.results if over_dimensions else self.results[:1]
        names = [self._name(inputs, str(x.data_type), kind, behind) for kind in results]
        return traffic([x], [new_tensor((left,), name) for name in names], flops)

    def _left(self, inputs: Inputs, shape: Shape) -> int:
        """Return the number of elements that are left."""
        reduced = {axis % max(len(shape), 1) for axis in inputs.signed(self.dimensions)}
        if not reduced:
            return 1
        return prod(size for axis, size in enumerate(shape) if axis not in reduced)

    def _name(self, inputs: Inputs, name: str, kind: str, arguments: int) -> str:
        if kind != "same":
            return kind
        if self.of_numbers and inputs.values and inputs.value(arguments - 1):
            if given := SCALAR_TYPES.get(inputs.value(arguments - 1)):
                return given
            raise UnknownWorkError(PROMOTED)
        is_whole = name == "bool" or name.startswith(("int", "uint"))
        return "int64" if self.of_numbers and is_whole else name


_SUM = Reduction(arguments=4, all_arguments=2, of_numbers=True)
_MOMENT = Reduction(arguments=4, all_arguments=2, operations=4)
_BOTH_MOMENTS = replace(_MOMENT, results=("same", "same"))
REDUCTIONS: Mapping[str, TrafficFormula] = {
    "aten::sum": _SUM,
    "aten::nansum": _SUM,
    "aten::mean": _SUM,
    "aten::prod": _SUM,
    "aten::any": Reduction(arguments=3, results=("bool",)),
    "aten::all": Reduction(arguments=3, results=("bool",)),
    "aten::amax": Reduction(arguments=3),
    "aten::amin": Reduction(arguments=3),
    "aten::argmax": Reduction(arguments=3, results=("int64",)),
    "aten::argmin": Reduction(arguments=3, results=("int64",)),
    "aten::max": Reduction(arguments=3, results=("same", "int64")),
    "aten::min": Reduction(arguments=3, results=("same", "int64")),
    "aten::norm": Reduction(arguments=4, all_arguments=2, dimensions=2, operations=2),
    "aten::linalg_vector_norm": Reduction(arguments=5, dimensions=2, operations=2, of_numbers=True),
    "aten::std": _MOMENT,
    "aten::var": _MOMENT,
    "aten::std_mean": _BOTH_MOMENTS,
    "aten::var_mean": _BOTH_MOMENTS,
}


def scan(inputs: Inputs) -> Traffic:
    """Count `cumsum(self, dim, dtype)`."""
    x = inputs.tensor(0)
    if outputs := inputs.tensors(3):
        return traffic([x], outputs, x.elements)
    given = SCALAR_TYPES.get(inputs.value(2)) if inputs.values else None
    is_whole = str(x.data_type).startswith(("int", "uint", "bool"))
    if not inputs.values and is_whole:
        raise UnknownWorkError(NO_VALUES)
    return traffic([x], [like(x, name=given or ("int64" if is_whole else None))], x.elements)


# the maximum, the difference from it, its exponential, the sum, the quotient
SOFTMAX_OPERATIONS, SOFTMAX_BACKWARD_OPERATIONS = 5, 4


def softmax(inputs: Inputs) -> Traffic:
    """Count `_softmax(self, dim, half_to_float)`."""
    x = inputs.tensor(0)
    flops = SOFTMAX_OPERATIONS * x.elements
    if outputs := inputs.tensors(3):
        return traffic([x], outputs, flops)
    if not inputs.values and x.data_type == "float16":
        raise UnknownWorkError(NO_VALUES)
    is_widened = bool(inputs.values) and inputs.value(2) == "True"
    return traffic([x], [like(x, name="float32" if is_widened else None)], flops)


def softmax_backward(inputs: Inputs) -> Traffic:
    """Count `_softmax_backward_data(grad_output, output, dim, input_dtype)`."""
    read = inputs.tensors(0, 2)
    flops = SOFTMAX_BACKWARD_OPERATIONS * read[0].elements
    if outputs := inputs.tensors(4):
        return traffic(read, outputs, flops)
    if inputs.has(3):  # until torch 1.10 the input itself, of which the type is used
        return traffic(read, [like(inputs.tensor(3))], flops)
    if not inputs.values:
        raise UnknownWorkError(NO_VALUES)
    name = SCALAR_TYPES.get(inputs.value(3))
    if name is None:
        raise UnknownWorkError
    return traffic(read, [like(read[0], name=name)], flops)


SOFTMAX: Mapping[str, TrafficFormula] = {
    "aten::cumsum": scan,
    "aten::cumprod": scan,
    "aten::_softmax": softmax,
    "aten::_log_softmax": softmax,
    "aten::_softmax_backward_data": softmax_backward,
    "aten::_log_softmax_backward_data": softmax_backward,
}
