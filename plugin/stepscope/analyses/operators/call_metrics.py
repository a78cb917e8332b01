"""The figures of every call that counts as one, which tables of operators add up."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry
from stepscope.analyses.operators.call_memory import operator_memory
from stepscope.analyses.operators.call_spread import Ascending, ascending
from stepscope.analyses.operators.costs import operator_calls
from stepscope.analyses.operators.flops import counted_products, operator_work, with_work_inside
from stepscope.analyses.operators.matrix_unit_types import fitting
from stepscope.model.trace import Trace, computed

Rows = NDArray[np.int64]
SIDES = ("host", "device")


@dataclass(frozen=True, kw_only=True, eq=False)
class Figure:
    """A figure of the calls that have it."""

    place: Rows | slice
    """Which calls, as indices into `OperatorFigures.rows`; one may come more than once."""
    values: NDArray[np.int64] | NDArray[np.float64]
    is_complete: bool
    """Whether that of all other calls is 0; else it is not known."""

    def without(self, is_left_out: NDArray[np.bool_]) -> "Figure":
        """Return the figure of the other calls."""
        if not len(self.values):
            return self
        kept = ~is_left_out[self.place]
        place = np.flatnonzero(kept) if isinstance(self.place, slice) else self.place[kept]
        return replace(self, place=place, values=self.values[kept])


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorFigures:
    """Calls that count, and what they cost."""

    rows: Rows
    """The calls, as rows of `host_calls`."""
    is_call: NDArray[np.bool_]
    """Whether each is a call of its own, or has its total in another's."""
    spreads: Mapping[str, Ascending]
    """Totals of host and device in order, by the beginning of the table's columns."""
    times: Mapping[str, Figure]
    """Times in ns by the name of the table's column."""
    amounts: Mapping[str, Figure]
    """Bytes and operations by the name of the table's column."""
    data_type: Figure
    """Codes of `operator_work`'s types."""
    flops_source: Figure
    """Codes of `operator_work`'s sources."""
    fits_matrix_unit: Figure
    """See `matrix_unit_types.fitting`."""

    def without_totals(self, is_left_out: NDArray[np.bool_]) -> "OperatorFigures":
        """Return the figures without the calls and the totals of some: what is their own stays."""

        def totals(figures: Mapping[str, Figure]) -> Mapping[str, Figure]:
            return {
                name: figure.without(is_left_out) if "total" in name else figure
                for name, figure in figures.items()
            }

        spreads = {name: times.without(is_left_out) for name, times in self.spreads.items()}
        return replace(
            self,
            is_call=~is_left_out,
            spreads=spreads,
            times=totals(self.times),
            amounts=totals(self.amounts),
        )


@computed
def operator_figures(trace: Trace) -> OperatorFigures:
    """Return the figures of all calls that count as one."""
    costs = operator_calls(trace)
    rows = np.flatnonzero(costs.counted == np.arange(len(costs.counted)))
    total = np.full(len(costs.counted), -1, dtype=np.int64)
    total[rows] = np.arange(len(rows))
    duration_ns = trace.host_calls["duration_ns"].to_numpy()[rows]
    work = operator_work(trace)
    types, sources = (np.asarray(texts.codes) for texts in (work.data_type, work.source))
    return OperatorFigures(
        rows=rows,
        is_call=np.ones(len(rows), dtype=bool),
        spreads={
            "host": ascending(duration_ns),
            "device": ascending(costs.device_total_ns[rows]),
        },
        times={
            "host_self_ns": _of_all(costs.host_self_ns[rows]),
            "host_total_ns": _of_all(duration_ns),
            "device_self_ns": _where(costs.device_self_ns, total),
            "device_total_ns": _where(costs.device_total_ns, total),
            "matrix_unit_self_ns": _where(costs.matrix_unit_self_ns, total),
            "matrix_unit_total_ns": _where(costs.matrix_unit_total_ns, total),
            "untold_unit_self_ns": _where(costs.untold_unit_self_ns, total),
            "untold_unit_total_ns": _where(costs.untold_unit_total_ns, total),
        },
        amounts=_memory(trace, total[costs.counted], total) | _operations(trace, total),
        data_type=_known(types, types >= 0, total),
        flops_source=_known(sources, sources >= 0, total),
        fits_matrix_unit=_fitting(trace, total),
    )


def _fitting(trace: Trace, place: Rows) -> Figure:
    fits = fitting(trace)
    return _known(fits, ~np.isnan(fits), place)


def _of_all(values: NDArray[np.int64]) -> Figure:
    return Figure(place=slice(None), values=values, is_complete=True)


def _where(values: NDArray[np.int64], place: Rows) -> Figure:
    """Return the values of calls at the calls in whose place they count."""
    return _at(values, np.flatnonzero(values), place, is_complete=True)


def _known(values: NDArray[Any], is_known: NDArray[np.bool_], place: Rows) -> Figure:
    return _at(values, np.flatnonzero(is_known), place, is_complete=False)


def _at(values: NDArray[Any], calls: Rows, place: Rows, *, is_complete: bool) -> Figure:
    at = place[calls]
    counts = at >= 0
    if not counts.all():
        calls, at = calls[counts], at[counts]
    return Figure(place=at, values=values[calls], is_complete=is_complete)


def _memory(trace: Trace, own: Rows, total: Rows) -> dict[str, Figure]:
    memory = operator_memory(trace)
    if memory is None:
        nothing = Figure(place=own[:0], values=np.zeros(0), is_complete=False)
        sides = [(f"{side}_{part}_bytes", nothing) for side in SIDES for part in ("self", "total")]
        return dict(sides)
    return {
        "host_self_bytes": _where(memory.host_self_bytes, own),
        "host_total_bytes": _where(memory.host_total_bytes, total),
        "device_self_bytes": _where(memory.device_self_bytes, own),
        "device_total_bytes": _where(memory.device_total_bytes, total),
    }


def _operations(trace: Trace, place: Rows) -> dict[str, Figure]:
    """Return the operations of calls, own and with calls within.

    A call that is counted as the one around it does that one's work, not the same again. Of a
    product inside a product the total has the inner one's work alone.
    """
    flops = operator_work(trace).flops
    known = np.flatnonzero(~np.isnan(flops))
    known = known[place[known] >= 0]
    own, is_known = np.zeros(len(flops)), np.zeros(len(flops), dtype=np.int64)
    own[known], is_known[known] = flops[known], 1
    own[with_work_inside(trace, counted_products(trace) & (place >= 0))] = 0
    parent = trace.host_calls["parent"].to_numpy()
    (total,) = ancestry.with_descendants(parent, own)
    (count,) = ancestry.with_descendants(parent, is_known)
    return {
        "flops": _at(flops, known, place, is_complete=False),
        "total_flops": _known(total, count > 0, place),
    }
