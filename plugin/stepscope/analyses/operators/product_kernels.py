"""Kernels of matrix products on the busiest device, and their operand types.

Convolutions and attention are products too. A kernel belongs to the nearest such operator around
its launch, but not if a conversion or copy in between launched it (`aten::to`, as under autocast).
Where the operator is unknown, as in a replayed graph, the kernel's name decides.

The type is that of the kernel's name if it names a product, else the recorded type of the
operator's operands, else any type in the name. Float32 that matrix units round first is `tf32`.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core import ancestry, requirements
from stepscope.analyses.core.kernel_names import operand_type
from stepscope.analyses.core.links import links
from stepscope.analyses.core.window import window
from stepscope.analyses.operators import matrix_units
from stepscope.analyses.operators.flops import operator_work
from stepscope.dialects import Dialect, Kind
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames.data_types import BYTES
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

TF32 = "tf32"
TYPES = (*BYTES, TF32)
RECURRENT = frozenset(
    {
        "aten::_cudnn_rnn",
        "aten::_cudnn_rnn_backward",
        "aten::miopen_rnn",
        "aten::miopen_rnn_backward",
    }
)
NO_PRODUCTS = frozenset(
    {
        "aten::prelu",
        "aten::_thnn_fused_lstm_cell",
        "aten::_thnn_fused_gru_cell",
    }
)
"""Operators of autocast's lower-precision list that multiply element by element."""
COPIES = frozenset({"aten::to", "aten::_to_copy", "aten::copy_", "aten::clone", "aten::contiguous"})


@dataclass(frozen=True, kw_only=True, eq=False)
class ProductKernels:
    """Kernels of products; all arrays are parallel."""

    rows: Ints
    """Rows of `device_events`, in start order."""
    calls: Ints
    """Operator, as a row of `host_calls`; -1 where unknown."""
    data_type: pd.Categorical
    """One of `TYPES`; missing where neither shapes nor the name show it."""
    multiplies: Mask
    """Whether the name shows the product itself, not a preparation or the sum of its parts."""
    on_matrix_unit: Mask
    """Whether the name shows that it runs on matrix units."""
    duration_ns: Ints
    kernel_ns: int
    """Sum of durations of the device's kernels in the window, at least 1."""

    def of_type(self, *types: str) -> Mask:
        """Return a mask of the kernels of these types."""
        return name_mask(self.data_type, set(types).__contains__)

    def total_ns(self, mask: Mask) -> int:
        """Return the sum of the masked kernels' durations."""
        return int(self.duration_ns[mask].sum())

    def share(self, mask: Mask) -> float:
        """Return the masked kernels' fraction of all kernels' durations."""
        return self.total_ns(mask) / self.kernel_ns


def is_product(operator: str) -> bool:
    """Return whether an operator multiplies matrices."""
    is_eligible = matrix_units.is_eligible(operator) and operator not in NO_PRODUCTS
    return is_eligible or operator in RECURRENT


@computed
def kernels_in_window(trace: Trace) -> Ints:
    """Return the busiest device's kernels that start in the window, as row numbers.

    Raises:
        MissingDataError: no device event was recorded.
        NotApplicableError: the machine has no device.
    """
    rows, span = requirements.main_device(trace).rows, window(trace)
    events = trace.device_events
    start = events["start_ns"].to_numpy()[rows]
    mask = start >= span.device_start_ns
    mask &= start < max(span.device_end_ns, span.device_start_ns + 1)
    mask &= events["kind"].to_numpy()[rows] == int(Kind.KERNEL)
    return np.asarray(rows[mask])


@computed
def product_kernels(trace: Trace) -> ProductKernels:
    """Return the kernels that belong to products of matrices.

    Raises:
        MissingDataError: no device event was recorded.
        NotApplicableError: the machine has no device.
    """
    kernels = kernels_in_window(trace)
    duration = trace.device_events["duration_ns"].to_numpy()
    names = trace.device_events["name"].cat
    named_traits = [_named_traits(trace.dialect, str(name)) for name in names.categories]
    named_traits.append((NONE, False, False))
    code = names.codes.to_numpy()[kernels]
    of_name, multiplies, on_unit = (
        np.array(column)[code] for column in zip(*named_traits, strict=True)
    )
    owner = links(trace).owner_of_device_event[kernels]
    call = _product_around(trace, owner)
    selected = np.flatnonzero((call != NONE) | ((owner == NONE) & multiplies))
    call, multiplies, on_unit = call[selected], multiplies[selected], on_unit[selected]
    return ProductKernels(
        rows=kernels[selected],
        calls=call,
        data_type=_types(trace, call, of_name[selected], multiplies, on_unit),
        multiplies=multiplies,
        on_matrix_unit=on_unit,
        duration_ns=duration[kernels[selected]],
        kernel_ns=max(1, int(duration[kernels].sum())),
    )


def _named_traits(dialect: Dialect, kernel: str) -> tuple[int, bool, bool]:
    """Return a kernel name's type index, and whether it multiplies and uses matrix units."""
    on_unit = dialect.uses_matrix_unit(kernel)
    plain = dialect.plain_product
    is_plain = on_unit is False and plain is not None and plain.search(kernel) is not None
    name = operand_type(dialect, kernel)
    type_code = TYPES.index(name) if name in TYPES else NONE
    return type_code, bool(on_unit) or is_plain, bool(on_unit)


def _product_around(trace: Trace, owner: Ints) -> Ints:
    names = trace.host_calls["name"]
    is_product_name = name_mask(names, is_product)
    parent = trace.host_calls["parent"].to_numpy()
    around = ancestry.nearest_of(
        parent, owner, is_product_name | name_mask(names, COPIES.__contains__)
    )
    return np.where(np.append(is_product_name, False)[around], around, NONE)


def _types(
    trace: Trace,
    call: Ints,
    of_name: Ints,
    multiplies: Mask,
    on_unit: Mask,
) -> pd.Categorical:
    written = operator_work(trace).data_type
    places = np.array([*(TYPES.index(str(name)) for name in written.categories), NONE])
    of_call = np.append(places[np.asarray(written.codes)], NONE)[call]
    by_name = (multiplies & (of_name != NONE)) | (of_call == NONE)
    codes = np.where(by_name, of_name, of_call)
    rounded = TYPES.index(trace.dialect.float32_on_matrix_unit)
    codes[(codes == TYPES.index("float32")) & on_unit] = rounded
    return pd.Categorical.from_codes(codes, categories=pd.Index(list(TYPES), dtype=object))
