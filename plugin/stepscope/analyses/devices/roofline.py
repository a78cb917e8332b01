"""Roofline: matrix products, convolutions and attention compared with the device's peaks.

The roofline (Williams, Waterman and Patterson, "Roofline: an insightful visual performance model
for multicore architectures", Communications of the ACM 52(4), 2009): work of so many operations a
byte can be no faster than the lower of two roofs, the device's arithmetic and its memory.
Operations and the least traffic are computed from shapes (`operators/flops.py`), the time is that
of the kernels that the operator launched, the roofs are the maker's (`core/device_specs.py`).
TraceLens calls the time at the roof over the time `Pct Roofline`.

Where products are inside each other, as under autocast, which calls `aten::conv2d` again with what
it rounded, the innermost did the work: the kernels of those around it only prepare.

A share above 1 means that something assumed is wrong: a causal mask halves attention's work, caches
hold what the memory need not deliver, a device clocks above its data sheet. Such shares are
withheld, with a note, and with them what bounds the operator.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import device_specs, requirements
from stepscope.analyses.core import group_statistics as statistics
from stepscope.analyses.core.links import links
from stepscope.analyses.core.memory_peak import device_properties
from stepscope.analyses.operators.flops import (
    counted_products,
    nearest_with_work,
    operator_work,
    with_work_inside,
)
from stepscope.analyses.operators.matrix_units import are_classified, are_used
from stepscope.dialects import Kind
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames import Column, Schema
from stepscope.model.table import plain_values, public_table, to_frame
from stepscope.model.trace import Trace, computed

NOT_TOLD = "not told"
MEASURED, SHEET = "measured", "data sheet"
ABOVE_COMPUTE = (
    "Above the data sheet's peak: it did less than its shapes say, as under a mask, accumulated in"
    " 16 bits, or the clock is above the sheet's."
)
ABOVE_MEMORY = "Above the memory's bandwidth: caches delivered part of it."
NO_PEAK = "The data sheet has no peak for {type}."
NO_TYPE = "Types were not recorded, or not of this operator."
FLOAT32_NOT_TOLD = "The kernels' names do not tell whether float32 was multiplied as tf32."
SCHEMA: Schema = (
    Column("name", "object", "text", "The operator: a matrix product, convolution or attention."),
    Column("input_dims", "object", "text", "Shapes of its inputs (JSON)."),
    Column("data_type", "object", "text", "Type of the arithmetic; `tf32` by the kernels' names."),
    Column("device", "int64", "id", "The device that it ran on."),
    Column("call_count", "int64", "count", "Calls whose kernels are known."),
    Column("kernel_ns", "int64", "ns", "Sum of its kernels' durations."),
    Column("flop_count", "float64", "count", "Operations by shapes (`flops`), of all calls."),
    Column("causal_flop_count", "float64", "count", "The same, and half of it for attention whose"
           " `Concrete Inputs` say that it is causal."),
    Column("moved_bytes", "float64", "bytes", "Inputs and outputs, each once, of all calls."),
    Column("flops_per_second", "float64", "1/s", "Operations over kernel time."),
    Column("bytes_per_second", "float64", "bytes/s", "The least traffic over kernel time."),
    Column("flops_per_byte", "float64", "", "Arithmetic intensity: operations a byte moved."),
    Column("compute_share", "float64", "share", "Of the device's peak in this type; NaN: see"
           " note."),
    Column("peak_flops_per_second", "float64", "1/s", "That peak; NaN: unknown."),
    Column("peak_source", "object", "text", "`measured`: the best rate of a sweep of shapes; `data"
           " sheet`: the maker's; None: unknown."),
    Column("sheet_flops_per_second", "float64", "1/s", "The data sheet's peak in this type."),
    Column("memory_share", "float64", "share", "Of the memory's bandwidth; NaN: see note."),
    Column("roofline_share", "float64", "share", "Of the lower roof at this intensity; NaN: note."),
    Column("bound", "object", "text", "The lower roof: `compute` or `memory`; None: see note."),
    Column("device_name", "object", "text", "The device in `deviceProperties`; None: not told."),
    Column("note", "object", "text", "Why shares are withheld; None: none is."),
    Column("source", "object", "text", "The maker's data sheet with the roofs; None: unknown."),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class _Calls:
    """Calls with a formula for their work and linked kernels; all arrays are parallel."""

    rows: Ints
    """Rows of `host_calls`."""
    kernel_ns: Ints
    device: Ints
    data_type: pd.Categorical


@public_table(
    "roofline",
    SCHEMA,
    "One row per matrix product, convolution or attention and the shapes of its inputs: how fast"
    " its kernels were, of what the device can do at its type, and what bounds it.",
)
@computed
def roofline(trace: Trace) -> pd.DataFrame:
    """Return one row an operator, shapes, type and device, most kernel time first.

    Raises:
        MissingDataError: nothing ran on a device, or shapes were not recorded.
    """
    requirements.main_device(trace)
    requirements.shapes(trace)
    calls = _calls(trace)
    work = operator_work(trace)
    host = trace.host_calls.iloc[calls.rows]
    per_kernel = pd.DataFrame(
        {
            "name": host["name"].array,
            "input_dims": host["input_dims"].array,
            "data_type": calls.data_type,
            "device": calls.device,
        }
    )
    group, first = statistics.group_rows(per_kernel, per_kernel.columns)
    count = len(first)
    columns: dict[str, NDArray[Any]] = {
        key: plain_values(per_kernel[key].iloc[first]) for key in per_kernel.columns
    }
    columns |= {
        "call_count": np.bincount(group, minlength=count),
        "kernel_ns": statistics.sums(calls.kernel_ns, group, count),
        "flop_count": np.bincount(group, weights=work.flops[calls.rows], minlength=count),
        "causal_flop_count": np.bincount(
            group, weights=work.causal_flops[calls.rows], minlength=count
        ),
        "moved_bytes": np.bincount(group, weights=work.moved_bytes[calls.rows], minlength=count),
    }
    columns |= _rates(columns) | _device_columns(trace, columns["device"])
    columns |= _shares(trace, columns)
    types = columns["data_type"]
    columns["data_type"] = np.where(types == NOT_TOLD, "float32", types)
    return to_frame(SCHEMA, columns, "-kernel_ns", "name", "input_dims")


def _calls(trace: Trace) -> _Calls:
    """Return the calls of products, with the time of the kernels that they launched."""
    events = trace.device_events
    is_kernel = events["kind"].to_numpy() == int(Kind.KERNEL)
    owner = np.where(is_kernel, links(trace).owner_of_device_event, NONE)
    call = nearest_with_work(trace, owner)
    launched = np.flatnonzero((call != NONE) & np.append(_are_products(trace), False)[call])
    call = call[launched]
    duration = events["duration_ns"].to_numpy()[launched]
    rows, group = np.unique(call, return_inverse=True)
    kernel_ns = statistics.sums(duration, group, len(rows))
    device = np.zeros(len(rows), dtype=np.int64)
    device[group[::-1]] = events["device"].to_numpy()[launched][::-1]  # the first kernel's stays
    on_matrix_unit = statistics.sums(duration * are_used(trace)[launched], group, len(rows))
    typed = statistics.sums(duration * are_classified(trace)[launched], group, len(rows))
    timed = kernel_ns > 0
    # float32 is multiplied in one of two ways: that of most of the time
    as_what = np.where(
        2 * on_matrix_unit >= kernel_ns, 1, np.where(2 * typed >= kernel_ns, 0, NONE)
    )
    return _Calls(
        rows=rows[timed],
        kernel_ns=kernel_ns[timed],
        device=device[timed],
        data_type=_types(trace, rows[timed], as_what[timed]),
    )


def _are_products(trace: Trace) -> Mask:
    """Return a mask of `host_calls`: innermost products with a formula for their work."""
    products = counted_products(trace)
    products[with_work_inside(trace, products)] = False
    return products


def _types(trace: Trace, rows: Ints, on_matrix_unit: Ints) -> pd.Categorical:
    """Return the type of each call's arithmetic; `NOT_TOLD` where float32 may have been tf32."""
    written = operator_work(trace).data_type[rows]
    rounded = trace.dialect.float32_on_matrix_unit
    names = [*written.categories, rounded, NOT_TOLD]
    if rounded == "float32" or "float32" not in written.categories:
        return written
    codes = np.asarray(written.codes).astype(np.int64)
    is_float32 = codes == written.categories.get_loc("float32")
    codes[is_float32 & (on_matrix_unit == 1)] = len(names) - 2
    codes[is_float32 & (on_matrix_unit == NONE)] = len(names) - 1
    return pd.Categorical.from_codes(codes, categories=pd.Index(names, dtype=object))


