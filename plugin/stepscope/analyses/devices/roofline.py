"""Roofline: operators compared with the device's peaks of arithmetic and memory.

The roofline (Williams, Waterman and Patterson, "Roofline: an insightful visual performance model
for multicore architectures", Communications of the ACM 52(4), 2009): work of so many operations a
byte can be no faster than the lower of two roofs, the device's arithmetic and its memory.
Operations and the least traffic are computed from shapes (`operators/operator_traffic.py`), the
time is that of the kernels that the operator launched, the roofs are the maker's
(`core/device_specs.py`). TraceLens calls the time at the roof over the time `Pct Roofline`.

A kernel belongs to the nearest operator around its launch with a formula. Where products are inside
each other, as under autocast, which calls `aten::conv2d` again with what it rounded, the innermost
did the work: the kernels of those around it only prepare.

Replays of a graph do the work of the calls in its capture, or of the eager pass that matches it.

Matrix products, convolutions and attention have both roofs. Other operators have the memory's
alone: a data sheet's peaks are those of matrix units, and a few operations a byte are below the
ridge of each listed device.

All kernels have a row. Where shapes, types or a formula are missing, work is unknown, and the note
says why; `covered_share` is the fraction of the kernels' time for which it is known. Copies and
memory sets that are no kernels are in the tables of copies.

A share above 1 means that something assumed is wrong: a causal mask halves attention's work, caches
hold what the memory need not deliver, a device clocks above its data sheet. Such shares are
withheld, with a note, and with them what bounds the operator; the rates remain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import device_specs, requirements
from stepscope.analyses.core import group_statistics as statistics
from stepscope.analyses.core.links import links
from stepscope.analyses.core.memory_peak import device_properties
from stepscope.analyses.operators.flops import operator_work
from stepscope.analyses.operators.matrix_units import are_classified, are_used
from stepscope.analyses.operators.operator_categories import UNOWNED, category_of
from stepscope.analyses.operators.operator_traffic import (
    modelled_calls,
    notes,
    operator_traffic,
)
from stepscope.analyses.operators.replayed_operators import owners_with_replays
from stepscope.dialects import Kind
from stepscope.model.arrays import NONE, Floats, Ints, Mask, Objects
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
ABOVE_MEMORY_OF_PARTS = (
    "Above the memory's bandwidth: caches delivered part of it, or the kernel read less than its"
    " arguments."
)
NO_LAUNCH = "Its launch is not recorded: most often it came before the recording began."
NO_OPERATOR = "No operator is recorded around the launch, as in a replayed graph."
PREPARES = "It prepares the product inside it, which has the operations and bytes."
COLLECTIVE = "A collective: its data come from other devices (see `collectives`)."
NO_PEAK = "The data sheet has no peak for {type}."
NO_TYPE = "Types were not recorded, or not of this operator."
FLOAT32_NOT_TOLD = "The kernels' names do not tell whether float32 was multiplied as tf32."
SCHEMA: Schema = (
    Column("name", "object", "text", "The operator; None: none is recorded."),
    Column("category", "object", "text", "Its kind, as in `operators-by-category`."),
    Column("input_dims", "object", "text", "Shapes of its inputs (JSON)."),
    Column("kernel_ns", "int64", "ns", "Sum of its kernels' durations."),
    Column("kernel_share", "float64", "share", "Of the time of all kernels on the device."),
    Column("roofline_share", "float64", "share", "Of the lower roof at this intensity, of the"
           " memory's alone for operators that are no products; NaN: see note."),
    Column("bound", "object", "text", "The lower roof: `compute` or `memory`; None: see note."),
    Column("note", "object", "text", "Why work is unknown or shares are withheld; None: neither."),
    Column("memory_share", "float64", "share", "Of the memory's bandwidth; NaN: see note."),
    Column("compute_share", "float64", "share", "Of the device's peak in this type; NaN: see"
           " note, and for operators that are no products."),
    Column("data_type", "object", "text", "Type of the arithmetic; `tf32` by the kernels' names."),
    Column("call_count", "int64", "count", "Calls whose kernels are known; of a captured call, its"
           " replays."),
    Column("covered_share", "float64", "share", "Of the time of all kernels on the device, that"
           " of operators whose operations or bytes are known: the same in all its rows."),
    Column("moved_bytes", "float64", "bytes", "Inputs and outputs, each once, of all calls: an"
           " expanded input as it is stored, what is updated in place twice. NaN: see note."),
    Column("bytes_per_second", "float64", "bytes/s", "The least traffic over kernel time."),
    Column("peak_bytes_per_second", "float64", "bytes/s", "The memory's bandwidth of which"
           " `memory_share` is; NaN: unknown."),
    Column("memory_peak_source", "object", "text", "`measured`: the rate of large copies, if no"
           " operator is faster; `data sheet`: the maker's; None: unknown."),
    Column("flop_count", "float64", "count", "Operations by shapes, of all calls; NaN: unknown,"
           " see note."),
    Column("causal_flop_count", "float64", "count", "The same, and half of it for attention whose"
           " `Concrete Inputs` say that it is causal."),
    Column("flops_per_second", "float64", "1/s", "Operations over kernel time."),
    Column("flops_per_byte", "float64", "", "Arithmetic intensity: operations a byte moved."),
    Column("peak_flops_per_second", "float64", "1/s", "The peak of which `compute_share` is; NaN:"
           " unknown."),
    Column("peak_source", "object", "text", "`measured`: the best rate of a sweep of shapes; `data"
           " sheet`: the maker's; None: unknown."),
    Column("sheet_flops_per_second", "float64", "1/s", "The data sheet's peak in this type."),
    Column("device", "int64", "id", "The device that it ran on."),
    Column("device_name", "object", "text", "The device in `deviceProperties`; None: not told."),
    Column("source", "object", "text", "The maker's data sheet with the roofs; None: unknown."),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class _Calls:
    """Calls that launched kernels, by device; all arrays are parallel."""

    rows: Ints
    """Rows of `host_calls`; -1: kernels of no operator. A captured call occurs once per replay."""
    kernel_ns: Ints
    device: Ints
    is_modelled: Mask
    is_product: Mask
    data_type: pd.Categorical
    note: Objects
    """Why operations or bytes are unknown."""


@public_table(
    "roofline",
    SCHEMA,
    "One row per operator and the shapes of its inputs: how fast its kernels were, of what the"
    " device can do at its type, and what bounds it; or why that is unknown.",
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
    work = operator_traffic(trace)
    per_call = pd.DataFrame(
        {
            "name": _text_of_calls(trace, "name", calls.rows),
            "input_dims": _text_of_calls(trace, "input_dims", calls.rows),
            "data_type": calls.data_type,
            "device": calls.device,
            "is_product": calls.is_product,
            "reason": pd.Categorical(calls.note),
        }
    )
    group, first = statistics.group_rows(per_call, per_call.columns)
    count = len(first)
    columns: dict[str, NDArray[Any]] = {
        key: plain_values(per_call[key].iloc[first]) for key in per_call.columns
    }

    def total(values: Floats) -> Floats:
        of_calls = np.where(calls.is_modelled, np.append(values, np.nan)[calls.rows], np.nan)
        return np.bincount(group, weights=of_calls, minlength=count).astype(np.float64)

    columns |= {
        "category": np.array([_category(name) for name in columns["name"]], dtype=object),
        "call_count": np.bincount(group[calls.rows != NONE], minlength=count),
        "kernel_ns": statistics.sums(calls.kernel_ns, group, count),
        "flop_count": total(work.flops),
        "causal_flop_count": total(np.where(_are_causal(trace), work.flops / 2, work.flops)),
        "moved_bytes": total(work.moved_bytes),
    }
    columns |= _rates(columns) | _device_columns(trace, columns["device"])
    columns |= _covered(columns)
    columns |= _shares(trace, columns)
    types = columns["data_type"]
    columns["data_type"] = np.where(types == NOT_TOLD, "float32", types)
    return to_frame(SCHEMA, columns, "-kernel_ns", "name", "input_dims")


def _text_of_calls(trace: Trace, column: str, rows: Ints) -> pd.Categorical:
    """Return a text of calls; missing for -1."""
    texts = trace.host_calls[column].cat
    codes = np.append(texts.codes.to_numpy(), NONE)[rows]
    return pd.Categorical.from_codes(codes, categories=texts.categories)


def _category(name: str | None) -> str:
    return UNOWNED if name is None else category_of(name)


def _are_causal(trace: Trace) -> Mask:
    """Return a mask of the calls of attention whose recorded values say that it is causal."""
    work = operator_work(trace)
    return np.asarray(work.causal_flops < work.flops)


def has_work(rows: pd.DataFrame | Mapping[str, NDArray[Any]]) -> Mask:
    """Return a mask of the rows of the roofline whose operations or bytes are known."""
    flops, moved = (np.asarray(rows[column]) for column in ("flop_count", "moved_bytes"))
    return np.asarray(~(np.isnan(flops) & np.isnan(moved)))


def _covered(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return each row's fraction of its device's kernel time, and the fraction of known work."""
    device, spent = pd.factorize(columns["device"])[0], columns["kernel_ns"]
    count = int(device.max(initial=-1)) + 1
    whole = statistics.sums(spent, device, count)
    covered = statistics.ratio(statistics.sums(spent * has_work(columns), device, count), whole)
    return {
        "kernel_share": statistics.ratio(spent, whole[device]),
        "covered_share": covered[device],
    }


