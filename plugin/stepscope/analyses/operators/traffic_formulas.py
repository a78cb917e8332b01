"""Least traffic and operations of operators that are no products, by name.

Each input counts once, as far as its strides show that it is stored, and each output once. Of two
kinds of inputs only a part is touched, which counts: the elements that gathers and scatters pick,
and nothing of an input of which a gradient needs the shape only, as of pooling and losses.
Operations are those of the operator's definition (see the constants).
"""

import re
from collections.abc import Mapping
from math import prod
from types import MappingProxyType

from stepscope.analyses.operators.elementwise_traffic import ELEMENTWISE, FUSED_STEPS
from stepscope.analyses.operators.gather_traffic import GATHERS, axis_of, unknown
from stepscope.analyses.operators.normalization_traffic import NORMALIZATION
from stepscope.analyses.operators.reduction_traffic import REDUCTIONS, SOFTMAX
from stepscope.analyses.operators.serving_traffic import RECOMMENDERS, SERVING
from stepscope.analyses.operators.work_formulas import PAGED
from stepscope.analyses.operators.work_inputs import (
    NO_LIST_SHAPES,
    NO_VALUES,
    Inputs,
    Shape,
    Tensor,
    Traffic,
    TrafficFormula,
    UnknownWorkError,
    like,
    picked,
    traffic,
)
from stepscope.model.frames.data_types import SCALAR_TYPES

ROUTED = "Weights of the experts are not among the recorded inputs."
PARTS = "A compiled kernel that may read a part of its arguments only."
NO_OPERATIONS = "Operations of a compiled kernel are unknown: bytes are its arguments', once each."


def copied(type_index: int | None = None) -> TrafficFormula:
    """Return the formula of an operator that writes its input anew, by the index of `dtype`."""

    def count(inputs: Inputs) -> Traffic:
        x = inputs.tensor(0)
        name = None
        if type_index is not None:
            if not inputs.values:
                raise UnknownWorkError(NO_VALUES)
            if text := inputs.value(type_index):
                name = SCALAR_TYPES.get(text)
                if name is None:
                    raise UnknownWorkError
        return traffic([x], [like(x, name=name)], 0)

    return count


def concatenation(inputs: Inputs) -> Traffic:
    """Count `cat(tensors, dim)`."""
    listed = inputs.listed(0)
    if not listed:
        raise UnknownWorkError(NO_LIST_SHAPES)
    outputs = inputs.tensors(2)
    size = sum(tensor.elements * tensor.element_bytes for tensor in listed)
    written = sum(tensor.bytes for tensor in outputs) if outputs else size
    moved = sum(tensor.bytes for tensor in listed) + written
    return Traffic(flops=0, moved_bytes=moved, data_type=listed[0].data_type)


def dropout(inputs: Inputs) -> Traffic:
    """Count `native_dropout(input, p, train)`: a result and a mask."""
    x = inputs.tensor(0)
    return traffic([x], [like(x), like(x, name="bool")], 2 * x.elements)


def loss_of_class(inputs: Inputs) -> Traffic:
    """Count `nll_loss_forward(self, target, weight, reduction, ignore_index)`."""
    x, target = inputs.tensor(0), inputs.tensor(1)
    (reduction,) = inputs.numbers(3, 1)
    result = like(x, () if reduction else target.shape)
    read = [picked(x, target.elements), target, *inputs.tensors(2, 3)]
    return traffic(read, [result, like(x, ())], 2 * target.elements)


def loss_of_class_backward(inputs: Inputs) -> Traffic:
    """Count `nll_loss_backward(grad, self, target, …)`: zeros are written by another operator."""
    gradient, x, target = (inputs.tensor(index) for index in range(3))
    return traffic([gradient, target], [picked(like(x), target.elements)], target.elements)


def _pooled(size: int, width: int, stride: int, pad: int, *, is_up: bool) -> int:
    """Return the size of a pooled dimension by the window's width: see torch.nn.MaxPool2d."""
    reach = size + 2 * pad - width
    count = (reach + (stride - 1 if is_up else 0)) // stride + 1
    # a window that begins in the padding behind is left out
    return count - 1 if is_up and (count - 1) * stride >= size + pad else count


def _pooled_shape(inputs: Inputs, x: Tensor, dilation: int | None, ceil: int) -> Shape:
    space = 2
    kernel = inputs.numbers(1, space)
    stride = inputs.numbers(2, space) if inputs.value(2) not in ("", "[]") else kernel
    pad = inputs.numbers(3, space)
    spread = (1,) * space if dilation is None else inputs.numbers(dilation, space)
    if not all(stride):
        raise UnknownWorkError
    is_up = inputs.value(ceil) == "True"
    widths = [step * (size - 1) + 1 for size, step in zip(kernel, spread, strict=True)]
    pairs = zip(x.shape[-space:], widths, stride, pad, strict=True)
    return (*x.shape[:-space], *(max(_pooled(*pair, is_up=is_up), 0) for pair in pairs))


