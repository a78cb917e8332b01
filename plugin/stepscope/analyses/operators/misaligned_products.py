"""Products of matrices with misaligned rows, which matrix units cannot load at once.

A load takes 16 bytes: 8 elements of 16 bits, 4 of TF32. Some libraries write the elements per load
into a kernel's name. Otherwise shapes and strides decide: the row length and row distance of both
operands, and the row length of the result (cuBLAS' conditions for Tensor Cores). Without recorded
strides, operands are assumed contiguous, which holds in the forward pass only: calls below a
backward node are left out.
"""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core import ancestry, group_statistics
from stepscope.analyses.core.device_specs import compute_major
from stepscope.analyses.operators.product_kernels import TF32, ProductKernels, product_kernels
from stepscope.analyses.operators.product_shapes import distinct, operands
from stepscope.model.arrays import NONE, Ints, Mask, Objects
from stepscope.model.frames.data_types import BYTES
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

SIXTEEN_BITS = ("float16", "bfloat16")
BACKWARD = re.compile(r"Backward\d*$")
CURRENT_MAJOR = 8
"""Compute capability from which kernels for capability 7 are of an earlier generation."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MisalignedProducts:
    """Masks are parallel to `products.rows`."""

    products: ProductKernels
    by_name: Mask
    by_shape: Mask
    on_older_unit: Mask
    """Misaligned kernels for an earlier generation of devices."""
    sizes: Objects
    """Misaligned sizes, `K 2798 → 2800`; empty where unknown."""

    @property
    def is_misaligned(self) -> Mask:
        """Mask of all misaligned kernels."""
        return self.by_name | self.by_shape


@computed
def misaligned_products(trace: Trace) -> MisalignedProducts:
    """Return the product kernels that load fewer elements at a time than matrix units could.

    Raises:
        MissingDataError: no device event was recorded.
        NotApplicableError: the machine has no device.
    """
    products = product_kernels(trace)
    names = trace.device_events["name"]
    alignments = [_alignment(trace, str(name)) for name in names.cat.categories]
    loaded = np.array([*alignments, 0], dtype=np.int64)[names.cat.codes.to_numpy()[products.rows]]
    aligned = _aligned_elements(trace, products)
    strides = _strides(trace, products.calls)
    has_layout = (strides[0] != NONE) | ~_in_backward(trace, products.calls)
    sizes = np.where(has_layout, _sizes(trace, products.calls, aligned, strides), "")
    is_narrow = products.of_type(*SIXTEEN_BITS)
    return MisalignedProducts(
        products=products,
        by_name=products.on_matrix_unit & (loaded > 0) & (loaded < aligned),
        by_shape=is_narrow & (loaded == 0) & (sizes != ""),
        on_older_unit=_on_older(trace, products.rows),
        sizes=sizes,
    )


def _on_older(trace: Trace, rows: Ints) -> Mask:
    """Return a mask of the kernels made for an earlier generation than the device's."""
    older = trace.dialect.older_matrix_unit_kernel
    if older is None or (compute_major(trace) or 0) < CURRENT_MAJOR:
        return np.zeros(len(rows), dtype=bool)
    return np.asarray(name_mask(trace.device_events["name"], older.search)[rows])


def _alignment(trace: Trace, kernel: str) -> int:
    """Return the elements that a kernel loads at a time; 0 where its name does not show it."""
    pattern = trace.dialect.alignment
    match = pattern.search(kernel) if pattern is not None else None
    return int(match[1]) if match else 0


def _aligned_elements(trace: Trace, products: ProductKernels) -> Ints:
    """Return the elements of each product's type in an aligned load; 0 where unknown."""
    sizes = {**BYTES, TF32: BYTES["float32"]}
    whole = trace.dialect.aligned_bytes
    of_type = [whole // sizes[str(name)] for name in products.data_type.categories]
    return np.array([*of_type, 0], dtype=np.int64)[np.asarray(products.data_type.codes)]


def _strides(trace: Trace, calls: Ints) -> tuple[Ints, list[str]]:
    """Return the recorded strides of each call's inputs as indices into a list of texts (JSON).

    The last text, at index -1, is of calls without strides: "".
    """
    is_called = np.zeros(len(trace.host_calls) + 1, dtype=bool)
    is_called[calls] = True
    called = np.flatnonzero(is_called[:-1])
    written = trace.source.label("Input Strides", trace.host_calls["event"].to_numpy()[called])
    codes = np.append(np.asarray(written.codes), NONE).astype(np.int64)
    index = np.where(calls != NONE, (np.cumsum(is_called) - 1)[calls], NONE)
    return codes[index], [*map(str, written.categories), ""]


def _in_backward(trace: Trace, calls: Ints) -> Mask:
    parent = trace.host_calls["parent"].to_numpy()
    is_node = name_mask(trace.host_calls["name"], BACKWARD.search)
    return np.asarray(ancestry.nearest_of(parent, calls, is_node) != NONE)


def _sizes(trace: Trace, calls: Ints, aligned: Ints, strides: tuple[Ints, list[str]]) -> Objects:
    """Return the misaligned sizes of each call as text; distinct calls are parsed once."""
    (product, products), (stride, written) = distinct(trace, calls), strides
    frame = pd.DataFrame({"product": product, "stride": stride, "wanted": aligned})
    group, first = group_statistics.group_rows(frame, frame.columns)
    misfits = [
        _misfits(products[one], written[of_stride], many)
        for one, of_stride, many in frame.to_numpy()[first].tolist()
    ]
    return np.array([*misfits, ""], dtype=object)[group]


def _misfits(product: tuple[str, str], strides: str, aligned: int) -> str:
    """Return the sizes of a product that are no multiple of `aligned`: `K 2798 → 2800`."""
    name, dims = product
    shapes, steps = operands(name, dims), operands(name, strides)
    if shapes is None or not aligned or (strides and steps is None):
        return ""
    (m, k), (_, n) = shapes
    steps = steps or ((k, 1), (n, 1))
    if 1 in (m, k, n):
        return ""  # a product with a vector
    rows = (*_rows(("M", m), ("K", k), steps[0]), *_rows(("K", k), ("N", n), steps[1]), ("N", n))
    misfits = (
        f"{letter} {size} → {-(-size // aligned) * aligned}"
        for letter, size in rows
        if size % aligned
    )
    return ", ".join(dict.fromkeys(misfits))


Named = tuple[str, int]


def _rows(first: Named, second: Named, steps: tuple[int, int]) -> tuple[Named, ...]:
    """Return the length of an operand's rows in memory, and their distance."""
    if steps[1] == 1:
        inner, apart = second, steps[0]
    elif steps[0] == 1:
        inner, apart = first, steps[1]
    else:
        return ()  # rows are not in one piece: it is copied first
    return (inner,) if apart == inner[1] else (inner, (f"rows of {inner[0]} apart", apart))
