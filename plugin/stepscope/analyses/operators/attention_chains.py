"""Unfused attention: a matrix product, a softmax over its rows, and a product with the result.

The relevant operators of each thread are listed in order: batched products, softmaxes, their
backward functions, and operators between layers (other products, norms). Scaling, masks and dropout
are skipped. `product softmax product` is an attention; its backward pass has two products on each
side of the softmax's. Recommenders also multiply batches, but without a softmax.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.links import links
from stepscope.analyses.operators.flops import operator_work
from stepscope.analyses.operators.product_kernels import kernels_in_window
from stepscope.analyses.operators.product_shapes import batched, distinct
from stepscope.model.arrays import NONE, Floats, Ints, Mask
from stepscope.model.frames.data_types import BYTES
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

PRODUCTS = frozenset({"aten::bmm", "aten::baddbmm", "aten::baddbmm_"})
SOFTMAX = re.compile(r"(?<!log_)(?<!Log)[sS]oftmax(?!_backward|\w*Backward)")
SOFTMAX_BACKWARD = re.compile(r"^aten::_(?:masked_)?softmax_backward")
BETWEEN_LAYERS = re.compile(
    r"^aten::(?:mm|addmm|_addmm_activation|_scaled_mm|_grouped_mm|native_layer_norm|embedding"
    r"|_fused_rms_norm|native_batch_norm|(?:cudnn_|miopen_|mkldnn_)?convolution|_flash_attention_\w+"
    r"|_efficient_attention_\w+|_scaled_dot_product_(?!attention)\w+)$"
)
MATH = "aten::_scaled_dot_product_attention_math"
"""Torch's own attention where no faster kernel supports the operands."""
UNKNOWN = (np.nan,) * 4
_PRODUCT, _SOFTMAX, _BACKWARD, _OTHER = range(4)


