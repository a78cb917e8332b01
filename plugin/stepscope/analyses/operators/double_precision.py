"""Operators that run in double precision, and the cost of the same operators in float32.

A call's type is that of its first operand (`flops.operator_work`). Of nested calls the outermost
counts, without autograd's nodes. The float32 cost of a call is the mean of the calls of the same
operator and shapes in float32.
"""

import math
import re
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pandas as pd

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.group_statistics import ratio, sums
from stepscope.analyses.core.kernel_names import operand_type
from stepscope.analyses.core.links import links
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.flops import operator_work
from stepscope.analyses.operators.product_kernels import TYPES, is_product, kernels_in_window
from stepscope.analyses.operators.product_shapes import distinct, shape
from stepscope.model.arrays import NONE, Floats, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

DOUBLE, SINGLE = "float64", "float32"
OPERATOR = re.compile(r"(?!autograd::|torch::autograd::)\w+::")
"""`aten::mm`, `torchvision::nms`; not `MmBackward0`, `Optimizer.step#SGD.step`."""
SLOW_CONVOLUTION = re.compile(r"^aten::(?:thnn_conv|_?slow_conv)")
"""Fallback where oneDNN does not support the type (`aten/src/ATen/native/Convolution.cpp`)."""
CONVOLUTION, BACKWARD = re.compile(r"conv(?!ert)"), re.compile(r"backward")
MOST_DIMENSIONS_OF_PRODUCTS = 3
"""A weight has two dimensions, and one or more of the filter."""
LEAST_COLUMNS = 512 * 1024
"""Numbers that a slow convolution copies (`im2col`, for the whole batch) from which copying exceeds
the caches of a core: 4 MB in float64."""
MOST_NARROW = 16
"""Output channels up to which a copied number is hardly used: copying is most of the work."""
FLOATING = frozenset({DOUBLE, SINGLE, "float16", "bfloat16"})


class Convolution(IntEnum):
    """Kinds of slow convolutions, by what copying their input costs."""

    SMALL = 0
    NARROW = 1
    """Large, of few output channels."""
    WIDE = 2
    UNKNOWN = 3
    """Of an unknown shape."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DoublePrecision:
    """Work in float64; all arrays but `device_rows` and `owners` are parallel."""

    calls: Ints
    """Rows of `host_calls`; on devices also -1, for all kernels without a known operator."""
    cost_ns: Ints
    """Duration of each call, or on devices of its kernels."""
    float32_ns: Floats
    """Mean cost of the same call in float32; NaN where there is none."""
    is_product: Mask
    total_ns: int
    floating_share: float
    """Fraction of all work in floating-point types; NaN where there is none."""
    whole_ns: int
    """Reference of fractions: the window, or all kernels of the device."""
    device_rows: Ints
    """On devices, the kernels; empty on hosts."""
    owners: Ints
    """Call of each kernel."""


@computed
def on_host(trace: Trace) -> DoublePrecision:
    """Return the float64 operators of the host in the window."""
    span = window(trace)
    start = trace.host_calls["start_ns"].to_numpy()
    inside = (start >= span.start_ns) & (start < span.end_ns)
    inside &= name_mask(trace.host_calls["name"], OPERATOR.match) & _have_dimensions(trace)
    types = operator_work(trace).data_type
    outermost = _outermost(trace, inside & name_mask(types, FLOATING.__contains__))
    duration = trace.host_calls["duration_ns"].to_numpy()
    calls = _outermost(trace, inside & name_mask(types, DOUBLE.__eq__))
    singles = np.flatnonzero(inside & name_mask(types, SINGLE.__eq__)) if len(calls) else calls
    return _double(
        trace,
        calls=calls,
        cost_ns=duration[calls],
        singles=(singles, duration[singles]),
        floating_ns=int(duration[outermost].sum()),
        whole_ns=max(1, span.duration_ns),
    )


@computed
def on_device(trace: Trace) -> DoublePrecision:
    """Return the float64 kernels of the busiest device, by kernel names or their operators.

    Raises:
        MissingDataError: no device event was recorded.
        NotApplicableError: the machine has no device.
    """
    rows = kernels_in_window(trace)
    duration = trace.device_events["duration_ns"].to_numpy()[rows]
    owner = links(trace).owner_of_device_event[rows]
    types = _kernel_types(trace, rows, owner)
    is_double = name_mask(types, DOUBLE.__eq__)
    is_single = name_mask(types, SINGLE.__eq__) if is_double.any() else is_double
    is_floating = name_mask(types, FLOATING.__contains__)
    calls, cost = _by_call(owner[is_double], duration[is_double])
    return _double(
        trace,
        calls=calls,
        cost_ns=cost,
        singles=_by_call(owner[is_single], duration[is_single]),
        floating_ns=int(duration[is_floating].sum()),
        whole_ns=max(1, int(duration.sum())),
        kernels=(rows[is_double], owner[is_double]),
    )


NO_KERNELS = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def _double(  # noqa: PLR0913 (each a figure of the result)
    trace: Trace,
    *,
    calls: Ints,
    cost_ns: Ints,
    singles: tuple[Ints, Ints],
    floating_ns: int,
    whole_ns: int,
    kernels: tuple[Ints, Ints] = NO_KERNELS,
) -> DoublePrecision:
    total_ns = int(cost_ns.sum())
    names = trace.host_calls["name"].cat
    products = np.array([*(is_product(str(name)) for name in names.categories), False])
    code = np.append(names.codes.to_numpy(), NONE)[calls]
    return DoublePrecision(
        calls=calls,
        cost_ns=cost_ns,
        float32_ns=_float32_means(trace, calls, *singles),
        is_product=products[code],
        total_ns=total_ns,
        floating_share=min(1.0, total_ns / floating_ns) if floating_ns else float("nan"),
        whole_ns=whole_ns,
        device_rows=kernels[0],
        owners=kernels[1],
    )


def _have_dimensions(trace: Trace) -> Mask:
    """Return a mask of calls with an input of at least one dimension or unknown shape.

    A Python number, such as a learning rate, is a float64 tensor without dimensions.
    """
    dims = trace.host_calls["input_dims"]
    is_recorded = dims.cat.codes.to_numpy() != NONE
    return np.asarray(name_mask(dims, re.compile(r"\d").search) | ~is_recorded)


def _outermost(trace: Trace, is_selected: Mask) -> Ints:
    parent = trace.host_calls["parent"].to_numpy()
    rows = np.flatnonzero(is_selected)
    return np.asarray(rows[ancestry.nearest_of(parent, parent[rows], is_selected) == NONE])


def _by_call(owner: Ints, duration_ns: Ints) -> tuple[Ints, Ints]:
    calls, index = np.unique(owner, return_inverse=True)
    return calls, sums(duration_ns, index, len(calls))


def _kernel_types(trace: Trace, rows: Ints, owner: Ints) -> pd.Categorical:
    """Return the type of each kernel: by its name, else by its operator's operand."""
    names = trace.device_events["name"].cat
    named_types = [operand_type(trace.dialect, str(name)) for name in names.categories]
    of_name = np.array(
        [*(TYPES.index(name) if name in TYPES else NONE for name in named_types), NONE]
    )
    by_name = of_name[names.codes.to_numpy()[rows]]
    written = operator_work(trace).data_type
    of_call = np.array([*(TYPES.index(str(name)) for name in written.categories), NONE])
    by_call = of_call[np.append(np.asarray(written.codes), NONE)[owner]]
    codes = np.where(by_name == NONE, by_call, by_name)
    codes[trace.device_events["is_collective"].to_numpy()[rows]] = NONE
    return pd.Categorical.from_codes(codes, categories=pd.Index(list(TYPES), dtype=object))


