"""Least traffic of kernels of inference servers (vLLM, SGLang) and of recommenders (fbgemm)."""

from collections.abc import Mapping
from dataclasses import dataclass

from stepscope.analyses.operators.work_inputs import (
    Inputs,
    Traffic,
    TrafficFormula,
    UnknownWorkError,
    like,
    new_tensor,
    picked,
    traffic,
)


@dataclass(frozen=True, kw_only=True)
class Roles:
    """An operator whose schema says which arguments it reads and which it writes."""

    read: tuple[int, ...]
    written: tuple[int, ...]
    operations: int
    """Per element of the first that is written."""

    def __call__(self, inputs: Inputs) -> Traffic:
        """Count the arguments that are tensors; those that are read and written, twice."""
        inputs.tensor(self.written[0])
        read, written = (
            [inputs.tensor(index) for index in indices if inputs.has(index)]
            for indices in (self.read, self.written)
        )
        return traffic(read, written, self.operations * written[0].elements)


ROTARY_OPERATIONS = 3
"""Per element: two products and a sum or difference."""


def rotary(inputs: Inputs) -> Traffic:
    """Count `rotary_embedding(positions, query!, key!, head_size, cos_sin_cache, is_neox)`."""
    positions, cache = inputs.tensor(0), inputs.tensor(4)
    (head,) = inputs.numbers(3, 1)
    turned = cache.shape[-1]
    if not head or turned > head:
        raise UnknownWorkError
    parts = [picked(tensor, tensor.elements // head * turned) for tensor in inputs.tensors(1, 3)]
    if not parts:
        raise UnknownWorkError
    angles = picked(cache, positions.elements * turned)
    flops = ROTARY_OPERATIONS * sum(part.stored for part in parts)
    return traffic([*parts, positions, angles], parts, flops)


def cache_write(inputs: Inputs) -> Traffic:
    """Count `reshape_and_cache(key, value, key_cache!, value_cache!, slot_mapping, …)`."""
    key, value, slots = (inputs.tensor(index) for index in (0, 1, 4))
    written = []
    rows = key.shape[0] if key.shape else 0
    if not rows or slots.elements > rows:
        raise UnknownWorkError
    read = []
    for tensor, cache in ((key, 2), (value, 3)):
        taken = tensor.elements // rows * slots.elements
        read.append(picked(tensor, taken))
        written.append(picked(inputs.tensor(cache), taken))
    return traffic([*read, slots], written, 0)


_ROLES: dict[str, Roles] = {
    "rms_norm": Roles(read=(1, 2), written=(0,), operations=4),
    "fused_add_rms_norm": Roles(read=(0, 1, 2), written=(0, 1), operations=5),
    "silu_and_mul": Roles(read=(1,), written=(0,), operations=6),
    "gelu_and_mul": Roles(read=(1,), written=(0,), operations=6),
    "gelu_tanh_and_mul": Roles(read=(1,), written=(0,), operations=8),
    "static_scaled_fp8_quant": Roles(read=(1, 2), written=(0,), operations=1),
    "dynamic_per_token_scaled_fp8_quant": Roles(read=(1, 3), written=(0, 2), operations=3),
    "rms_norm_static_fp8_quant": Roles(read=(1, 2, 3), written=(0,), operations=5),
}
SERVING: Mapping[str, TrafficFormula] = {
    **{f"_C::{name}": formula for name, formula in _ROLES.items()},
    "sgl_kernel::rmsnorm": _ROLES["rms_norm"],
    "sgl_kernel::fused_add_rmsnorm": _ROLES["fused_add_rms_norm"],
    "sgl_kernel::silu_and_mul": _ROLES["silu_and_mul"],
    "sgl_kernel::gelu_and_mul": _ROLES["gelu_and_mul"],
    "_C::rotary_embedding": rotary,
    "_C_cache_ops::reshape_and_cache": cache_write,
    "_C_cache_ops::reshape_and_cache_flash": cache_write,
}


ROW_SCALE_BYTES, ROW_ALIGNMENT = 8, 4
"""Of 8-bit rows: a scale and an offset behind them, and the multiple to which rows are filled."""


def permuted(inputs: Inputs) -> Traffic:
    """Count `permute_pooled_embs_auto_grad(pooled, …)`: columns change places."""
    return traffic(inputs.tensors(0), [like(inputs.tensor(0))], 0)


def rows_to_8_bit(inputs: Inputs) -> Traffic:
    """Count `FloatToFP8RowwiseQuantized(input)`."""
    x = inputs.tensor(0)
    if len(x.shape) != 2:
        raise UnknownWorkError
    filled = -(-x.shape[1] // ROW_ALIGNMENT) * ROW_ALIGNMENT + ROW_SCALE_BYTES
    return traffic([x], [new_tensor((x.shape[0], filled), "uint8")], 2 * x.elements)


def rows_from_8_bit(inputs: Inputs) -> Traffic:
    """Count `FP8RowwiseQuantizedToFloat(input)`."""
    x = inputs.tensor(0)
    if len(x.shape) != 2 or x.shape[1] < ROW_SCALE_BYTES:
        raise UnknownWorkError
    result = new_tensor((x.shape[0], x.shape[1] - ROW_SCALE_BYTES), "float32")
    return traffic([x], [result], 2 * result.elements)


def _of_type(name: str) -> TrafficFormula:
    def count(inputs: Inputs) -> Traffic:
        x = inputs.tensor(0)
        return traffic([x], [like(x, name=name)], x.elements)

    return count


def offsets(inputs: Inputs) -> Traffic:
    """Count `asynchronous_complete_cumsum(lengths)`: a zero and the sums."""
    x = inputs.tensor(0)
    if len(x.shape) != 1:
        raise UnknownWorkError
    return traffic([x], [like(x, (x.elements + 1,))], x.elements)


def checked(inputs: Inputs) -> Traffic:
    """Count `bounds_check_indices(…)`, which writes indices out of bounds only."""
    return traffic(inputs.tensors(0), [], inputs.tensor(1).elements)


RECOMMENDERS: Mapping[str, TrafficFormula] = {
    "fbgemm::permute_pooled_embs_auto_grad": permuted,
    "fbgemm::FloatToFP8RowwiseQuantized": rows_to_8_bit,
    "fbgemm::FP8RowwiseQuantizedToFloat": rows_from_8_bit,
    "fbgemm::FloatToHFP8Quantized": _of_type("uint8"),
    "fbgemm::HFP8QuantizedToFloat": _of_type("float32"),
    "fbgemm::asynchronous_complete_cumsum": offsets,
    "fb::asynchronous_complete_cumsum": offsets,
    "fbgemm::bounds_check_indices": checked,
}
