"""Metrics of single operator calls, which the operator tables sum, and quantiles of their times.

Many calls launch no device work: times of 0 are not stored but count. Times are sorted once, and
then for each grouping by group alone, in one pass where groups fit 16 bits.

Memory is that of torch's `key_averages()`: an allocator event counts for every call whose time
includes it, on any thread (`torch/autograd/profiler_util.py`, `MemRecordsAcc.in_interval`).
`memory/owners.py` assigns each event to a single operator instead.

Half precision and below always fits; float32 where torch may round it (TF32), which only the
kernels show: `allow_tf32` is not in the file. Other types do not fit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.group_statistics import EVERY_ROW, sums_where
from stepscope.analyses.operators import matrix_units
from stepscope.analyses.operators.costs import operator_calls, owners_of_device_events
from stepscope.analyses.operators.flops import counted_products, operator_work, with_work_inside
from stepscope.analyses.operators.replayed_operators import replayed_operators
from stepscope.model.arrays import NONE, Floats, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

FITTING_TYPES = frozenset(
    {
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float4_e2m1fn_x2",
        "int8",
        "uint8",
    }
)


def fits_matrix_unit(trace: Trace) -> Floats:
    """Return 1 for calls whose operands matrix units used or could use, and 0 for others.

    NaN for operators that are not matrix operations, for types that were not recorded, and for
    float32 without a kernel that shows it.
    """
    is_eligible = name_mask(trace.host_calls["name"], matrix_units.is_eligible)
    types = operator_work(trace).data_type
    costs = operator_calls(trace)
    is_single = name_mask(types, "float32".__eq__)
    runs_on_device = costs.device_total_ns > 0
    is_classified = is_eligible & (types.codes >= 0)
    is_classified &= ~is_single | (runs_on_device & (trace.dialect.matrix_unit_kernel is not None))
    fits = name_mask(types, FITTING_TYPES.__contains__)
    fits |= is_single & (costs.matrix_unit_total_ns > 0)
    return np.where(is_classified, fits, np.nan)


SIDES = ("host", "device")
QUANTILES: Mapping[str, float] = MappingProxyType({"p50": 0.5, "p95": 0.95})
BITS = 63
"""Bits of an int64 without its sign."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SortedTimes:
    """Times of calls in ascending order; calls that are not listed took 0."""

    index: Ints
    values: Ints

    def without(self, is_left_out: Mask) -> "SortedTimes":
        """Return the times of the other calls."""
        mask = ~is_left_out[self.index]
        return SortedTimes(index=self.index[mask], values=self.values[mask])


def sorted_times(values: Ints) -> SortedTimes:
    """Return the times above 0 in ascending order; `values` has one time per call."""
    index = np.flatnonzero(values > 0)
    times = values if len(index) == len(values) else values[index]
    bits = len(times).bit_length()
    if len(times) and int(times.max()).bit_length() + bits > BITS:
        order = np.argsort(times, kind="stable")
        return SortedTimes(index=index[order], values=times[order])
    # a time and its place as one number are sorted faster than places by time
    key = times << bits
    key |= np.arange(len(times))
    key.sort()
    times = key >> bits
    key &= (1 << bits) - 1
    return SortedTimes(index=index[key], values=times)


def quantiles(times: SortedTimes, group: Ints, calls: Ints) -> dict[str, NDArray[Any]]:
    """Return each group's `QUANTILES`, by numpy's `linear` method, and its maximum as `max`.

    `group` has one entry per call, `calls` the number of calls per group: at least one.
    """
    small = group.astype(np.uint16) if len(calls) <= 2**16 else group
    of_times = small[times.index]
    size = np.bincount(of_times, minlength=len(calls))
    by_group = np.append(times.values[np.argsort(of_times, kind="stable")], 0)
    first, zeros = np.cumsum(size) - size, calls - size

    def at(index: Ints) -> Ints:
        return np.where(index < zeros, 0, by_group[first + np.maximum(index - zeros, 0)])

    columns: dict[str, NDArray[Any]] = {"max": at(calls - 1)}
    for name, share in QUANTILES.items():
        position = (calls - 1) * share
        below = np.floor(position).astype(np.int64)
        low, high = at(below), at(np.minimum(below + 1, calls - 1))
        columns[name] = low + (high - low) * (position - below)
    return columns


