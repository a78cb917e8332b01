"""Formulas for the arithmetic of operators, by their inputs' shapes.

For the seven operators that `profile(with_flops=True)` supports, the formulas are torch's
(`torch/csrc/profiler/util.cpp`, `computeFlops`). The others follow `torch.utils.flop_counter`,
which counts a multiplication and an addition as two and leaves out bias, softmax and the masking of
causal attention. Three errors of that counter are corrected: the weight's gradient of a grouped
convolution (it counts each group's channels against all others'), attention in the layout `[batch,
sequence, heads, size]` (it takes heads for sequence), and scaled products of 4-bit floats (an
element of `float4_e2m1fn_x2` holds two).
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType

from stepscope.analyses.operators.work_inputs import Inputs, Shape, UnknownWorkError, Work
from stepscope.model.frames.data_types import PACKED_TYPE, SCALAR_TYPES


def matrices(inputs: Inputs, left: int, rank: int) -> Work:
    """Count a product of matrices, or of batches of them."""
    a, b = inputs.shape(left, rank=rank), inputs.shape(left + 1, rank=rank)
    if a[-1] != b[-2] or a[:-2] != b[:-2]:
        raise UnknownWorkError
    return Work(flops=2 * prod(a) * b[-1], outputs=((*a[:-1], b[-1]),))


def product(left: int = 0, rank: int = 2) -> Callable[[Inputs], Work]:
    """Return the formula of a product with its left operand at an index; rank 3: of batches."""
    return lambda inputs: matrices(inputs, left, rank)


def elementwise(inputs: Inputs) -> Work:
    """Count one operation per element of the first input, as torch does, not of the result."""
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
    """Count `linear(input, weight, bias)` with the transposed weight."""
    x, weight = inputs.shape(0), inputs.shape(1, rank=2)
    if not x or x[-1] != weight[1]:
        raise UnknownWorkError
    return Work(flops=2 * prod(x) * weight[0], outputs=((*x[:-1], weight[0]),))


def matmul(inputs: Inputs) -> Work:
    """Count `matmul(a, b)` of vectors, matrices or broadcast batches."""
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
    """Count `_scaled_mm(self, mat2, scale_a, scale_b, bias, scale_result, out_dtype)`, and v2."""
    work = matrices(inputs, 0, 2)
    return replace(_unpacked(inputs, work), output_type=_written_type(inputs, out_type))


def scaled_grouped_product(offsets: int, out_type: int) -> Callable[[Inputs], Work]:
    """Return the formula of `_scaled_grouped_mm`, by the indices of `offs` and `out_dtype`."""

    def count(inputs: Inputs) -> Work:
        written = _written_type(inputs, out_type) or "bfloat16"  # what torch takes where none is
        return replace(_unpacked(inputs, grouped_product(inputs, offsets)), output_type=written)

    return count


def _written_type(inputs: Inputs, index: int) -> str | None:
    return SCALAR_TYPES.get(inputs.value(index)) if len(inputs.values) > index else None


def _unpacked(inputs: Inputs, work: Work) -> Work:
    """Return the work of operands that may hold two numbers per element."""
    is_packed = inputs.type_of(0) == PACKED_TYPE
    return replace(work, flops=2 * (work.flops or 0)) if is_packed else work


def grouped_product(inputs: Inputs, offsets: int = 2) -> Work:
    """Count `_grouped_mm(self, mat2, offs)`, whose groups split rows, columns or the sum."""
    a, b = inputs.shape(0), inputs.shape(1)
    if len(a) == len(b) == 3:
        return matrices(inputs, 0, 3)
    groups = inputs.shape(offsets, rank=1)[0] if len(a) == len(b) == 2 else None
    if len(a) not in (2, 3) or len(b) not in (2, 3) or a[-1] != b[-2]:
        raise UnknownWorkError
    output = (a[-2], b[-1]) if groups is None else (groups, a[-2], b[-1])
    return Work(flops=2 * a[-2] * a[-1] * b[-1], outputs=(output,))


@dataclass(frozen=True)
class Convolution:
    """Indices of a convolution's arguments; negative: no such argument."""

    stride: int
    padding: int
    dilation: int
    transposed: int = -1
    output_padding: int = -1

    def __call__(self, inputs: Inputs) -> Work:
        """Count the work of inputs: each output, or input if transposed, with each weight."""
        x, weight = inputs.shape(0), inputs.shape(1)
        space = len(weight) - 2
        if space < 1 or len(x) != len(weight):
            raise UnknownWorkError
        output = self._output(inputs, x, weight)
        # each element of the side that is not written to meets each weight once
        is_transposed = self._is_transposed(inputs)
        swept = x if is_transposed else output
        return Work(flops=2 * x[0] * prod(swept[2:]) * prod(weight), outputs=(output,))

    def _is_transposed(self, inputs: Inputs) -> bool:
        return self.transposed >= 0 and inputs.numbers(self.transposed, 1) == (1,)

    def _output(self, inputs: Inputs, x: Shape, weight: Shape) -> Shape:
        """Return the result's shape: see the formulas in torch.nn.Conv2d and ConvTranspose2d."""
        space = len(weight) - 2
        places = (self.stride, self.padding, self.dilation)
        stride, padding, dilation = (inputs.numbers(index, space) for index in places)
        if not all(stride):
            raise UnknownWorkError
        reach = [d * (k - 1) for d, k in zip(dilation, weight[2:], strict=True)]
        if self._is_transposed(inputs):
            more = inputs.numbers(self.output_padding, space)
            groups = inputs.numbers(self.output_padding + 1, 1)[0]
            sizes = [
                (n - 1) * s - 2 * p + r + m + 1
                for n, s, p, r, m in zip(x[2:], stride, padding, reach, more, strict=True)
            ]
            return (x[0], weight[1] * groups, *(max(size, 0) for size in sizes))
        sizes = [
            (n + 2 * p - r - 1) // s + 1
            for n, s, p, r in zip(x[2:], stride, padding, reach, strict=True)
        ]
        return (x[0], weight[0], *(max(size, 0) for size in sizes))


