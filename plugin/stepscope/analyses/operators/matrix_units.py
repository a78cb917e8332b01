"""Kernels that use matrix units (tensor cores, matrix cores), and operators that can."""

import re
from collections.abc import Callable

import numpy as np

from stepscope.dialects import Kind
from stepscope.model.arrays import Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace

ELIGIBLE = frozenset(
    """
    aten::_convolution aten::conv1d aten::conv2d aten::conv3d aten::conv_tbc
    aten::conv_transpose1d aten::conv_transpose2d aten::conv_transpose3d aten::convolution
    aten::cudnn_convolution aten::cudnn_convolution_transpose aten::prelu
    aten::addmm aten::addmm_ aten::addmv aten::addr aten::matmul aten::mm aten::mv aten::linear
    aten::addbmm aten::baddbmm aten::bmm aten::chain_matmul aten::linalg_multi_dot
    aten::_thnn_fused_lstm_cell aten::_thnn_fused_gru_cell aten::lstm_cell aten::gru_cell
    aten::rnn_tanh_cell aten::rnn_relu_cell
    aten::cudnn_convolution_backward aten::cudnn_convolution_backward_input
    aten::cudnn_convolution_backward_weight aten::cudnn_convolution_transpose_backward
    aten::cudnn_convolution_transpose_backward_input
    aten::cudnn_convolution_transpose_backward_weight
    CudnnConvolutionBackward CudnnConvolutionTransposeBackward
    MmBackward BmmBackward MvBackward AddmmBackward AddmvBackward AddbmmBackward

    aten::convolution_backward aten::cudnn_convolution_relu aten::cudnn_convolution_add_relu
    aten::miopen_convolution aten::_addmm_activation aten::_scaled_mm aten::_grouped_mm
    aten::scaled_dot_product_attention aten::_scaled_dot_product_flash_attention
    aten::_scaled_dot_product_efficient_attention aten::_scaled_dot_product_cudnn_attention
    aten::_scaled_dot_product_flash_attention_backward
    aten::_scaled_dot_product_efficient_attention_backward
    aten::_scaled_dot_product_cudnn_attention_backward
    aten::_flash_attention_forward aten::_flash_attention_backward
    aten::_efficient_attention_forward aten::_efficient_attention_backward
    ConvolutionBackward BaddbmmBackward
    aten::_scaled_mm_v2 aten::_scaled_grouped_mm aten::_scaled_grouped_mm_v2
    aten::_int_mm aten::baddbmm_ aten::convolution_overrideable
    aten::convolution_backward_overrideable
    aten::_scaled_dot_product_fused_attention_overrideable
    aten::_scaled_dot_product_fused_attention_overrideable_backward
    flash_attn::_flash_attn_forward flash_attn::_flash_attn_backward
    flash_attn_3::_flash_attn_forward flash_attn_3::_flash_attn_backward
    flash_attn::_flash_attn_varlen_forward flash_attn::_flash_attn_varlen_backward
    vllm::inplace_fused_experts vllm::outplace_fused_experts
    sglang::inplace_fused_experts sglang::outplace_fused_experts
    """.split()  # noqa: SIM905 (two screens long as a list)
)
"""Operators that can run on matrix units, given a fitting type: autocast's lower-precision list by
way of torch-tb-profiler (`tensor_core.py`), and below the gap later ones."""
_NODE_NUMBER = re.compile(r"(?<=Backward)\d+$")


def is_eligible(operator: str) -> bool:
    """Return whether an operator's work can run on matrix units."""
    # since torch 1.10 the names of autograd's nodes end in a number
    return _NODE_NUMBER.sub("", operator) in ELIGIBLE


def are_used(trace: Trace) -> Mask:
    """Return a mask of the device events that are kernels on matrix units; False where unknown."""
    return _kernels_named(trace, lambda name: trace.dialect.uses_matrix_unit(name) is True)


def are_classified(trace: Trace) -> Mask:
    """Return a mask of the kernels whose name shows whether they use matrix units."""
    return _kernels_named(trace, lambda name: trace.dialect.uses_matrix_unit(name) is not None)


def are_unclassified(trace: Trace) -> Mask:
    """Return a mask of the other kernels."""
    is_kernel = trace.device_events["kind"].to_numpy() == int(Kind.KERNEL)
    return np.asarray(is_kernel & ~are_classified(trace))


def _kernels_named(trace: Trace, predicate: Callable[[str], bool]) -> Mask:
    events = trace.device_events
    is_kernel = events["kind"].to_numpy() == int(Kind.KERNEL)
    return np.asarray(name_mask(events["name"], predicate) & is_kernel)