def _calls(trace: Trace) -> _Calls:
    """Return the calls that launched kernels, those of known work with all of their kernels."""
    events = trace.device_events
    kernels = np.flatnonzero(events["kind"].to_numpy() == int(Kind.KERNEL))
    is_collective = events["is_collective"].to_numpy()[kernels]
    call = np.where(is_collective, NONE, modelled_calls(trace)[kernels])
    is_modelled = call != NONE
    owners = owners_with_replays(trace)
    call = np.where(is_modelled, call, owners.call[kernels])
    duration = events["duration_ns"].to_numpy()[kernels]
    device = events["device"].to_numpy()[kernels].astype(np.int64)
    key = pd.DataFrame({"call": call, "is_modelled": is_modelled, "is_collective": is_collective})
    key["has_launch"] = links(trace).call_of_device_event[kernels] != NONE
    key["replay"] = owners.replay[kernels]
    key["device"] = device
    key.loc[is_modelled, ["has_launch", "device"]] = True, 0  # all are of the first's device
    group, first = statistics.group_rows(key, key.columns)
    count = len(first)
    kernel_ns = statistics.sums(duration, group, count)
    rows, modelled = call[first], is_modelled[first]
    on_matrix_unit = statistics.sums(duration * are_used(trace)[kernels], group, count)
    typed = statistics.sums(duration * are_classified(trace)[kernels], group, count)
    # float32 is multiplied in one of two ways: that of most of the time
    as_what = np.where(
        2 * on_matrix_unit >= kernel_ns, 1, np.where(2 * typed >= kernel_ns, 0, NONE)
    )
    is_product = modelled & np.append(operator_traffic(trace).is_product, False)[rows]
    note = np.full(count, NO_OPERATOR, dtype=object)
    note[rows != NONE] = notes(trace, rows[rows != NONE])
    note[~modelled & pd.isna(note)] = PREPARES
    note[(rows == NONE) & ~key["has_launch"].to_numpy()[first]] = NO_LAUNCH
    note[is_collective[first]] = COLLECTIVE
    timed = kernel_ns > 0
    return _Calls(
        rows=rows[timed],
        kernel_ns=kernel_ns[timed],
        device=device[first][timed],
        is_modelled=modelled[timed],
        is_product=is_product[timed],
        data_type=_types(trace, rows[timed], np.where(is_product, as_what, 0)[timed]),
        note=note[timed],
    )


