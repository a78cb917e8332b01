"""Operators by category: products, attention, convolution, and so on, with their self times.

The category follows from the operator's name, the first pattern of `CATEGORIES` that matches; of
device work that no operator launched, from the kind of work and the kernel's name. Times are self
times: the categories sum to the time of all operators on the host, and of all work on devices.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.group_statistics import ratio, sums
from stepscope.analyses.core.links import links
from stepscope.analyses.operators.costs import operator_calls
from stepscope.analyses.operators.replayed_operators import NOT_ATTRIBUTED, replayed_operators
from stepscope.dialects import Kind
from stepscope.model.arrays import Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

CATEGORIES: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "autograd engine": re.compile(r"^autograd::|^torch::autograd|^\w+Backward\d+$"),
        "communication": re.compile(
            r"^_?c10d(?:_functional)?::|^record_param_comms|^all2all"
            r"|(?<![a-z])all_?(?:reduce|gather|to_?all)"
            r"|reduce_scatter|^(?:nccl|rccl|gloo|mpi|xccl|hccl):",
            re.IGNORECASE,
        ),
        "attention": re.compile(
            r"scaled_dot_product|(?:flash|efficient|cudnn|paged|unified|ragged|mla|sparse)_?\w*attn"
            r"|attention|fmha|\bsdpa\b|reshape_and_cache|rotary_embedding",
            re.IGNORECASE,
        ),
        "matrix product": re.compile(
            r"::_?(?:mm|addmm|bmm|baddbmm|addbmm|matmul|linear|einsum|tensordot|inner|mv|addmv|dot"
            r"|vdot|ger|addr|outer|chain_matmul|multi_dot)(?:_|$)|_scaled_mm|_grouped_mm|_addmm"
            r"|_int_mm|_weight_int\w*mm|mkldnn_linear|(?<!fb)gemm|mixed_mm|marlin|cutlass\w*_mm|lstm_cell"
            r"|_thnn_fused_\w+_cell|_cudnn_rnn|miopen_rnn|sparse_\w*mm",
            re.IGNORECASE,
        ),
        "convolution": re.compile(r"conv(?!ert|ex)(?:olution|_|\d|$)", re.IGNORECASE),
        "normalization": re.compile(r"(?:batch|layer|group|instance|rms|local_response)_?norm"),
        "softmax and loss": re.compile(
            r"softmax|_loss|cross_entropy|log_sigmoid|nll_|logit(?:_|$)|kl_div", re.IGNORECASE
        ),
        "pooling and interpolation": re.compile(
            r"pool\d|pooling|upsample|interpolate|grid_sampler"
        ),
        "embedding and indexing": re.compile(
            r"embedding|::_?(?:index|gather|scatter|take|select_backward|slice_backward|nonzero"
            r"|masked_select|masked_scatter|bucketize|searchsorted|where|one_hot|unique)|fast_gather"
            r"|gather_backward|permute_\w*sparse|permute_pooled|lookup_function"
        ),
        "sorting": re.compile(r"::(?:sort|argsort|topk|kthvalue|msort|median|mode)(?:_|$)"),
        "copy and cast": re.compile(
            r"::_?(?:copy_?|is_nonzero|to|to_copy|clone|contiguous|cat|stack|concat\w*|hstack|vstack"
            r"|\w+_copy|foreach_copy_|pin_memory|lift_fresh|type_as|item|local_scalar_dense|repeat"
            r"|repeat_interleave|roll|flip|pad|constant_pad_nd|tril_?|triu_?|flatten_dense_tensors)$"
            r"|[Qq]uantize"
        ),
        "optimizer": re.compile(r"_foreach_|_fused_(?:adam|sgd|adagrad)|multi_tensor|fused_adam"),
        "reduction": re.compile(
            r"::_?(?:sum|mean|prod|max|min|amax|amin|aminmax|argmax|argmin|all|any|var|std|var_mean"
            r"|std_mean|norm|linalg_\w*norm|cumsum|cumprod|logsumexp|logcumsumexp|count_nonzero"
            r"|value_selecting_reduction_backward|histc|bincount)(?:_|$)|complete_cumsum"
            r"|_grad_sum_to_size"
        ),
        "fill and random": re.compile(
            r"::(?:fill_?|zero_?|masked_fill_?|zeros|ones|full|zeros_like|ones_like|full_like|new_zeros|new_ones"
            r"|new_full|arange|linspace|eye|rand\w*|normal_?|uniform_|bernoulli_?|random_|multinomial"
            r"|exponential_|native_dropout\w*|dropout\w*|scalar_tensor)$"
        ),
        "view and allocation": re.compile(
            r"::_?(?:view\w*|unsafe_view|reshape\w*|as_strided_?|t_?|transpose_?|permute|expand\w*|slice"
            r"|select|narrow|chunk|split\w*|unbind|squeeze|unsqueeze|flatten|unflatten\w*|alias"
            r"|detach_?|movedim|swapaxes|broadcast_tensors|empty\w*|new_empty\w*|resize_|resize_as_"
            r"|set_|resolve_conj|resolve_neg|conj|result_type|promote_types|is_\w+|record_stream"
            r"|has_\w+|debug_\w+|nnpack_available|cudnn_is_acceptable|real|imag)$|^detach_?$"
        ),
        "elementwise": re.compile(r"^(?:aten|prims?|_C)::"),
        "compiled": re.compile(
            r"^torch::jit|^triton_|^Torch-Compiled|^CompiledF|inductor|[dD]ynamo|^## Call Comp"
        ),
        "autograd node": re.compile(r"Backward\d*$"),
        "other operators": re.compile(""),
    }
)
"""Category to the names of its operators; the first that matches counts. Elementwise is what is
left of torch's operators."""
UNOWNED = "device work of no operator"
SCHEMA: Schema = (
    Column("category", "object", "text", "The category; `device work of no operator`: launched"
           " outside of operators, or its launch was not recorded, and no copy or collective."),
    Column("operator_count", "int64", "count", "Distinct operators."),
    Column("call_count", "int64", "count", "Their calls."),
    Column("host_self_ns", "int64", "ns", "Their time on the host, without calls within."),
    Column("host_share", "float64", "share", "Of all operators' time on the host."),
    Column("device_event_count", "int64", "count", "Kernels, copies and memory sets that they"
           " launched themselves, or whose graph's capture has them."),
    Column("device_self_ns", "int64", "ns", "Time of these."),
    Column("device_share", "float64", "share", "Of all work on devices."),
)  # fmt: skip


