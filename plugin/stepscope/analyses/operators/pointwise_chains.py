"""Chains of pointwise operations that torch.compile would fuse into one kernel.

Pointwise operators and reductions read inputs from memory and write results back; one fused kernel
reads and writes once. On a device they are recognized by the names of torch's own kernels, the same
for all vendors, on the host by operator names. Other work between two of them on the same stream or
thread ends a chain; views do no work there. Optimizers are left out: they have fused versions.

The fused kernel takes about as long as the longest of the chain, whose data it moves. Fusing saves
all the others.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.ancestry import nearest, nearest_of
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.costs import owners_of_device_events
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

SHORTEST = 2
KERNEL = re.compile(
    # aten/src/ATen/native/cuda: TensorIterator's loops and reductions, layer_norm_kernel.cu
    r"(?<![A-Za-z_])(?:(?:vectorized_|unrolled_|legacy_)?elementwise_kernel|reduce_kernel"
    r"|(?:vectorized_)?layer_norm_|fused_dropout_kernel|GammaBeta)"
)
_BINARY = "add|sub|rsub|mul|div|pow|maximum|minimum|fmod|remainder|atan2|addcmul|addcdiv|lerp|where"
_UNARY = (
    "neg|abs|sign|exp|exp2|expm1|log|log2|log1p|sqrt|rsqrt|square|reciprocal|sin|cos|erf|floor|ceil"
    "|round|tanh|sigmoid|relu|relu6|silu|gelu|elu|selu|celu|mish|leaky_relu|hardtanh|hardswish"
    "|hardsigmoid|softplus|clamp|clamp_min|clamp_max|clip|threshold|masked_fill|fill|copy|bernoulli"
    "|native_dropout|nan_to_num"
)
_COMPARISONS = "eq|ne|lt|le|gt|ge|logical_(?:and|or|not|xor)|bitwise_(?:and|or|not|xor)"
_REDUCTIONS = "sum|mean|amax|amin|var|std|var_mean|linalg_vector_norm|native_layer_norm"
OPERATOR = re.compile(
    rf"^aten::(?:(?:{_BINARY}|{_UNARY}|{_COMPARISONS}|{_REDUCTIONS})_?"
    rf"|(?:{_UNARY}|native_layer_norm)_backward)$"
)
"""Operators that torch.compile lowers to loops (torch/_inductor/lowering.py)."""
WORK = re.compile(
    r"^aten::(?!(?:view|_unsafe_view|reshape|_reshape_alias|expand|t|transpose|permute|slice|select"
    r"|unsqueeze|squeeze|as_strided|detach|alias|chunk|split\w*|narrow|unbind|unfold|flatten|numpy_T"
    r"|expand_as|view_as|empty\w*|resize_|result_type|to|_to_copy|contiguous|clone|ones_like"
    r"|zeros_like|zeros|ones|zero_|item|set_|lift_fresh|is_nonzero|\w+_like|detach_"
    r"|scalar_tensor|resolve_(?:conj|neg))$)"
)
"""Operators that do work; others are views, allocations, or delegate it."""
OPTIMIZER = re.compile(r"^Optimizer\.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Chains:
    """Pointwise work and its chains."""

    rows: Ints
    """Rows of `device_events` or `host_calls`."""
    chain: Ints
    """Number of each row's chain, from 0; -1 for single rows."""
    is_longest: Mask
    """Whether each is the longest of its chain (of equals the first)."""

    @property
    def count(self) -> int:
        """Number of chains."""
        return int(self.chain.max(initial=NONE)) + 1

    @property
    def chained(self) -> Ints:
        """Rows that belong to a chain."""
        return np.asarray(self.rows[self.chain != NONE])

    @property
    def fusable(self) -> Ints:
        """Rows of chains other than the longest of each."""
        return np.asarray(self.rows[(self.chain != NONE) & ~self.is_longest])


@computed
def kernel_chains(trace: Trace) -> Chains:
    """Return the pointwise kernels of the main device that start in the window, by stream."""
    device, span = main_device(trace), window(trace)
    rows = np.zeros(0, dtype=np.int64) if device is None else device.rows
    events = trace.device_events
    start = events["start_ns"].to_numpy()[rows]
    rows = rows[(start >= span.device_start_ns) & (start < span.device_end_ns)]
    streams = events["stream"].to_numpy()[rows]
    order = np.argsort(streams, kind="stable")
    rows, streams = rows[order], streams[order]
    is_pointwise = name_mask(events["name"], KERNEL.search)[rows]
    owner = owners_of_device_events(trace)[rows]
    is_pointwise[np.append(_in_optimizer(trace), False)[owner]] = False
    return _chains(rows, streams, is_pointwise, events["duration_ns"].to_numpy())


@computed
def operator_chains(trace: Trace) -> Chains:
    """Return the pointwise operators of the host, chained by thread."""
    calls = trace.host_calls
    rows = np.flatnonzero(name_mask(calls["name"], WORK.search) & ~_in_optimizer(trace))
    rows = rows[~_is_under_work(trace, rows)]
    threads = calls["thread"].cat.codes.to_numpy().astype(np.int64)[rows]
    order = np.argsort(threads, kind="stable")
    is_pointwise = name_mask(calls["name"], OPERATOR.search)[rows]
    took = calls["duration_ns"].to_numpy()
    return _chains(rows[order], threads[order], is_pointwise[order], took)


def _is_under_work(trace: Trace, rows: Ints) -> Mask:
    """Return a mask of rows that another working operator called: the `sum` of a `mean`."""
    calls = trace.host_calls
    does_work = name_mask(calls["name"], WORK.search)
    above = calls["parent"].to_numpy()[rows]
    return np.asarray(nearest_of(calls["parent"].to_numpy(), above, does_work) != NONE)


def _in_optimizer(trace: Trace) -> Mask:
    calls = trace.host_calls
    if not any(OPTIMIZER.search(str(name)) for name in calls["name"].cat.categories):
        return np.zeros(len(calls), dtype=bool)
    is_optimizer = name_mask(calls["name"], OPTIMIZER.search)
    return np.asarray(nearest(calls["parent"].to_numpy(), is_optimizer) != NONE)


def _chains(
    rows: Ints,
    lane: Ints,
    is_pointwise: Mask,
    took_ns: Ints,
) -> Chains:
    """Return runs of adjacent pointwise rows of one lane; rows are ordered by lane.

    `took_ns` are the durations of the whole frame's rows.
    """
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (lane[1:] != lane[:-1]) | ~is_pointwise[1:] | ~is_pointwise[:-1]
    run = np.cumsum(begins)[is_pointwise]
    length = np.bincount(run, minlength=1)[run] if len(run) else run
    is_chain = length >= SHORTEST
    chain = np.full(len(run), NONE, dtype=np.int64)
    chain[is_chain] = np.unique(run[is_chain], return_inverse=True)[1]
    pointwise = rows[is_pointwise]
    order = np.lexsort((-took_ns[pointwise], chain))
    is_longest = np.zeros(len(pointwise), dtype=bool)
    is_longest[order] = np.diff(chain[order], prepend=NONE) > 0
    return Chains(rows=pointwise, chain=chain, is_longest=is_longest)