def _types(trace: Trace, rows: Ints, on_matrix_unit: Ints) -> pd.Categorical:
    """Return the type of each call's arithmetic; `NOT_TOLD` where float32 may have been tf32."""
    recorded = operator_traffic(trace).data_type
    codes = np.append(np.asarray(recorded.codes), NONE)[rows].astype(np.int64)
    written = pd.Categorical.from_codes(codes, categories=recorded.categories)
    rounded = trace.dialect.float32_on_matrix_unit
    names = [*written.categories, rounded, NOT_TOLD]
    if rounded == "float32" or "float32" not in written.categories:
        return written
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
    bandwidth, memory_kinds = _memory_peaks(columns, roofs)
    sheet = np.array([roof.sheet_flops_per_second for roof in roofs], dtype=np.float64)
    rates = pd.Series(columns["flops_per_second"])
    rates[~columns["is_product"].astype(bool)] = np.nan
    of_pair = rates.groupby([columns["device"], columns["data_type"]], dropna=False)
    fastest = of_pair.transform("max").to_numpy()
    is_measured = (peak != sheet) & (fastest <= peak)
    peak = np.where(is_measured, peak, sheet)
    kinds = np.where(is_measured, MEASURED, SHEET).astype(object)
    kinds[np.isnan(peak)] = None
    is_product = columns["is_product"].astype(bool)
    peak, sheet = (np.where(is_product, rate, np.nan) for rate in (peak, sheet))
    kinds[~is_product] = None
    compute = columns["flops_per_second"] / peak
    memory = columns["bytes_per_second"] / bandwidth
    # NaN where one of two is; of memory alone where the operator is no product
    roofline_share = np.where(is_product, np.maximum(compute, memory), memory)
    is_compiled = columns["category"] == "compiled"
    roof_notes = [
        (roof.note if multiplies else roof.memory_note) if works else None
        for roof, multiplies, works in zip(roofs, is_product, has_work(columns), strict=True)
    ]
    reasons = zip(
        columns["reason"],
        roof_notes,
        np.where(compute > 1, ABOVE_COMPUTE, ""),
        np.where(memory > 1, np.where(is_compiled, ABOVE_MEMORY_OF_PARTS, ABOVE_MEMORY), ""),
        strict=True,
    )
    notes_of_rows = [" ".join(filter(None, reason)) or None for reason in reasons]
    bound = np.where(compute >= memory, "compute", "memory").astype(object)
    bound[~(roofline_share <= 1)] = None
    return {
        "compute_share": np.where(compute <= 1, compute, np.nan),
        "peak_flops_per_second": peak,
        "peak_source": kinds,
        "sheet_flops_per_second": sheet,
        "memory_share": np.where(memory <= 1, memory, np.nan),
        "peak_bytes_per_second": bandwidth,
        "memory_peak_source": memory_kinds,
        "roofline_share": np.where(roofline_share <= 1, roofline_share, np.nan),
        "bound": bound,
        "note": np.array(notes_of_rows, dtype=object),
    }


