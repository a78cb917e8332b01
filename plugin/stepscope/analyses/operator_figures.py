"""The figures of every call that counts as one, which tables of operators add up."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses import ancestry
from stepscope.analyses.autograd_wrappers import counted_as
from stepscope.analyses.flops import operator_work
from stepscope.analyses.matrix_unit_types import fitting
from stepscope.analyses.operator_costs import gathered, operator_calls
from stepscope.analyses.operator_memory import operator_memory
from stepscope.trace import Trace, computed

SELF_TIMES = ("host_self_ns", "device_self_ns", "matrix_unit_self_ns")
TOTAL_TIMES = ("device_total_ns", "matrix_unit_total_ns")


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorFigures:
    """Calls that count, and arrays parallel to them."""

    rows: NDArray[np.int64]
    """The calls, as rows of `host_calls`."""
    times: Mapping[str, NDArray[np.int64]]
    """Times in ns by the name of the table's column."""
    amounts: Mapping[str, NDArray[np.float64]]
    """Bytes and operations by the name of the table's column; NaN where not known."""
    data_type: pd.Categorical
    fits_matrix_unit: NDArray[np.float64]
    """See `matrix_unit_types.fitting`."""


def operator_figures(trace: Trace, *, is_folded: bool = False) -> OperatorFigures:
    """Return the figures of calls; folded: a node of autograd and its wrapper are one call."""
    return _folded(trace) if is_folded else _plain(trace)


@computed
def _plain(trace: Trace) -> OperatorFigures:
    return _figures(trace, operator_calls(trace).counted)


@computed
def _folded(trace: Trace) -> OperatorFigures:
    return _figures(trace, counted_as(trace, operator_calls(trace).counted))


def _figures(trace: Trace, counted: NDArray[np.int64]) -> OperatorFigures:
    costs = operator_calls(trace)
    rows = np.flatnonzero(counted == np.arange(len(counted)))
    times = {name: gathered(getattr(costs, name), counted)[rows] for name in SELF_TIMES}
    times |= {name: getattr(costs, name)[rows] for name in TOTAL_TIMES}
    times["host_total_ns"] = trace.host_calls["duration_ns"].to_numpy()[rows]
    work = operator_work(trace)
    codes = np.asarray(work.data_type.codes)[rows]
    return OperatorFigures(
        rows=rows,
        times=times,
        amounts=_bytes(trace, rows, counted) | _operations(trace, rows, work.flops),
        data_type=pd.Categorical.from_codes(codes, categories=work.data_type.categories),
        fits_matrix_unit=fitting(trace)[rows],
    )


def _bytes(
    trace: Trace, rows: NDArray[np.int64], counted: NDArray[np.int64]
) -> dict[str, NDArray[np.float64]]:
    memory = operator_memory(trace)
    found: dict[str, NDArray[np.float64]] = {}
    for name in ("host", "device"):
        if memory is None:
            own = total = np.full(len(rows), np.nan)
        else:
            whole = getattr(memory, f"{name}_self_bytes")
            own = gathered(whole, counted)[rows].astype(np.float64)
            total = getattr(memory, f"{name}_total_bytes")[rows].astype(np.float64)
        found |= {f"{name}_self_bytes": own, f"{name}_total_bytes": total}
    return found


def _operations(
    trace: Trace, rows: NDArray[np.int64], flops: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Return the operations of calls; what is counted as another call is not counted again."""
    own = np.full(len(flops), np.nan)
    own[rows] = flops[rows]
    known = ~np.isnan(own)
    parent = trace.host_calls["parent"].to_numpy()
    add_up = partial(ancestry.with_descendants, parent)
    (total,) = add_up(np.where(known, own, 0))
    (count,) = add_up(known.astype(np.int64))
    return {"flops": own[rows], "total_flops": np.where(count > 0, total, np.nan)[rows]}