def conv2d(inputs: Inputs) -> Work:
    """Count `conv2d`, for batches of images only, as torch does."""
    for index in (0, 1):
        inputs.shape(index, rank=4)
    return Convolution(stride=3, padding=4, dilation=5)(inputs)


def convolution_backward(inputs: Inputs) -> Work:
    """Count each requested gradient as the forward convolution: it has as many products."""
    grad, x, weight = (inputs.shape(index) for index in range(3))
    if not 3 <= len(weight) == len(x) == len(grad):
        raise UnknownWorkError
    requested = inputs.numbers(10, 3)
    swept = x if inputs.numbers(7, 1) == (1,) else grad
    flops = 2 * x[0] * prod(swept[2:]) * prod(weight) * (requested[0] + requested[1])
    written = (x, weight, grad[1:2])
    outputs = tuple(
        shape for shape, is_requested in zip(written, requested, strict=True) if is_requested
    )
    return Work(flops=flops, outputs=outputs)


PAGED = "Keys and values are in a cache whose sequences' lengths are not recorded."
PACKED = "Lengths of packed sequences are not recorded: operations are unknown."


@dataclass(frozen=True)
class Attention:
    """Attention, by the index of the query, and of the lengths of packed sequences."""

    query: int = 0
    heads_last: bool = False
    """Whether the layout is `[batch, sequence, heads, size]`, not `[batch, heads, sequence, …]`."""
    lengths: int = -1
    """Index of the queries' cumulated lengths; the keys' and both maxima follow."""
    is_backward: bool = False
    page_table: int = -1
    """Index of the table of the cache's pages."""

    def __call__(self, inputs: Inputs) -> Work:
        """Count the work of inputs; every key counts for every query, masked or not."""
        if self.page_table >= 0 and inputs.has(self.page_table):
            raise UnknownWorkError(PAGED)
        if self.lengths >= 0 and self._is_packed(inputs):
            return self._of_packed(inputs)
        first = self.query
        q, k, v = (inputs.shape(index, rank=4) for index in range(first, first + 3))
        sequence, heads = (1, 2) if self.heads_last else (2, 1)
        if q[0] != k[0] or k[:3] != v[:3] or q[3] != k[3] or not k[heads] or q[heads] % k[heads]:
            raise UnknownWorkError
        return self._work(q, k, v, q[0] * q[heads] * q[sequence] * k[sequence])

    def _of_packed(self, inputs: Inputs) -> Work:
        q, k, v = (inputs.shape(index) for index in range(self.query, self.query + 3))
        if not 3 <= len(q) == len(k) == len(v) or k[:-1] != v[:-1] or q[-1] != k[-1]:
            raise UnknownWorkError
        if prod(q[:-3]) != 1 or not k[-2] or q[-2] % k[-2]:
            raise UnknownWorkError
        pairs = self._packed_pairs(inputs, q[-3], k[-3])
        return self._work(q, k, v, None if pairs is None else pairs * q[-2])

    def _packed_pairs(self, inputs: Inputs, queries: int, keys: int) -> int | None:
        """Return the pairs of a query and a key of one sequence; None: lengths differ."""
        sequences = prod(inputs.shape(self.lengths)) - 1
        if sequences == 1:
            return queries * keys
        for total, others, index in ((queries, keys, 2), (keys, queries, 3)):
            with suppress(UnknownWorkError):
                # no sequence is longer than the maximum: in all they reach it only if each does
                (longest,) = inputs.numbers(self.lengths + index, 1)
                if total == sequences * longest:
                    return longest * others
        return None

    def _work(self, q: Shape, k: Shape, v: Shape, pairs: int | None) -> Work:
        outputs: tuple[Shape, ...] = ((*q[:-1], v[-1]),)
        of_pair = 2 * (q[-1] + v[-1])
        if self.is_backward:
            # the scores anew, then the gradients of scores, value, query and key
            of_pair, outputs = 2 * (3 * q[-1] + 2 * v[-1]), (q, k, v)
        return Work(flops=None if pairs is None else pairs * of_pair, outputs=outputs)

    def _is_packed(self, inputs: Inputs) -> bool:
        sizes = inputs.shapes[self.lengths] if self.lengths < len(inputs.shapes) else []
        return bool(sizes)


