"""Arithmetic of each operator.

Computed from the shapes of the inputs (`record_shapes=True`) by the formulas of `work_formulas`.
Work counts once: the seven operators of `with_flops` always count, as in `key_averages()`; of
others that call each other (`aten::matmul` → `aten::bmm`) the innermost counts, and nothing inside
an `aten::conv2d` that counts.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry
from stepscope.analyses.operators.work_formulas import FORMULAS, WITH_FLOPS, Formula
from stepscope.analyses.operators.work_inputs import Inputs, UnknownWorkError
from stepscope.model.arrays import NONE, Floats, Ints, Mask
from stepscope.model.frames.data_types import BYTES, data_type
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

Combination = tuple[Formula, Inputs]
COMBINED = ("name", "input_dims", "input_types", "concrete_inputs")


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorWork:
    """Work of every operator; all arrays are parallel to `host_calls`."""

    flops: Floats
    """Floating-point operations of the call itself; NaN where unknown or counted for another call.
    """
    causal_flops: Floats
    """The same, and half of it for attention whose recorded values say that it is causal: of each
    pair of positions one side is masked, as FlashAttention's authors count."""
    data_type: pd.Categorical
    """Type of the operand, by torch's name (`bfloat16`); missing where types are not recorded."""
    source: pd.Categorical
    """Source of the formula; missing where there is none."""


@computed
def operator_work(trace: Trace) -> OperatorWork:
    """Return the arithmetic of every operator."""
    calls = trace.host_calls
    count = len(calls)
    flops, causal = (np.full(count, np.nan) for _ in range(2))
    rows = np.flatnonzero(
        name_mask(calls["name"], FORMULAS.__contains__) & calls["is_operator"].to_numpy()
    )
    alike, combinations = _combinations(calls, rows)
    figures = [_figures(*combination) for combination in combinations]
    of_rows = np.array(figures, dtype=np.float64).reshape(-1, 2)[alike]
    is_counted = _are_counted(calls, rows[~np.isnan(of_rows[:, 0])])
    flops[rows], causal[rows] = of_rows.T
    flops[~is_counted] = causal[~is_counted] = np.nan
    return OperatorWork(
        flops=flops,
        causal_flops=causal,
        data_type=_data_types(calls, rows, alike, combinations),
        source=_sources(calls, is_counted),
    )


def nearest_with_work(trace: Trace, rows: Ints) -> Ints:
    """Return, for rows of `host_calls` or -1, the nearest enclosing call of known work, or -1.

    The call itself counts: a kernel that `aten::cudnn_convolution` launched does the work of the
    `aten::conv2d` around it.
    """
    parent = trace.host_calls["parent"].to_numpy()
    return ancestry.nearest_of(parent, rows, ~np.isnan(operator_work(trace).flops))


def counted_products(trace: Trace) -> Mask:
    """Return a mask of the `host_calls` that are matrix products whose work counts."""
    is_product = name_mask(trace.host_calls["name"], lambda name: _formula_is(name, product=True))
    return np.asarray(is_product & ~np.isnan(operator_work(trace).flops))


def with_work_inside(trace: Trace, is_product: Mask) -> Ints:
    """Return those of some products whose work another one inside them did.

    Under autocast `aten::conv2d` calls itself again with cast inputs; `with_flops` counts both.
    """
    parent = trace.host_calls["parent"].to_numpy()
    around = ancestry.nearest_of(parent, parent[np.flatnonzero(is_product)], is_product)
    return np.unique(around[around != NONE])


def _combinations(calls: pd.DataFrame, rows: Ints) -> tuple[Ints, list[Combination]]:
    """Return each row's index into the distinct combinations of formula and inputs, and those."""
    name, *given = (calls[column] for column in COMBINED)
    key = name.cat.codes.to_numpy()[rows].astype(np.int64)
    for column in given:
        codes = column.cat.codes.to_numpy()[rows].astype(np.int64)
        key, _ = pd.factorize(key * (len(column.cat.categories) + 1) + codes + 1)
    alike, _ = pd.factorize(key)
    distinct = rows[np.unique(alike, return_index=True)[1]]
    formulas, *inputs = (
        _texts(column)[column.cat.codes.to_numpy()[distinct]].tolist() for column in (name, *given)
    )
    return alike, [
        (FORMULAS[formula], Inputs(decoded(dims), decoded(types), decoded(values)))
        for formula, dims, types, values in zip(formulas, *inputs, strict=True)
    ]