def _float32_means(trace: Trace, calls: Ints, singles: Ints, single_ns: Ints) -> Floats:
    """Return the mean cost of each call's float32 counterparts; NaN without any."""
    keys, single_keys = _keys(trace, calls), _keys(trace, singles)
    index, distinct = pd.factorize(single_keys)
    mean = ratio(sums(single_ns, index, len(distinct)), np.bincount(index, minlength=len(distinct)))
    means = pd.Series(mean, index=distinct).reindex(keys).to_numpy(dtype=np.float64)
    return np.where(keys == NONE, np.nan, means)


def _keys(trace: Trace, rows: Ints) -> Ints:
    """Return a number for each call's name and shapes; -1 where unknown."""
    name, dims = (trace.host_calls[column].cat for column in ("name", "input_dims"))
    shapes, names = (np.append(column.codes.to_numpy(), NONE)[rows] for column in (dims, name))
    whole = names.astype(np.int64) * (len(dims.categories) + 1) + shapes
    return np.where((shapes == NONE) | (names == NONE), NONE, whole)


def by_operator(trace: Trace, double: DoublePrecision) -> pd.DataFrame:
    """Return one row per operator and shapes, the most expensive first.

    Columns: `name`, `dims` (JSON or None), `calls`, `ns` (total) and `float32_ns`, the mean of a
    call in float32 or NaN.
    """
    has_call = double.calls != NONE
    calls = trace.host_calls.iloc[double.calls[has_call]]
    frame = pd.DataFrame(
        {
            "name": calls["name"].astype(object).to_numpy(),
            "dims": calls["input_dims"].astype(object).to_numpy(),
            "ns": double.cost_ns[has_call],
            "float32_ns": double.float32_ns[has_call],
        }
    )
    grouped = frame.groupby(["name", "dims"], dropna=False, sort=False)
    table = grouped.agg(calls=("ns", "size"), ns=("ns", "sum"), float32_ns=("float32_ns", "mean"))
    return table.reset_index().sort_values("ns", ascending=False, kind="stable")


def convolution_kinds(trace: Trace, calls: Ints) -> Ints:
    """Return the kind of some calls: a `Convolution`, or -1.

    A convolution of one element is a matrix product: -1.
    """
    group, pairs = distinct(trace, calls)
    return np.array([_kind(name, dims) for name, dims in pairs], dtype=np.int64)[group]


def _kind(name: str, dims: str) -> int:
    if not CONVOLUTION.search(name):
        return NONE
    pixels, weight = shape(dims, 0), shape(dims, 2 if BACKWARD.search(name) else 1)
    if len(weight) < MOST_DIMENSIONS_OF_PRODUCTS:
        return Convolution.UNKNOWN
    if math.prod(weight[2:]) == 1:
        return NONE
    columns = math.prod(weight[1:]) * math.prod((*pixels[:1], *pixels[2:]))
    large = Convolution.NARROW if weight[0] <= MOST_NARROW else Convolution.WIDE
    return large if columns >= LEAST_COLUMNS else Convolution.SMALL


def slow_convolutions(trace: Trace) -> list[str]:
    """Return the names of the convolutions that ran because oneDNN has no float64."""
    names = trace.host_calls["name"].cat.categories
    return [str(name) for name in names if SLOW_CONVOLUTION.match(str(name))]
