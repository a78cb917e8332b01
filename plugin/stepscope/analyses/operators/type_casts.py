"""Kernels that only convert floating-point types, and the calls that need them.

A conversion is a kernel of a copy (`aten::copy_`) whose operands have different types; where types
were not recorded, a copy below `aten::_to_copy`, of an unknown pair. Conversions to and from
integers are left out, because they make new data, and so are 8-bit floats: quantised products need
them.
"""

import json
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.links import links
from stepscope.analyses.operators.product_kernels import kernels_in_window
from stepscope.model.arrays import NONE, Ints, Objects
from stepscope.model.frames.data_types import data_type
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

COPY, CONVERSION = "aten::copy_", "aten::_to_copy"
PARTS = frozenset(
    {
        COPY,
        CONVERSION,
        "aten::to",
        "aten::type_as",
        "aten::_autocast_to_full_precision",
        "aten::_autocast_to_reduced_precision",
        "ToCopyBackward0",
    }
)
"""Operators that a conversion consists of; the requesting call is above them."""
FLOATING = frozenset({"float64", "float32", "float16", "bfloat16"})
UNKNOWN = "not recorded"
SAME = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class TypeCasts:
    """Kernels of conversions; all arrays are parallel."""

    rows: Ints
    """Rows of `device_events`: the busiest device's kernels in the window."""
    pairs: Objects
    """`float32 → bfloat16`, or `UNKNOWN`."""
    owners: Ints
    """Operator that launched each kernel, as a row of `host_calls`."""
    callers: Ints
    """Call that requested each conversion, as a row of `host_calls`; -1: Python itself."""
    duration_ns: Ints
    kernel_ns: int
    """Sum of durations of the device's kernels in the window, at least 1."""


@computed
def type_casts(trace: Trace) -> TypeCasts:
    """Return the kernels that only convert types.

    Raises:
        MissingDataError: no device event was recorded.
        NotApplicableError: the machine has no device.
    """
    kernels = kernels_in_window(trace)
    duration = trace.device_events["duration_ns"].to_numpy()[kernels]
    owner = links(trace).owner_of_device_event[kernels]
    names, parent = trace.host_calls["name"], trace.host_calls["parent"].to_numpy()
    pair, texts = _pairs(trace, owner)
    casts = np.flatnonzero(pair != NONE)
    is_conversion = name_mask(names, CONVERSION.__eq__)
    casts = casts[ancestry.nearest_of(parent, owner[casts], is_conversion) != NONE]
    is_asker = ~name_mask(names, PARTS.__contains__) & trace.host_calls["is_operator"].to_numpy()
    return TypeCasts(
        rows=kernels[casts],
        pairs=np.array(texts, dtype=object)[pair[casts]],
        owners=owner[casts],
        callers=ancestry.nearest_of(parent, owner[casts], is_asker),
        duration_ns=duration[casts],
        kernel_ns=max(1, int(duration.sum())),
    )


def _pairs(trace: Trace, owner: Ints) -> tuple[Ints, list[str]]:
    """Return each copy's pair of types, as indices into a list of texts.

    -1 for copies that are no conversion of floats. Copies of unknown types may be one.
    """
    calls = trace.host_calls
    types = calls["input_types"].cat
    written = [_pair(str(text)) for text in types.categories]
    texts = [*written, UNKNOWN]
    code = np.append(types.codes.to_numpy(), NONE)[owner].astype(np.int64)
    is_float = np.array([*(text != SAME for text in written), True])[code]
    is_copy = np.array([str(name) == COPY for name in calls["name"].cat.categories] + [False])
    name = np.append(calls["name"].cat.codes.to_numpy(), NONE)[owner]
    copies = is_copy[name] | (code == NONE)
    is_cast = (owner != NONE) & copies & is_float
    return np.where(is_cast, np.where(code == NONE, len(written), code), NONE), texts


def _pair(written: str) -> str:
    """Return the types of a copy, whose first input is the target."""
    try:
        target, source = (data_type(str(text)) for text in json.loads(written)[:2])
    except (ValueError, TypeError, RecursionError):
        return SAME
    if target == source or target not in FLOATING or source not in FLOATING:
        return SAME
    return f"{source} → {target}"