def _texts(column: pd.Series) -> NDArray[Any]:
    """Return a column's texts by code; code -1 is empty."""
    return np.array([*column.cat.categories, ""], dtype=object)


def decoded(text: str) -> list[Any]:
    """Return a recorded JSON list; empty where it is none."""
    try:
        decoded = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return []
    return decoded if isinstance(decoded, list) else []


def _figures(formula: Formula, inputs: Inputs) -> tuple[float, float]:
    """Return operations of these inputs, and those under a causal mask; NaN: unknown."""
    flops = float("nan")
    with suppress(UnknownWorkError, OverflowError):
        count = formula.count(inputs).flops
        flops = float("nan") if count is None else float(count)
    return flops, flops / 2 if formula.is_causal(inputs) else flops


def _are_counted(calls: pd.DataFrame, rows: Ints) -> Mask:
    """Return a mask of the calls of known work whose work counts."""
    always = name_mask(calls["name"], lambda name: _formula_is(name, always=True))
    is_counted = np.zeros(len(calls), dtype=bool)
    is_counted[rows] = True
    if always[rows].all():
        return is_counted
    parent = calls["parent"].to_numpy()
    is_product = is_counted & name_mask(calls["name"], lambda name: _formula_is(name, product=True))
    others = rows[~always[rows]]
    around = ancestry.nearest_of(parent, parent[others], is_product & always)
    is_product_count = is_product.astype(np.int64)
    (products,) = ancestry.with_descendants(parent, is_product_count)
    has_inside = products[others] > is_product_count[others]
    is_counted[others[(around != NONE) | has_inside]] = False
    return is_counted


def _formula_is(name: str, *, always: bool = False, product: bool = False) -> bool:
    formula = FORMULAS.get(name)
    if formula is None:
        return False
    return (not always or formula.source == WITH_FLOPS) and (
        not product or not formula.is_elementwise
    )


def _data_types(
    calls: pd.DataFrame,
    rows: Ints,
    alike: Ints,
    combinations: list[Combination],
) -> pd.Categorical:
    """Return the type of each call's operand; without a formula, that of its first tensor."""
    written = calls["input_types"].cat
    code_of_type = {name: code for code, name in enumerate(BYTES)}
    first = [_first_type(decoded(str(text))) for text in written.categories]
    codes = np.array(
        [*(code_of_type.get(name or "", NONE) for name in first), NONE], dtype=np.int64
    )
    type_codes = codes[written.codes.to_numpy()]
    operands = [_operand_type(*combination) for combination in combinations]
    of_combination = np.array(
        [code_of_type.get(name or "", NONE) for name in operands], dtype=np.int64
    )
    type_codes[rows] = of_combination[alike]
    return pd.Categorical.from_codes(type_codes, categories=pd.Index(list(BYTES), dtype=object))


def _operand_type(formula: Formula, inputs: Inputs) -> str | None:
    """Return the type of an operator's arithmetic; of a number and a tensor, the tensor's."""
    if formula.is_elementwise:
        with suppress(UnknownWorkError):
            return formula.count(inputs).output_type
    return inputs.type_of(formula.operand)


def _first_type(types: list[Any]) -> str | None:
    names = (data_type(str(text)) for text in types)
    return next((name for name in names if name is not None), None)


def _sources(calls: pd.DataFrame, is_counted: Mask) -> pd.Categorical:
    names = calls["name"].cat
    sources = sorted({formula.source for formula in FORMULAS.values()})
    of_name = [
        sources.index(FORMULAS[str(name)].source) if name in FORMULAS else NONE
        for name in names.categories
    ]
    codes = np.array([*of_name, NONE], dtype=np.int64)[names.codes.to_numpy()]
    codes[~is_counted] = NONE
    return pd.Categorical.from_codes(codes, categories=pd.Index(sources, dtype=object))
