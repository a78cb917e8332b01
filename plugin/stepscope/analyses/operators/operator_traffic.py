"""Least bytes that each operator reads and writes, its operations, or why they are unknown.

Products (`work_formulas`) and other operators (`traffic_formulas`) have one definition of bytes:
each input once, as far as its strides show that it is stored, and each output once; what an
operator updates in place counts twice. It bounds the memory's traffic from below, unless data stays
in a cache.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
import pandas as pd

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.links import links
from stepscope.analyses.operators.elementwise_traffic import list_types
from stepscope.analyses.operators.flops import (
    counted_products,
    decoded,
    with_work_inside,
)
from stepscope.analyses.operators.replayed_operators import owners_with_replays
from stepscope.analyses.operators.traffic_formulas import formula_of
from stepscope.analyses.operators.work_formulas import FORMULAS, PACKED, Formula
from stepscope.analyses.operators.work_inputs import (
    NO_SHAPES,
    NO_TYPES,
    UNFIT,
    Inputs,
    Traffic,
    UnknownWorkError,
)
from stepscope.dialects import Kind
from stepscope.model.arrays import NONE, Floats, Ints, Mask, Objects
from stepscope.model.frames.data_types import BYTES
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.table import plain_values
from stepscope.model.trace import Trace, computed

NO_MODEL = "No formula for this operator."
COMBINED = ("input_dims", "input_types", "concrete_inputs")


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorTraffic:
    """Work and traffic of every operator; all arrays are parallel to `host_calls`."""

    flops: Floats
    """Operations; NaN: unknown."""
    moved_bytes: Floats
    """Least traffic; NaN: unknown."""
    data_type: pd.Categorical
    """Type of the arithmetic, by torch's name."""
    note: Objects
    """Why operations or bytes are unknown; None: both are known."""
    is_product: Mask
    """Calls of operators with a formula of `work_formulas` that is not elementwise."""
    is_modelled: Mask
    """Calls of which operations or bytes are known, except products around another product."""


@computed
def operator_traffic(trace: Trace) -> OperatorTraffic:
    """Return the work and traffic of every operator."""
    calls = trace.host_calls
    is_operator = calls["is_operator"].to_numpy()
    is_product = is_operator & name_mask(calls["name"], _is_product)
    has_formula = is_operator & name_mask(calls["name"], _has_formula)
    rows = np.flatnonzero(has_formula)
    alike, works = _works(trace, rows)
    flops, moved = (np.full(len(calls), np.nan) for _ in range(2))
    note = np.full(len(calls), NO_MODEL, dtype=object)
    codes = np.full(len(calls), NONE, dtype=np.int64)
    code_of_type = {name: code for code, name in enumerate(BYTES)}
    if works:
        flops[rows] = np.array([_number(work.flops) for work in works])[alike]
        moved[rows] = np.array([_number(work.moved_bytes) for work in works])[alike]
        note[rows] = np.array([work.note for work in works], dtype=object)[alike]
        of_type = [code_of_type.get(work.data_type or "", NONE) for work in works]
        codes[rows] = np.array(of_type, dtype=np.int64)[alike]
    inner = _without_outer_products(trace, is_product, flops)
    return OperatorTraffic(
        flops=flops,
        moved_bytes=moved,
        data_type=pd.Categorical.from_codes(codes, categories=pd.Index(list(BYTES), dtype=object)),
        note=note,
        is_product=is_product,
        is_modelled=(~np.isnan(flops) | ~np.isnan(moved)) & inner,
    )


def modelled_calls(trace: Trace) -> Ints:
    """Return, for each row of `device_events`, the call whose work it does, or -1.

    That is the nearest call around the launch whose work or traffic is known. A product around
    another one, as under autocast, does none: kernels that it launches itself prepare. A replay of
    a graph does the work of the calls in its capture, or of the eager pass that matches it.
    """
    parent = trace.host_calls["parent"].to_numpy()
    work = operator_traffic(trace)
    stops = work.is_modelled | counted_products(trace)
    around = ancestry.nearest_of(parent, owners_with_replays(trace).call, stops)
    return np.where(np.append(work.is_modelled, False)[around], around, NONE)


def _is_product(name: str) -> bool:
    formula = FORMULAS.get(name)
    return formula is not None and not formula.is_elementwise


def _has_formula(name: str) -> bool:
    return _is_product(name) or formula_of(name) is not None