def _rates(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    seconds = columns["kernel_ns"] / 1e9
    flops, moved = columns["flop_count"], columns["moved_bytes"]
    intensity = np.full(len(flops), np.nan)
    np.divide(flops, moved, out=intensity, where=(moved > 0) & np.isfinite(moved))
    return {
        "flops_per_second": flops / seconds,
        "bytes_per_second": moved / seconds,
        "flops_per_byte": intensity,
    }


def _device_columns(trace: Trace, device: Ints) -> dict[str, NDArray[Any]]:
    properties = {number: _properties(trace, number) for number in set(device.tolist())}
    names = {number: str(entry.get("name") or "") or None for number, entry in properties.items()}
    specs = {number: device_specs.find_spec(entry).spec for number, entry in properties.items()}
    sources = {number: spec.source if spec else None for number, spec in specs.items()}
    return {
        "device_name": np.array([names[number] for number in device.tolist()], dtype=object),
        "source": np.array([sources[number] for number in device.tolist()], dtype=object),
    }


def _properties(trace: Trace, device: int) -> Mapping[str, Any]:
    """Return the properties of a device; of another number where all devices are alike.

    Kernels may have the machine's numbers, `deviceProperties` those that the process sees.
    """
    properties = device_properties(trace)
    if device in properties:
        return properties[device]
    models = {(str(entry.get("name")), entry.get("numSms")) for entry in properties.values()}
    return next(iter(properties.values())) if len(models) == 1 else {}


def _shares(trace: Trace, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    pairs = list(zip(columns["device"].tolist(), columns["data_type"], strict=True))
    by_pair = {pair: _roofs(trace, *pair) for pair in set(pairs)}
    roofs = [by_pair[pair] for pair in pairs]
    peak = np.array([roof.flops_per_second for roof in roofs], dtype=np.float64)
    bandwidth = np.array([roof.bytes_per_second for roof in roofs], dtype=np.float64)
    sheet = np.array([roof.sheet_flops_per_second for roof in roofs], dtype=np.float64)
    rates = pd.Series(columns["flops_per_second"])
    of_pair = rates.groupby([columns["device"], columns["data_type"]], dropna=False)
    fastest = of_pair.transform("max").to_numpy()
    is_measured = (peak != sheet) & (fastest <= peak)
    peak = np.where(is_measured, peak, sheet)
    kinds = np.where(is_measured, MEASURED, SHEET).astype(object)
    kinds[np.isnan(peak)] = None
    compute = columns["flops_per_second"] / peak
    memory = columns["bytes_per_second"] / bandwidth
    roofline_share = np.maximum(compute, memory)  # NaN where one of them is
    reasons = zip(
        (roof.note for roof in roofs),
        np.where(compute > 1, ABOVE_COMPUTE, ""),
        np.where(memory > 1, ABOVE_MEMORY, ""),
        strict=True,
    )
    notes = [" ".join(filter(None, reason)) or None for reason in reasons]
    bound = np.where(compute >= memory, "compute", "memory").astype(object)
    bound[~(roofline_share <= 1)] = None
    return {
        "compute_share": np.where(compute <= 1, compute, np.nan),
        "peak_flops_per_second": peak,
        "peak_source": kinds,
        "sheet_flops_per_second": sheet,
        "memory_share": np.where(memory <= 1, memory, np.nan),
        "roofline_share": np.where(roofline_share <= 1, roofline_share, np.nan),
        "bound": bound,
        "note": np.array(notes, dtype=object),
    }


@dataclass(frozen=True, kw_only=True)
class _Roofs:
    flops_per_second: float
    """The best measured rate, else the data sheet's."""
    sheet_flops_per_second: float
    bytes_per_second: float
    note: str | None


def _roofs(trace: Trace, device: int, data_type: str | None) -> _Roofs:
    """Return the peaks of a device for a type; NaN, with the reason, where unknown."""
    match = device_specs.find_spec(_properties(trace, device))
    unknown = float("nan")
    if match.spec is None:
        return _Roofs(
            flops_per_second=unknown,
            sheet_flops_per_second=unknown,
            bytes_per_second=unknown,
            note=match.reason,
        )
    peak = match.spec.peak(data_type) if data_type else None
    measured = match.spec.measured_peak(data_type) if data_type else None
    note = NO_PEAK.format(type=data_type)
    note = {None: NO_TYPE, NOT_TOLD: FLOAT32_NOT_TOLD}.get(data_type, note)
    return _Roofs(
        flops_per_second=measured.flops_per_second if measured else peak or unknown,
        sheet_flops_per_second=peak or unknown,
        bytes_per_second=match.spec.bytes_per_second,
        note=None if peak else note,
    )


def roofline_kernels(trace: Trace, groups: pd.DataFrame) -> Mask:
    """Return a mask of `device_events`: kernels of calls with these names and shapes.

    `groups` are rows of `roofline`; calls of one name and shapes but other types are theirs too.
    """
    names, dims = trace.host_calls["name"].cat, trace.host_calls["input_dims"].cat
    name_codes = {str(name): code for code, name in enumerate(names.categories)}
    dims_codes = {str(text): code for code, text in enumerate(dims.categories)}
    width = len(dims.categories) + 1
    pairs = set(zip(groups["name"], groups["input_dims"], strict=True))
    selected = [name_codes[name] * width + dims_codes[text] for name, text in pairs]
    keys = names.codes.to_numpy().astype(np.int64) * width + dims.codes.to_numpy()
    call = nearest_with_work(trace, links(trace).owner_of_device_event)
    is_kernel = trace.device_events["kind"].to_numpy() == int(Kind.KERNEL)
    return np.asarray(np.append(np.isin(keys, selected), False)[call] & is_kernel)