EXPERTS = "How many experts the tokens chose is not recorded: bytes are unknown."


def fused_experts(inputs: Inputs) -> Work:
    """Count `fused_experts(hidden, w1, w2, topk_weights, topk_ids)`: two products a choice."""
    hidden, up = inputs.shape(0, rank=2), inputs.shape(1, rank=3)
    down, choice = inputs.shape(2, rank=3), inputs.shape(4, rank=2)
    # w1 has the gate and the value, of which w2 takes the product
    fits = up[0] == down[0] and up[2] == down[1] == hidden[1] and up[1] in (down[2], 2 * down[2])
    if not fits or choice[0] != hidden[0]:
        raise UnknownWorkError
    choices = prod(choice)
    return Work(flops=2 * choices * (prod(up[1:]) + prod(down[1:])), outputs=(hidden,))


WITH_FLOPS = "torch with_flops"
FLOP_COUNTER = "torch.utils.flop_counter"
OWN = "stepscope"


@dataclass(frozen=True, kw_only=True)
class Formula:
    """Formula of an operator's work."""

    count: Callable[[Inputs], Work]
    source: str
    operand: int = 0
    """Index of the input whose type the arithmetic has."""
    is_elementwise: bool = False
    argument_count: int | None = None
    """Arguments before `out=`, into which the result is written; None: it takes no `out`."""
    causal_argument: int | None = None
    """Index of attention's `is_causal`, or `custom_mask_type` (0: none); None: it has neither."""
    results: frozenset[int] = frozenset()
    """Arguments that are only written."""
    bytes_unknown: str | None = None
    """Why bytes do not follow from shapes."""

    def is_causal(self, inputs: Inputs) -> bool:
        """Return whether the recorded values say that attention is causal."""
        if self.causal_argument is None or self.causal_argument >= len(inputs.values):
            return False
        return inputs.value(self.causal_argument) in {"True", "1", "2"}


def _formulas(
    source: str,
    count: Callable[[Inputs], Work],
    *names: str,
    argument_count: int | None = None,
) -> dict[str, Formula]:
    formula = Formula(count=count, source=source, argument_count=argument_count)
    return dict.fromkeys(names, formula)


def _attention(count: Attention, causal_arguments: Mapping[str, int]) -> dict[str, Formula]:
    return {
        name: Formula(count=count, source=FLOP_COUNTER, causal_argument=index)
        for name, index in causal_arguments.items()
    }