def _without_outer_products(trace: Trace, is_product: Mask, flops: Floats) -> Mask:
    """Return a mask of calls that are no product around another, or in one that counts alone."""
    counted = counted_products(trace)
    mask = ~is_product | counted | np.isnan(flops)
    mask[with_work_inside(trace, counted)] = False
    return mask


def _number(count: int | None) -> float:
    return float("nan") if count is None else float(count)


def _works(trace: Trace, rows: Ints) -> tuple[Ints, list[Traffic]]:
    """Return each row's index into the distinct works, and those."""
    calls = trace.host_calls
    names = calls["name"].cat
    columns = [calls[column].cat for column in COMBINED]
    strides = trace.source.label("Input Strides", calls["event"].to_numpy()[rows])
    kernels = _kernels_of_lists(trace, rows)
    parts = [column.codes.to_numpy()[rows].astype(np.int64) for column in columns]
    parts += [np.asarray(strides.codes).astype(np.int64), kernels]
    key = names.codes.to_numpy()[rows].astype(np.int64)
    for part in parts:
        key, _ = pd.factorize(key * (int(part.max(initial=0)) + 2) + part + 1)
    alike, _ = pd.factorize(key)
    first = np.unique(alike, return_index=True)[1]
    texts = [[*map(str, calls[column].cat.categories), ""] for column in COMBINED]
    texts.append([*map(str, strides.categories), ""])
    kernel_names = [*map(str, trace.device_events["name"].cat.categories), ""]
    works = []
    for at in first.tolist():
        name = str(names.categories[names.codes.iloc[rows[at]]])
        dims, types, values, steps = (
            decoded(text[part[at]]) for text, part in zip(texts, parts[:-1], strict=True)
        )
        listed = list_types(kernel_names[kernels[at]])
        works.append(work_of(name, Inputs(dims, types, values, steps, listed)))
    return alike, works


def _kernels_of_lists(trace: Trace, rows: Ints) -> Ints:
    """Return the code of the first kernel's name of each call of lists of tensors; -1: none."""
    calls, events = trace.host_calls, trace.device_events
    has_lists = name_mask(calls["input_types"], lambda text: "TensorList" in text)
    owner = links(trace).owner_of_device_event
    is_kernel = events["kind"].to_numpy() == int(Kind.KERNEL)
    launched = np.flatnonzero(is_kernel & np.append(has_lists, False)[owner])[::-1]
    codes = np.full(len(calls), NONE, dtype=np.int64)
    codes[owner[launched]] = events["name"].cat.codes.to_numpy()[launched]  # the first stays
    return np.asarray(codes[rows])


def work_of(name: str, inputs: Inputs) -> Traffic:
    """Return the work of an operator with these inputs, or the reason that it is unknown."""
    formula = None if _is_product(name) else formula_of(name)
    reason: str | None = None
    if not inputs.shapes:
        reason = NO_SHAPES
    elif not _has_formula(name):
        reason = NO_MODEL
    else:
        try:
            work = formula(inputs) if formula else _of_product(FORMULAS[name], inputs)
            float(max(work.flops or 0, work.moved_bytes or 0))
        except OverflowError:
            reason = UNFIT
        except UnknownWorkError as error:
            reason = str(error)
        else:
            return work
    return Traffic(flops=None, moved_bytes=None, data_type=None, note=reason)


def _of_product(formula: Formula, inputs: Inputs) -> Traffic:
    work = formula.count(inputs)
    moved, note = None, formula.bytes_unknown
    written = work.output_type or inputs.type_of(formula.operand)
    if note is None and written is None:
        note = NO_TYPES
    if note is None and written is not None:
        # an argument `out` is written, not read
        behind = len(inputs) if formula.argument_count is None else formula.argument_count
        read = [
            inputs.tensor(index)
            for index in range(min(behind, len(inputs)))
            if inputs.has(index) and index not in formula.results
        ]
        moved = sum(tensor.bytes for tensor in read)
        moved += sum(map(prod, work.outputs)) * BYTES[written]
    return Traffic(
        flops=work.flops,
        moved_bytes=moved,
        data_type=inputs.type_of(formula.operand),
        note=note or (PACKED if work.flops is None else None),
    )


def notes(trace: Trace, rows: Ints) -> Objects:
    """Return why the work of calls is unknown; calls without recorded shapes say so."""
    shapes = plain_values(trace.host_calls["input_dims"].iloc[rows])
    reasons = operator_traffic(trace).note[rows]
    return np.where(pd.isna(shapes), NO_SHAPES, reasons)