def _memory_peaks(
    columns: Mapping[str, NDArray[Any]], roofs: "Sequence[_Roofs]"
) -> tuple[Floats, Objects]:
    """Return the bandwidth of each row's device, and its source.

    The measured rate applies where no operator is faster, unless above the data sheet's: caches
    delivered that.
    """
    sheet = np.array([roof.bytes_per_second for roof in roofs], dtype=np.float64)
    measured = np.array([roof.measured_bytes_per_second for roof in roofs], dtype=np.float64)
    rates = columns["bytes_per_second"]
    of_memory = pd.Series(np.where(rates <= sheet, rates, np.nan))
    fastest = of_memory.groupby(columns["device"]).transform("max").to_numpy()
    is_measured = ~np.isnan(measured) & ~(fastest > measured)
    peak = np.where(is_measured, measured, sheet)
    kinds = np.where(is_measured, MEASURED, SHEET).astype(object)
    kinds[np.isnan(peak)] = None
    return peak, kinds


@dataclass(frozen=True, kw_only=True)
class _Roofs:
    flops_per_second: float
    """The best measured rate, else the data sheet's."""
    sheet_flops_per_second: float
    bytes_per_second: float
    """The data sheet's."""
    measured_bytes_per_second: float
    note: str | None
    """Why a roof is unknown."""
    memory_note: str | None
    """Why the memory's is unknown."""


def _roofs(trace: Trace, device: int, data_type: str | None) -> _Roofs:
    """Return the peaks of a device for a type; NaN, with the reason, where unknown."""
    match = device_specs.find_spec(_properties(trace, device))
    unknown = float("nan")
    if match.spec is None:
        return _Roofs(
            flops_per_second=unknown,
            sheet_flops_per_second=unknown,
            bytes_per_second=unknown,
            measured_bytes_per_second=unknown,
            note=match.reason,
            memory_note=match.reason,
        )
    peak = match.spec.peak(data_type) if data_type else None
    measured = match.spec.measured_peak(data_type) if data_type else None
    note = NO_PEAK.format(type=data_type)
    note = {None: NO_TYPE, NOT_TOLD: FLOAT32_NOT_TOLD}.get(data_type, note)
    return _Roofs(
        flops_per_second=measured.flops_per_second if measured else peak or unknown,
        sheet_flops_per_second=peak or unknown,
        bytes_per_second=match.spec.bytes_per_second,
        measured_bytes_per_second=match.spec.measured_bytes_per_second or unknown,
        note=None if peak else note,
        memory_note=None,
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
    call = modelled_calls(trace)
    is_kernel = trace.device_events["kind"].to_numpy() == int(Kind.KERNEL)
    return np.asarray(np.append(np.isin(keys, selected), False)[call] & is_kernel)