_BATCHED = product(rank=3)
_GRADIENTS = frozenset({6, 7, 8})
"""Arguments of flash-attn's backward that it writes: of query, key and value."""
FORMULAS: Mapping[str, Formula] = MappingProxyType(
    {
        "aten::mm": Formula(count=product(), source=WITH_FLOPS, argument_count=2),
        "aten::addmm": Formula(count=product(1), source=WITH_FLOPS, operand=1, argument_count=5),
        "aten::bmm": Formula(count=_BATCHED, source=WITH_FLOPS, argument_count=2),
        "aten::baddbmm": Formula(
            count=product(1, 3), source=WITH_FLOPS, operand=1, argument_count=5
        ),
        "aten::conv2d": Formula(count=conv2d, source=WITH_FLOPS),
        "aten::mul": Formula(
            count=elementwise, source=WITH_FLOPS, is_elementwise=True, argument_count=2
        ),
        "aten::add": Formula(
            count=elementwise, source=WITH_FLOPS, is_elementwise=True, argument_count=3
        ),
        **_formulas(FLOP_COUNTER, scaled_product, "aten::_scaled_mm", argument_count=8),
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
        **_attention(
            Attention(),
            {
                "aten::_scaled_dot_product_flash_attention": 4,
                "aten::_scaled_dot_product_flash_attention_for_cpu": 4,
                "aten::_scaled_dot_product_efficient_attention": 6,
                "aten::_scaled_dot_product_cudnn_attention": 6,
                "aten::_scaled_dot_product_fused_attention_overrideable": 5,
            },
        ),
        **_attention(
            Attention(query=1, is_backward=True),
            {
                "aten::_scaled_dot_product_flash_attention_backward": 11,
                "aten::_scaled_dot_product_flash_attention_for_cpu_backward": 7,
                "aten::_scaled_dot_product_efficient_attention_backward": 11,
                "aten::_scaled_dot_product_cudnn_attention_backward": 14,
                "aten::_scaled_dot_product_fused_attention_overrideable_backward": 13,
            },
        ),
        **_attention(Attention(heads_last=True, lengths=3), {"aten::_flash_attention_forward": 8}),
        **_attention(
            Attention(heads_last=True, lengths=4), {"aten::_efficient_attention_forward": 9}
        ),
        **_attention(
            Attention(query=1, heads_last=True, lengths=6, is_backward=True),
            {"aten::_flash_attention_backward": 11, "aten::_efficient_attention_backward": 14},
        ),
        **_formulas(
            OWN,
            Attention(heads_last=True),
            "flash_attn::_flash_attn_forward",
            "flash_attn_3::_flash_attn_forward",
        ),
        **dict.fromkeys(
            ("flash_attn::_flash_attn_backward", "flash_attn_3::_flash_attn_backward"),
            Formula(
                count=Attention(query=1, heads_last=True, is_backward=True),
                source=OWN,
                results=_GRADIENTS,
            ),
        ),
        "flash_attn::_flash_attn_varlen_forward": Formula(
            count=Attention(heads_last=True, lengths=3, page_table=15),
            source=OWN,
            causal_argument=9,
        ),
        "flash_attn::_flash_attn_varlen_backward": Formula(
            count=Attention(query=1, heads_last=True, lengths=9, is_backward=True),
            source=OWN,
            causal_argument=15,
            results=_GRADIENTS,
        ),
        **dict.fromkeys(
            (
                "vllm::inplace_fused_experts",
                "vllm::outplace_fused_experts",
                "sglang::inplace_fused_experts",
                "sglang::outplace_fused_experts",
            ),
            Formula(count=fused_experts, source=OWN, bytes_unknown=EXPERTS),
        ),
        **_formulas(OWN, product(), "aten::_int_mm", argument_count=2),
        "aten::addmm_": Formula(count=product(1), source=OWN, operand=1),
        "aten::baddbmm_": Formula(count=product(1, 3), source=OWN, operand=1),
        "aten::_addmm_activation": Formula(
            count=product(1), source=OWN, operand=1, argument_count=6
        ),
        **_formulas(OWN, grouped_product, "aten::_grouped_mm"),
        **_formulas(OWN, lambda inputs: scaled_product(inputs, 9), "aten::_scaled_mm_v2"),
        **_formulas(OWN, scaled_grouped_product(4, 7), "aten::_scaled_grouped_mm"),
        **_formulas(OWN, scaled_grouped_product(8, 10), "aten::_scaled_grouped_mm_v2"),
        **_formulas(OWN, vector_product, "aten::mv", argument_count=2),
        "aten::addmv": Formula(
            count=lambda inputs: vector_product(inputs, 1),
            source=OWN,
            operand=1,
            argument_count=5,
        ),
        **_formulas(OWN, linear, "aten::linear", argument_count=3),
        **_formulas(OWN, matmul, "aten::matmul", argument_count=2),
    }
)
"""Formula of each supported operator, by its name."""