def category_of(name: str) -> str:
    """Return an operator's category by its name."""
    return next(category for category, pattern in CATEGORIES.items() if pattern.search(name))


@public_table(
    "operators-by-category",
    SCHEMA,
    "One row per category of operators (matrix product, attention, convolution, normalization, …):"
    " their time on the host and the device work that they launched.",
)
@computed
def operator_categories(trace: Trace) -> pd.DataFrame:
    """Return one row per category that occurs, most device time first, then most host time."""
    labels = (*CATEGORIES, "copy", "memory set", UNOWNED)
    number = {label: index for index, label in enumerate(labels)}
    calls, cost = trace.host_calls, operator_calls(trace)
    names = calls["name"].cat
    of_name = np.array([number[category_of(str(name))] for name in names.categories], np.int64)
    of_call = np.append(of_name, number["other operators"])[names.codes.to_numpy()]
    is_operator = calls["is_operator"].to_numpy()
    rows = np.flatnonzero(is_operator)
    group = of_call[rows]
    device = _device_groups(trace, of_call, number)
    count = len(labels)
    took = trace.device_events["duration_ns"].to_numpy()
    pairs = pd.unique(group * (len(names.categories) + 1) + names.codes.to_numpy()[rows] + 1)
    host_ns = sums(cost.host_self_ns[rows], group, count)
    device_ns = sums(took, device, count)
    columns: dict[str, NDArray[Any]] = {
        "category": np.array(labels, dtype=object),
        "operator_count": np.bincount(pairs // (len(names.categories) + 1), minlength=count),
        "call_count": np.bincount(group, minlength=count),
        "host_self_ns": host_ns,
        "host_share": ratio(host_ns, np.full(count, host_ns.sum())),
        "device_event_count": np.bincount(device, minlength=count),
        "device_self_ns": device_ns,
        "device_share": ratio(device_ns, np.full(count, device_ns.sum())),
    }
    table = to_frame(SCHEMA, columns, "-device_self_ns", "-host_self_ns", "category")
    occurs = (table["call_count"] > 0) | (table["device_event_count"] > 0)
    return table[occurs.to_numpy()].reset_index(drop=True)


def _device_groups(trace: Trace, of_call: Ints, number: Mapping[str, int]) -> Ints:
    events = trace.device_events
    owner = links(trace).owner_of_device_event
    kind = events["kind"].to_numpy()
    group = np.full(len(events), number[UNOWNED], dtype=np.int64)
    group[kind == int(Kind.COPY)] = number["copy"]
    group[kind == int(Kind.MEMORY_SET)] = number["memory set"]
    is_owned = owner >= 0
    group[is_owned] = of_call[owner[is_owned]]
    replayed = replayed_operators(trace)
    is_attributed = np.append(replayed.operator != NOT_ATTRIBUTED, False)
    is_replayed = is_attributed[replayed.call_of_device_event]
    of_replayed = np.array([number[category_of(name)] for name in replayed.operator], np.int64)
    group[is_replayed] = of_replayed[replayed.call_of_device_event[is_replayed]]
    group[events["is_collective"].to_numpy()] = number["communication"]
    return group