def max_pool(inputs: Inputs) -> Traffic:
    """Count `max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceil_mode)`."""
    x = inputs.tensor(0)
    shape = _pooled_shape(inputs, x, 4, 5)
    window = prod(inputs.numbers(1, 2))
    return traffic([x], [like(x, shape), like(x, shape, "int64")], prod(shape) * window)


def max_pool_backward(inputs: Inputs) -> Traffic:
    """Count `max_pool2d_with_indices_backward(grad, self, …, indices)`."""
    gradient, x, index = inputs.tensor(0), inputs.tensor(1), inputs.tensor(7)
    return traffic([gradient, index], [like(x)], gradient.elements)


def average_pool(inputs: Inputs) -> Traffic:
    """Count `avg_pool2d(self, kernel, stride, padding, ceil_mode, …)`."""
    x = inputs.tensor(0)
    shape = _pooled_shape(inputs, x, None, 4)
    return traffic([x], [like(x, shape)], prod(shape) * prod(inputs.numbers(1, 2)))


def resized(inputs: Inputs) -> Traffic:
    """Count operators with `output_size`: adaptive pooling and interpolation of images."""
    x = inputs.tensor(0)
    shape = (*x.shape[:-2], *inputs.numbers(1, 2))
    result = like(x, shape)
    return traffic([x], [result], max(x.elements, result.elements))


def resized_backward(inputs: Inputs) -> Traffic:
    """Count the gradient of adaptive pooling, `(grad, self)`: of the input only the shape."""
    gradient, x = inputs.tensor(0), inputs.tensor(1)
    return traffic([gradient], [like(x)], x.elements)


def top(inputs: Inputs) -> Traffic:
    """Count `topk(self, k, dim, …)`; operations of sorting are unknown."""
    x = inputs.tensor(0)
    (count,) = inputs.numbers(1, 1)
    axis = axis_of(inputs, 2, x.shape) if x.shape else 0
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return traffic([x], [like(x, shape), like(x, shape, "int64")], None, SORTING)


SORTING = "Operations of sorting depend on the algorithm."


def sort(inputs: Inputs) -> Traffic:
    """Count `sort(self, …)`: values and their indices."""
    x = inputs.tensor(0)
    return traffic([x], [like(x), like(x, name="int64")], None, SORTING)


TRAFFIC: Mapping[str, TrafficFormula] = MappingProxyType(
    {
        **ELEMENTWISE,
        **FUSED_STEPS,
        **REDUCTIONS,
        **SOFTMAX,
        **NORMALIZATION,
        **GATHERS,
        **SERVING,
        **RECOMMENDERS,
        "aten::clone": copied(),
        "aten::contiguous": copied(),
        "aten::flip": copied(),
        "aten::roll": copied(),
        "aten::tril": copied(),
        "aten::triu": copied(),
        "aten::_to_copy": copied(1),
        "aten::cat": concatenation,
        "aten::native_dropout": dropout,
        "aten::nll_loss_forward": loss_of_class,
        "aten::nll_loss_backward": loss_of_class_backward,
        "aten::max_pool2d_with_indices": max_pool,
        "aten::max_pool2d_with_indices_backward": max_pool_backward,
        "aten::avg_pool2d": average_pool,
        "aten::_adaptive_avg_pool2d": resized,
        "aten::_adaptive_avg_pool2d_backward": resized_backward,
        "aten::upsample_nearest2d": resized,
        "aten::upsample_bilinear2d": resized,
        "aten::topk": top,
        "aten::sort": sort,
    }
)
"""Formula of each operator that is no product, by its name."""
_COMPILED = re.compile(r"^triton_(?:poi|red|per|for|tem|mm)_")
_PARTIAL = re.compile(
    r"embedding|index|gather|scatter|slice|select|split|narrow|unbind|as_strided|pad|cat(?:_|$)"
    r"|stack|unfold|roll|flip|nll_loss|pool|upsample"
)
_PAGED = re.compile(
    r"unified_attention|paged_att|varlen_fwd|fwd_kvcache|mla_decode|flashinfer\w*::.*(?:decode|prefill)"
)
_ROUTED = re.compile(r"moe_forward|fused_moe|fused_experts")


def compiled(inputs: Inputs) -> Traffic:
    """Count a kernel of torch.compile by its arguments, once each: which are results is unknown."""
    arguments = inputs.tensors(0)
    if not arguments:
        raise UnknownWorkError
    return traffic(arguments, [], None, NO_OPERATIONS)


def formula_of(name: str) -> TrafficFormula | None:
    """Return the formula of an operator that is no product; None: it has none."""
    if formula := TRAFFIC.get(name):
        return formula
    if _COMPILED.match(name):
        return unknown(PARTS) if _PARTIAL.search(name) else compiled
    if _PAGED.search(name):
        return unknown(PAGED)
    return unknown(ROUTED) if _ROUTED.search(name) else None