@dataclass(frozen=True, kw_only=True, eq=False)
class Metric:
    """Values of a metric for the calls that have it."""

    index: Ints | slice
    """Indices into `CallMetrics.rows`; a call may occur more than once."""
    values: Ints | Floats
    is_complete: bool
    """Whether the value of all other calls is 0; else it is unknown."""

    def without(self, is_left_out: Mask) -> "Metric":
        """Return the metric without some calls."""
        if not len(self.values):
            return self
        mask = ~is_left_out[self.index]
        index = np.flatnonzero(mask) if isinstance(self.index, slice) else self.index[mask]
        return replace(self, index=index, values=self.values[mask])


@dataclass(frozen=True, kw_only=True, eq=False)
class CallMetrics:
    """Counted calls and their cost."""

    rows: Ints
    """The calls, as rows of `host_calls`."""
    is_call: Mask
    """Whether the call counts itself; else its total is part of another's."""
    spreads: Mapping[str, SortedTimes]
    """Sorted host and device totals, by the prefix of the table's columns."""
    times: Mapping[str, Metric]
    """Times in ns by column name."""
    amounts: Mapping[str, Metric]
    """Bytes and operations by column name."""
    data_type: Metric
    """Codes of `operator_work`'s types."""
    flops_source: Metric
    """Codes of `operator_work`'s sources."""
    fits_matrix_unit: Metric
    """See `matrix_unit_types.fits_matrix_unit`."""

    def without_totals(self, is_left_out: Mask) -> "CallMetrics":
        """Return the metrics without some calls' counts and totals; their self values stay."""

        def totals(figures: Mapping[str, Metric]) -> Mapping[str, Metric]:
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
def call_metrics(trace: Trace) -> CallMetrics:
    """Return the metrics of all counted calls."""
    costs = operator_calls(trace)
    rows = np.flatnonzero(costs.counted == np.arange(len(costs.counted)))
    total = np.full(len(costs.counted), -1, dtype=np.int64)
    total[rows] = np.arange(len(rows))
    duration_ns = trace.host_calls["duration_ns"].to_numpy()[rows]
    of_replays = _replayed_ns(trace, costs.counted)
    work = operator_work(trace)
    types, sources = (np.asarray(texts.codes) for texts in (work.data_type, work.source))
    return CallMetrics(
        rows=rows,
        is_call=np.ones(len(rows), dtype=bool),
        spreads={
            "host": sorted_times(duration_ns),
            "device": sorted_times(costs.device_total_ns[rows]),
        },
        times={
            "host_self_ns": _of_all(costs.host_self_ns[rows]),
            "host_total_ns": _of_all(duration_ns),
            "device_self_ns": _where(costs.device_self_ns - of_replays[0], total),
            "device_total_ns": _where(costs.device_total_ns, total),
            "matrix_unit_self_ns": _where(costs.matrix_unit_self_ns - of_replays[1], total),
            "matrix_unit_total_ns": _where(costs.matrix_unit_total_ns, total),
            "unclassified_self_ns": _where(costs.unclassified_self_ns - of_replays[2], total),
            "unclassified_total_ns": _where(costs.unclassified_total_ns, total),
        },
        amounts=_memory(trace, total[costs.counted], total) | _operations(trace, total),
        data_type=_partial(types, types >= 0, total),
        flops_source=_partial(sources, sources >= 0, total),
        fits_matrix_unit=_fitting(trace, total),
    )


def _replayed_ns(trace: Trace, counted: Ints) -> tuple[Ints, ...]:
    """Return the device time at calls around replays that is of the replayed operators.

    In total, on matrix units, and of kernels whose use of matrix units is unknown.
    """
    owner = owners_of_device_events(trace)
    is_replayed = (replayed_operators(trace).call_of_device_event != NONE) & (owner != NONE)
    duration = trace.device_events["duration_ns"].to_numpy()
    call = np.where(is_replayed, np.append(counted, NONE)[owner], NONE)
    return tuple(
        sums_where(duration, call, len(counted), mask)
        for mask in (EVERY_ROW, matrix_units.are_used(trace), matrix_units.are_unclassified(trace))
    )


def _fitting(trace: Trace, index: Ints) -> Metric:
    fits = fits_matrix_unit(trace)
    return _partial(fits, ~np.isnan(fits), index)


