"""Least traffic and operations of normalization: layers, groups, batches and root mean squares.

Statistics are float32 for 16-bit inputs, as CUDA's kernels write them. A batch's norm in training
also writes the running statistics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from stepscope.analyses.operators.work_inputs import (
    NO_VALUES,
    Inputs,
    Tensor,
    Traffic,
    TrafficFormula,
    UnknownWorkError,
    like,
    new_tensor,
    traffic,
)


def _statistic_type(name: str) -> str:
    """Return the type of statistics of an input's type."""
    return "float32" if name in ("float16", "bfloat16") else name


# the mean one, the variance three, the difference and its scaling two; weight and bias one each
NORM_OPERATIONS, RMS_OPERATIONS = 6, 3
# the input's gradient: scaled inputs two, the two sums four, their correction five
NORM_BACKWARD_OPERATIONS, RMS_BACKWARD_OPERATIONS = 11, 8


def _with_affine(inputs: Inputs, indices: Sequence[int], operations: int) -> int:
    return operations + sum(map(inputs.has, indices))


def _requested(inputs: Inputs, index: int, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradients that an operator's mask requests."""
    mask = inputs.numbers(index, len(tensors))
    return [tensor for tensor, flag in zip(tensors, mask, strict=True) if flag]


def _rows(inputs: Inputs, x: Tensor, sizes: int, weight: int) -> int:
    """Return the rows of a layer's norm, by the normalized shape, else by its weight's."""
    if inputs.values:
        normalized = prod(inputs.signed(sizes))
    elif inputs.has(weight):
        normalized = inputs.tensor(weight).elements
    else:
        raise UnknownWorkError(NO_VALUES)
    if not normalized or x.elements % normalized:
        raise UnknownWorkError
    return x.elements // normalized


def layer_norm(inputs: Inputs) -> Traffic:
    """Count `native_layer_norm(input, normalized_shape, weight, bias, eps)`."""
    x = inputs.tensor(0)
    rows = _rows(inputs, x, 1, 2)
    statistic = new_tensor((rows,), _statistic_type(str(x.data_type)))
    flops = _with_affine(inputs, (2, 3), NORM_OPERATIONS) * x.elements
    return traffic(inputs.tensors(0, 4), [like(x), statistic, statistic], flops)


def layer_norm_backward(inputs: Inputs) -> Traffic:
    """Count `native_layer_norm_backward(grad, input, shape, mean, rstd, weight, bias, mask)`."""
    x = inputs.tensor(1)
    weight = inputs.tensor(5) if inputs.has(5) else like(x, ())
    written = _requested(inputs, 7, [like(x), like(weight), like(weight)])
    operations = _with_affine(inputs, (5, 5, 6), NORM_BACKWARD_OPERATIONS)
    return traffic(inputs.tensors(0, 7), written, operations * x.elements)


def rms_norm(inputs: Inputs) -> Traffic:
    """Count `_fused_rms_norm(input, normalized_shape, weight, eps)`."""
    x = inputs.tensor(0)
    statistic = new_tensor((_rows(inputs, x, 1, 2),), _statistic_type(str(x.data_type)))
    flops = _with_affine(inputs, (2,), RMS_OPERATIONS) * x.elements
    return traffic(inputs.tensors(0, 3), [like(x), statistic], flops)


def rms_norm_backward(inputs: Inputs) -> Traffic:
    """Count `_fused_rms_norm_backward(grad, input, normalized_shape, rstd, weight, mask)`."""
    x = inputs.tensor(1)
    weight = inputs.tensor(4) if inputs.has(4) else like(x, ())
    written = _requested(inputs, 5, [like(x), like(weight)])
    operations = _with_affine(inputs, (4, 4), RMS_BACKWARD_OPERATIONS)
    return traffic(inputs.tensors(0, 5), written, operations * x.elements)


def group_norm(inputs: Inputs) -> Traffic:
    """Count `native_group_norm(input, weight, bias, N, C, HxW, group, eps)`."""
    x = inputs.tensor(0)
    batch, groups = (inputs.numbers(index, 1)[0] for index in (3, 6))
    statistic = new_tensor((batch, groups), str(x.data_type))
    flops = _with_affine(inputs, (1, 2), NORM_OPERATIONS) * x.elements
    return traffic(inputs.tensors(0, 3), [like(x), statistic, statistic], flops)


def group_norm_backward(inputs: Inputs) -> Traffic:
    """Count `native_group_norm_backward(grad, input, mean, rstd, weight, N, C, …, mask)`."""
    x = inputs.tensor(1)
    channels = like(inputs.tensor(4) if inputs.has(4) else x, inputs.numbers(6, 1))
    written = _requested(inputs, 9, [like(x), channels, channels])
    operations = _with_affine(inputs, (4, 4, 4), NORM_BACKWARD_OPERATIONS)
    return traffic(inputs.tensors(0, 5), written, operations * x.elements)


@dataclass(frozen=True, kw_only=True)
class BatchNorm:
    """Forward of `batch_norm(input, weight, bias, running_mean, running_var, …)`."""

    training: int | None = 5
    """Index of the argument; None: the operator is for training."""

    def __call__(self, inputs: Inputs) -> Traffic:
        """Count it; without recorded values as if statistics were not written."""
        x = inputs.tensor(0)
        if len(x.shape) < 2:
            raise UnknownWorkError
        statistic = new_tensor(x.shape[1:2], _statistic_type(str(x.data_type)))
        written = [like(x)]
        if self._trains(inputs):
            written += [statistic, statistic, *(like(tensor) for tensor in inputs.tensors(3, 5))]
        flops = _with_affine(inputs, (1, 2), NORM_OPERATIONS) * x.elements
        return traffic(inputs.tensors(0, 5), written, flops)

    def _trains(self, inputs: Inputs) -> bool:
        return self.training is None or (
            bool(inputs.values) and inputs.value(self.training) == "True"
        )


@dataclass(frozen=True, kw_only=True)
class BatchNormBackward:
    """Gradients of the batch's norm, by the indices of its inputs."""

    x: int
    weight: int = 2
    mask: int | None = None

    def __call__(self, inputs: Inputs) -> Traffic:
        """Count the gradients that are requested: all, if the operator has no mask."""
        x = inputs.tensor(self.x)
        channels = like(inputs.tensor(self.weight) if inputs.has(self.weight) else x, x.shape[1:2])
        written = [like(x), channels, channels]
        if self.mask is not None:
            written = _requested(inputs, self.mask, written)
        operations = _with_affine(inputs, (self.weight,) * 3, NORM_BACKWARD_OPERATIONS)
        return traffic(inputs.tensors(0), written, operations * x.elements)


NORMALIZATION: Mapping[str, TrafficFormula] = {
    "aten::native_layer_norm": layer_norm,
    "aten::native_layer_norm_backward": layer_norm_backward,
    "aten::_fused_rms_norm": rms_norm,
    "aten::_fused_rms_norm_backward": rms_norm_backward,
    "aten::native_group_norm": group_norm,
    "aten::native_group_norm_backward": group_norm_backward,
    "aten::native_batch_norm": BatchNorm(),
    "aten::_native_batch_norm_legit": BatchNorm(),
    "aten::cudnn_batch_norm": BatchNorm(),
    "aten::miopen_batch_norm": BatchNorm(),
    "aten::_batch_norm_with_update": BatchNorm(training=None),
    "aten::native_batch_norm_backward": BatchNormBackward(x=1, mask=9),
    "aten::batch_norm_backward": BatchNormBackward(x=1, mask=9),
    "aten::cudnn_batch_norm_backward": BatchNormBackward(x=0),
    "aten::miopen_batch_norm_backward": BatchNormBackward(x=0),
}
