"""How much arithmetic an operator does, by its inputs' shapes: a formula an operator.

For the seven operators that `profile(with_flops=True)` knows, the formulas are its own
(`torch/csrc/profiler/util.cpp`, `computeFlops`). For the others they are those of
`torch.utils.flop_counter`, which counts a multiplication and an addition as two and leaves out
bias, softmax and the masking of causal attention. In three places that counter is wrong, and this
is not: the weight's gradient of a grouped convolution (it counts each group's channels against all
others'), attention in the layout `[batch, sequence, heads, size]` (it takes heads for sequence),
and scaled products of 4-bit floats (an element of `float4_e2m1fn_x2` holds two of them).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from stepscope.analyses.operators.attention_work import Attention
from stepscope.analyses.operators.convolution_work import Convolution, conv2d, convolution_backward
from stepscope.analyses.operators.product_work import (
    elementwise,
    grouped_product,
    linear,
    matmul,
    product,
    scaled_grouped_product,
    scaled_product,
    vector_product,
)
from stepscope.analyses.operators.work_inputs import Inputs, Work

WITH_FLOPS = "torch with_flops"
FLOP_COUNTER = "torch.utils.flop_counter"
OWN = "stepscope"


@dataclass(frozen=True, kw_only=True)
class Formula:
    """How to count one operator's work."""

    count: Callable[[Inputs], Work]
    source: str
    operand: int = 0
    """The place of the input whose type the arithmetic has."""
    is_elementwise: bool = False


def _formulas(source: str, count: Callable[[Inputs], Work], *names: str) -> dict[str, Formula]:
    return {name: Formula(count=count, source=source) for name in names}


_BATCHED = product(rank=3)
FORMULAS: Mapping[str, Formula] = MappingProxyType(
    {
        "aten::mm": Formula(count=product(), source=WITH_FLOPS),
        "aten::addmm": Formula(count=product(1), source=WITH_FLOPS, operand=1),
        "aten::bmm": Formula(count=_BATCHED, source=WITH_FLOPS),
        "aten::baddbmm": Formula(count=product(1, 3), source=WITH_FLOPS, operand=1),
        "aten::conv2d": Formula(count=conv2d, source=WITH_FLOPS),
        "aten::mul": Formula(count=elementwise, source=WITH_FLOPS, is_elementwise=True),
        "aten::add": Formula(count=elementwise, source=WITH_FLOPS, is_elementwise=True),
        **_formulas(FLOP_COUNTER, scaled_product, "aten::_scaled_mm"),
        **_formulas(
            FLOP_COUNTER,
            Convolution(3, 4, 5, transposed=6, output_padding=7),
            "aten::convolution",
            "aten::_convolution",
            "aten::convolution_overrideable",
        ),
        **_formulas(FLOP_COUNTER, Convolution(3, 2, 4), "aten::cudnn_convolution"),
        **_formulas(
            OWN, Convolution(4, 3, 5), "aten::miopen_convolution", "aten::mkldnn_convolution"
        ),
        **_formulas(FLOP_COUNTER, convolution_backward, "aten::convolution_backward"),
        **_formulas(
            FLOP_COUNTER,
            Attention(),
            "aten::_scaled_dot_product_flash_attention",
            "aten::_scaled_dot_product_flash_attention_for_cpu",
            "aten::_scaled_dot_product_efficient_attention",
            "aten::_scaled_dot_product_cudnn_attention",
            "aten::_scaled_dot_product_fused_attention_overrideable",
        ),
        **_formulas(
            FLOP_COUNTER,
            Attention(query=1, is_backward=True),
            "aten::_scaled_dot_product_flash_attention_backward",
            "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
            "aten::_scaled_dot_product_efficient_attention_backward",
            "aten::_scaled_dot_product_cudnn_attention_backward",
            "aten::_scaled_dot_product_fused_attention_overrideable_backward",
        ),
        **_formulas(
            FLOP_COUNTER, Attention(heads_last=True, lengths=3), "aten::_flash_attention_forward"
        ),
        **_formulas(
            FLOP_COUNTER,
            Attention(heads_last=True, lengths=4),
            "aten::_efficient_attention_forward",
        ),
        **_formulas(
            FLOP_COUNTER,
            Attention(query=1, heads_last=True, lengths=6, is_backward=True),
            "aten::_flash_attention_backward",
            "aten::_efficient_attention_backward",
        ),
        **_formulas(
            OWN,
            Attention(heads_last=True),
            "flash_attn::_flash_attn_forward",
            "flash_attn_3::_flash_attn_forward",
        ),
        **_formulas(
            OWN,
            Attention(query=1, heads_last=True, is_backward=True),
            "flash_attn::_flash_attn_backward",
            "flash_attn_3::_flash_attn_backward",
        ),
        **_formulas(OWN, product(), "aten::_int_mm"),
        "aten::addmm_": Formula(count=product(1), source=OWN, operand=1),
        "aten::baddbmm_": Formula(count=product(1, 3), source=OWN, operand=1),
        "aten::_addmm_activation": Formula(count=product(1), source=OWN, operand=1),
        **_formulas(OWN, grouped_product, "aten::_grouped_mm"),
        **_formulas(OWN, lambda inputs: scaled_product(inputs, 9), "aten::_scaled_mm_v2"),
        **_formulas(OWN, scaled_grouped_product(4, 7), "aten::_scaled_grouped_mm"),
        **_formulas(OWN, scaled_grouped_product(8, 10), "aten::_scaled_grouped_mm_v2"),
        **_formulas(OWN, vector_product, "aten::mv"),
        "aten::addmv": Formula(
            count=lambda inputs: vector_product(inputs, 1), source=OWN, operand=1
        ),
        **_formulas(OWN, linear, "aten::linear"),
        **_formulas(OWN, matmul, "aten::matmul"),
    }
)
"""The formula of each operator that has one, by its name."""