def _of_all(values: Ints) -> Metric:
    return Metric(index=slice(None), values=values, is_complete=True)


def _where(values: Ints, index: Ints) -> Metric:
    """Return the values of calls, at the indices of the calls that they count for."""
    return _at(values, np.flatnonzero(values), index, is_complete=True)


def _partial(values: NDArray[Any], has_value: Mask, index: Ints) -> Metric:
    return _at(values, np.flatnonzero(has_value), index, is_complete=False)


def _at(values: NDArray[Any], calls: Ints, index: Ints, *, is_complete: bool) -> Metric:
    at = index[calls]
    counts = at >= 0
    if not counts.all():
        calls, at = calls[counts], at[counts]
    return Metric(index=at, values=values[calls], is_complete=is_complete)


def _memory(trace: Trace, self_index: Ints, total_index: Ints) -> dict[str, Metric]:
    memory = operator_memory(trace)
    if memory is None:
        nothing = Metric(index=self_index[:0], values=np.zeros(0), is_complete=False)
        sides = [(f"{side}_{part}_bytes", nothing) for side in SIDES for part in ("self", "total")]
        return dict(sides)
    return {
        "host_self_bytes": _where(memory.host_self_bytes, self_index),
        "host_total_bytes": _where(memory.host_total_bytes, total_index),
        "device_self_bytes": _where(memory.device_self_bytes, self_index),
        "device_total_bytes": _where(memory.device_total_bytes, total_index),
    }


def _operations(trace: Trace, index: Ints) -> dict[str, Metric]:
    """Return the operations of calls: self, and with nested calls.

    A call that is merged into its caller does the caller's work once. Of a product inside a product
    the total counts the inner one only.
    """
    flops = operator_work(trace).flops
    with_flops = np.flatnonzero(~np.isnan(flops))
    with_flops = with_flops[index[with_flops] >= 0]
    self_flops, has_flops = np.zeros(len(flops)), np.zeros(len(flops), dtype=np.int64)
    self_flops[with_flops], has_flops[with_flops] = flops[with_flops], 1
    self_flops[with_work_inside(trace, counted_products(trace) & (index >= 0))] = 0
    parent = trace.host_calls["parent"].to_numpy()
    (total,) = ancestry.with_descendants(parent, self_flops)
    (count,) = ancestry.with_descendants(parent, has_flops)
    return {
        "flops": _at(flops, with_flops, index, is_complete=False),
        "total_flops": _partial(total, count > 0, index),
    }


HOST_DEVICE_TYPES = (0, 2, 5)
"""CPU, MKLDNN and IDEEP of `c10::DeviceType`, as in `_cpu_memory_usage`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorMemory:
    """Bytes allocated minus bytes freed; all arrays are parallel to `host_calls`."""

    host_self_bytes: Ints
    """Without nested calls."""
    host_total_bytes: Ints
    device_self_bytes: Ints
    device_total_bytes: Ints


@computed
def operator_memory(trace: Trace) -> OperatorMemory | None:
    """Return the net allocation of every operator and annotation; None: memory was not recorded."""
    memory = trace.memory
    if not len(memory):
        return None
    amounts = memory["bytes"].to_numpy()
    is_host = np.isin(memory["device_type_code"].to_numpy(), HOST_DEVICE_TYPES)
    calls = trace.host_calls
    times = memory["start_ns"].to_numpy()
    first = np.searchsorted(times, calls["start_ns"].to_numpy(), side="left")
    behind = np.searchsorted(times, calls["end_ns"].to_numpy(), side="right")
    parent = calls["parent"].to_numpy()
    columns = {}
    for kind, is_side in (("host", is_host), ("device", ~is_host)):
        total = np.zeros(len(calls), dtype=np.int64)
        if is_side.any():
            before = np.append(0, np.cumsum(np.where(is_side, amounts, 0)))
            total = before[behind] - before[first]
        columns[f"{kind}_total_bytes"] = total
        columns[f"{kind}_self_bytes"] = _without_children(total, parent)
    return OperatorMemory(**columns)


def _without_children(total: Ints, parent: Ints) -> Ints:
    self_bytes = total.copy()
    children = np.flatnonzero((parent >= 0) & (total != 0))
    np.subtract.at(self_bytes, parent[children], total[children])
    return self_bytes