@dataclass(frozen=True, kw_only=True, eq=False)
class UnfusedAttention:
    """Unfused attentions on any device; all arrays are parallel."""

    first: Ints
    """First product, as a row of `host_calls`."""
    last: Ints
    """Last product."""
    is_backward: Mask
    is_math: Mask
    """Whether torch's own fallback ran, not code of the program."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionChains(UnfusedAttention):
    """Unfused attentions with their kernels; all arrays but `kernels` and `chains` are parallel."""

    query_length: Floats
    """Rows of scores per head; NaN where shapes were not recorded."""
    scores_bytes: Floats
    """Bytes of all scores of a call; NaN where shapes were not recorded."""
    kernels: Ints
    """Rows of `device_events`: the busiest device's kernels launched in a chain."""
    chains: Ints
    """Chain of each kernel, as an index into the arrays above."""
    kernel_ns: int
    """Sum of durations of the device's kernels in the window, at least 1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HostAttention(UnfusedAttention):
    """Unfused attentions that the host computes; all arrays are parallel."""

    scores_bytes: Floats
    """Bytes of all scores of a call; of a backward pass, of the largest forward one."""
    head_width: Floats
    """Numbers of a query; of a backward pass, of the widest forward one."""
    start_ns: Ints
    end_ns: Ints


def host_attention(trace: Trace) -> HostAttention:
    """Return the unfused attentions, with their sizes; NaN where shapes were not recorded."""
    attention, calls = unfused_attention(trace), trace.host_calls
    _, scores = _scores(trace, attention.first, attention.is_backward)
    width = _shapes(trace, attention.first)[:, 2]
    width[attention.is_backward] = np.nan
    return HostAttention(
        first=attention.first,
        last=attention.last,
        is_backward=attention.is_backward,
        is_math=attention.is_math,
        scores_bytes=np.where(attention.is_backward, np.fmax.reduce(scores, initial=0), scores),
        head_width=np.where(attention.is_backward, np.fmax.reduce(width, initial=0), width),
        start_ns=calls["start_ns"].to_numpy()[attention.first],
        end_ns=calls["end_ns"].to_numpy()[attention.last],
    )


@computed
def attention_chains(trace: Trace) -> AttentionChains:
    """Return the unfused attentions of the threads that launch them.

    Raises:
        MissingDataError: no device event was recorded.
        NotApplicableError: the machine has no device.
    """
    kernels = kernels_in_window(trace)
    attention = unfused_attention(trace)
    launched, chain = _launched(trace, kernels, attention.first, attention.last)
    length, scores = _scores(trace, attention.first, attention.is_backward)
    duration = trace.device_events["duration_ns"].to_numpy()
    return AttentionChains(
        first=attention.first,
        last=attention.last,
        is_backward=attention.is_backward,
        is_math=attention.is_math,
        query_length=length,
        scores_bytes=scores,
        kernels=launched,
        chains=chain,
        kernel_ns=max(1, int(duration[kernels].sum())),
    )


def unfused_attention(trace: Trace) -> UnfusedAttention:
    """Return the unfused attentions, by the order of operators on a thread."""
    kind, row = _marks(trace)
    forward = _forward(trace, kind, row)
    backward = _backward(trace, kind, row)
    first = np.concatenate((row[forward - 1], row[backward - 2]))
    return UnfusedAttention(
        first=first,
        last=np.concatenate((row[forward + 1], row[backward + 2])),
        is_backward=np.arange(len(first)) >= len(forward),
        is_math=_is_in_math(trace, first),
    )


def _marks(trace: Trace) -> tuple[Ints, Ints]:
    """Return the kinds and rows of the relevant operators, by thread in start order."""
    calls = trace.host_calls
    names = [_kind(str(name)) for name in calls["name"].cat.categories]
    kind = np.array([*names, NONE])[calls["name"].cat.codes.to_numpy()]
    kind[~calls["is_operator"].to_numpy()] = NONE
    is_softmax = kind == _SOFTMAX
    rows, parent = np.flatnonzero(is_softmax), calls["parent"].to_numpy()
    around = ancestry.nearest_of(parent, parent[rows], is_softmax)
    kind[around[around != NONE]] = NONE  # `aten::softmax` around `aten::_softmax`
    row = np.flatnonzero(kind != NONE)
    thread = calls["thread"].cat.codes.to_numpy()[row]
    row = row[np.argsort(thread, kind="stable")]
    return kind[row], row


def _kind(name: str) -> int:
    if name in PRODUCTS:
        return _PRODUCT
    if SOFTMAX_BACKWARD.search(name):
        return _BACKWARD
    if SOFTMAX.search(name):
        return _SOFTMAX
    return _OTHER if BETWEEN_LAYERS.search(name) else NONE


def _forward(trace: Trace, kind: Ints, row: Ints) -> Ints:
    """Return the indices of softmaxes between two products of matching shapes."""
    index = np.flatnonzero(kind == _SOFTMAX)
    index = index[(index >= 1) & (index + 1 < len(kind))]
    is_between = (kind[index - 1] == _PRODUCT) & (kind[index + 1] == _PRODUCT)
    index = index[is_between & _same_thread(trace, row[index - 1], row[index + 1])]
    return np.asarray(index[_fit(trace, row[index - 1], row[index + 1])])


def _backward(trace: Trace, kind: Ints, row: Ints) -> Ints:
    """Return the indices of softmax backward functions with two products on each side."""
    index = np.flatnonzero(kind == _BACKWARD)
    index = index[(index >= 2) & (index + 2 < len(kind))]
    for away in (-2, -1, 1, 2):
        index = index[kind[index + away] == _PRODUCT]
    return np.asarray(index[_same_thread(trace, row[index - 2], row[index + 2])])


def _same_thread(trace: Trace, left: Ints, right: Ints) -> Mask:
    thread = trace.host_calls["thread"].cat.codes.to_numpy()
    return np.asarray(thread[left] == thread[right])


def _fit(trace: Trace, first: Ints, last: Ints) -> Mask:
    """Return a mask of products whose result's shape is the last product's left operand.

    True where shapes are unknown.
    """
    _, rows, _, columns = _shapes(trace, first).T
    _, of_operand, inner, _ = _shapes(trace, last).T
    differs = (rows != of_operand) | (columns != inner)
    return np.asarray(~differs | np.isnan(rows) | np.isnan(inner))


def _shapes(trace: Trace, products: Ints) -> Floats:
    """Return batch, rows, inner dimension and columns of each product; NaN where unknown."""
    group, texts = distinct(trace, products)
    shapes = [batched(*product) or UNKNOWN for product in texts]
    return np.array(shapes, dtype=np.float64).reshape(-1, 4)[group]


def _scores(trace: Trace, first: Ints, is_backward: Mask) -> tuple[Floats, Floats]:
    """Return the rows of scores per head and the bytes of all scores; NaN for backward chains."""
    types = operator_work(trace).data_type[first]
    sizes = np.array([*(BYTES.get(str(name), 0) for name in types.categories), np.nan])
    shapes = _shapes(trace, first)
    shapes[is_backward] = np.nan
    batch, rows, _, columns = shapes.T
    return rows, batch * rows * columns * sizes[np.asarray(types.codes)]


def _is_in_math(trace: Trace, first: Ints) -> Mask:
    parent = trace.host_calls["parent"].to_numpy()
    is_math = name_mask(trace.host_calls["name"], MATH.__eq__)
    return np.asarray(ancestry.nearest_of(parent, first, is_math) != NONE)


def _launched(trace: Trace, kernels: Ints, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Return the kernels launched between the start and the end of a chain, and their chains."""
    call = links(trace).call_of_device_event[kernels]
    kernels, call = kernels[call != NONE], call[call != NONE]
    thread = trace.runtime_calls["thread"].cat.codes.to_numpy()[call]
    begun = trace.runtime_calls["start_ns"].to_numpy()[call]
    host, starts = trace.host_calls, trace.host_calls["start_ns"].to_numpy()[first]
    ends = host["end_ns"].to_numpy()[last]
    chain = np.full(len(kernels), NONE, dtype=np.int64)
    of_chain = host["thread"].cat.codes.to_numpy()[first]
    for code in np.unique(of_chain).tolist():
        on_host, on_device = np.flatnonzero(of_chain == code), np.flatnonzero(thread == code)
        on_host = on_host[np.argsort(starts[on_host], kind="stable")]
        at = np.searchsorted(starts[on_host], begun[on_device], side="right") - 1
        inside = (at >= 0) & (begun[on_device] < ends[on_host[at]])
        chain[on_device[inside]] = on_host[at[inside]]
    return kernels[chain != NONE], chain[chain != NONE]
