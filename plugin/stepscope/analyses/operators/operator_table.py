"""Cost of each operator and annotation on the host and on the devices it launches work on.

Calls, host times and memory are those of torch's `key_averages()`
(`torch/autograd/profiler_util.py`), see `costs.py` and `call_metrics.py`; operations of the
operators that `with_flops` supports are torch's, see `flops.py`. As there, the total of a name is
the sum of its calls, so that a recursive operator counts inner time twice.

Operators whose kernels a graph replays have rows of the kind `replayed`: the device time of their
kernels in the replays, by the trace's recording of the capture or of an eager pass. The kernels of
other graphs have one row. The annotation around a replay has its time in the total, not in self.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.group_statistics import extremes, group_rows, quantile, ratio, sums
from stepscope.analyses.core.window import window
from stepscope.analyses.operators import grouping as operator_groups
from stepscope.analyses.operators import matrix_units
from stepscope.analyses.operators.call_metrics import CallMetrics, Metric, call_metrics, quantiles
from stepscope.analyses.operators.flops import operator_work
from stepscope.analyses.operators.grouping import (
    Labels,
    are_wrapped,
    modules,
    node_names,
    stack_tops,
    stacks,
)
from stepscope.analyses.operators.replayed_operators import replayed_operators
from stepscope.model.arrays import Floats, Ints, Mask, Objects
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

Grouping = Literal["name", "node", "shape", "stack", "full_stack", "module"]
REPLAYED = "replayed"
_IDENTITY: Schema = (
    Column("name", "object", "text", "The name; all steps are `ProfilerStep*`."),
    Column(
        "kind",
        "object",
        "text",
        "`operator`, `annotation`, or `replayed`: an operator whose kernels ran in"
        " replays of a graph, whose capture, or an eager pass, has the operator.",
    ),
)
_FIGURES: Schema = (
    Column("call_count", "int64", "count", "Calls; one whose only child has its name counts once"
           " with it (key_averages), here and in flame graphs."),
    Column("host_self_ns", "int64", "ns", "Host time without operators, annotations and runtime"
           " calls within; Python calls within stay in it (key_averages takes those off, too,"
           " where `with_stack` recorded them)."),
    Column("host_total_ns", "int64", "ns", "Host time with calls within, summed over calls."),
    Column("host_mean_ns", "float64", "ns", "Mean of a call's host total."),
    Column("host_p50_ns", "float64", "ns", "Median of a call's host total."),
    Column("host_p95_ns", "float64", "ns", "95th percentile of a call's host total."),
    Column("host_max_ns", "int64", "ns", "Longest call's host total."),
    Column("device_self_ns", "int64", "ns", "Kernels, copies and memory sets it launched itself."),
    Column("device_total_ns", "int64", "ns", "The same with what calls within it launched."),
    Column("device_mean_ns", "float64", "ns", "Mean of a call's device total."),
    Column("device_p50_ns", "float64", "ns", "Median of a call's device total."),
    Column("device_p95_ns", "float64", "ns", "95th percentile of a call's device total."),
    Column("device_max_ns", "int64", "ns", "Largest device total of a call."),
    Column("host_self_share", "float64", "share", "Host self time of the window (all steps, else"
           " all device work), so of the mean step; above 1 where threads run side by side, calls"
           " lie outside it, or totals are within each other."),
    Column("host_total_share", "float64", "share", "Host total time, likewise."),
    Column("device_self_share", "float64", "share", "Device self time, likewise."),
    Column("device_total_share", "float64", "share", "Device total time, likewise."),
    Column("host_self_bytes", "float64", "bytes", "Host memory allocated less given back in its"
           " time, on any thread, without calls within (key_averages); NaN: not recorded."),
    Column("host_total_bytes", "float64", "bytes", "The same with calls within."),
    Column("device_self_bytes", "float64", "bytes", "Device memory allocated less given back,"
           " likewise; NaN: not recorded."),
    Column("device_total_bytes", "float64", "bytes", "The same with calls within."),
    Column("flops", "float64", "count", "Operations of its own work, torch's `with_flops` and"
           " more (see `flops`); NaN: unknown."),
    Column("total_flops", "float64", "count", "The same with calls within, of a product inside a"
           " product (autocast's) once; NaN: none is known."),
    Column("flops_source", "object", "text", "Whose formula `flops` is: torch's `with_flops`, its"
           " `flop_counter`, our own; None: none."),
    Column("data_types", "object", "text", "Types of its operands (`Input type`); None: not"
           " recorded."),
    Column("is_matrix_unit_eligible", "bool", "", "Can run on tensor cores, in a fitting type."),
    Column("matrix_unit_type_share", "float64", "share", "Of its calls, those whose operands have"
           " a fitting type; float32 only if it ran as TF32."),
    Column("matrix_unit_self_share", "float64", "share", "Of device self time, at least; NaN: no"
           " kernel's name tells."),
    Column("matrix_unit_total_share", "float64", "share", "Of device total time, likewise."),
)  # fmt: skip
_LABELS: Mapping[Grouping, Schema] = MappingProxyType(
    {
        "name": (),
        "node": (),
        "shape": (
            Column("input_dims", "object", "text", "Input shapes (JSON), None where not recorded."),
        ),
        "stack": (
            Column(
                "stack",
                "object",
                "text",
                "The five innermost Python functions, `;` between; those of the forward operator"
                " where it is of the backward pass. None: not known.",
            ),
        ),
        "full_stack": (
            Column("stack", "object", "text", "All Python functions around it, innermost first."),
        ),
        "module": (
            Column(
                "module",
                "object",
                "text",
                "The innermost `nn.Module` whose call it ran in, or its forward operator did;"
                " None: in none.",
            ),
        ),
    }
)
SCHEMAS: Mapping[Grouping, Schema] = MappingProxyType(
    {by: (*_IDENTITY, *labels, *_FIGURES) for by, labels in _LABELS.items()}
)


@public_table(
    "operators",
    SCHEMAS["name"],
    "One row per operator or annotation: its calls, and what they cost host and devices.",
)
def operator_table(trace: Trace, by: Grouping = "name") -> pd.DataFrame:
    """Return one row per name, kind and label of the grouping, in `SCHEMAS[by]` columns.

    By `node`, the autograd engine's call around a node is one call with it, under the node's name.
    Rows are ordered by device self time, then by host self time, largest first.


    Raises:
        MissingDataError: stacks or modules are asked for and were not recorded.
    """
    return _BUILDERS[by](trace)


@computed
def _by_name(trace: Trace) -> pd.DataFrame:
    return _table(trace, "name", operator_groups.names(trace))


@computed
def _by_node(trace: Trace) -> pd.DataFrame:
    return _table(trace, "node", node_names(trace), is_repeated=are_wrapped(trace))


@computed
def _by_shape(trace: Trace) -> pd.DataFrame:
    return _table(trace, "shape", operator_groups.names(trace), operator_groups.shapes(trace))


@computed
def _by_stack(trace: Trace) -> pd.DataFrame:
    return _table(trace, "stack", operator_groups.names(trace), stack_tops(trace))


@computed
def _by_full_stack(trace: Trace) -> pd.DataFrame:
    return _table(trace, "full_stack", operator_groups.names(trace), stacks(trace))


@computed
def _by_module(trace: Trace) -> pd.DataFrame:
    return _table(trace, "module", operator_groups.names(trace), modules(trace))


_BUILDERS: Mapping[Grouping, Callable[[Trace], pd.DataFrame]] = MappingProxyType(
    {
        "name": _by_name,
        "node": _by_node,
        "shape": _by_shape,
        "stack": _by_stack,
        "full_stack": _by_full_stack,
        "module": _by_module,
    }
)


def _table(
    trace: Trace,
    by: Grouping,
    names: Labels,
    labels: Labels | None = None,
    *,
    is_repeated: Mask | None = None,
) -> pd.DataFrame:
    """Return the table; calls that are repeated have their total in another call of their row."""
    metrics = call_metrics(trace)
    rows = metrics.rows
    is_operator = trace.host_calls["is_operator"].to_numpy()[rows]
    width = len(labels.texts) + 1 if labels else 1
    label = labels.codes[rows] + 1 if labels else np.zeros(len(rows), dtype=np.int64)
    key = (names.codes[rows] * width + label) * 2 + is_operator
    group, keys = pd.factorize(key, sort=True)
    of_name, of_label = np.divmod(keys // 2, width)
    columns: dict[str, NDArray[Any]] = {
        "name": names.at(of_name),
        "kind": np.where(keys % 2 == 1, "operator", "annotation").astype(object),
    }
    for column in _LABELS[by]:
        columns[column.name] = labels.at(of_label - 1) if labels else np.full(len(keys), None)
    if is_repeated is not None and is_repeated.any():
        metrics = metrics.without_totals(is_repeated[rows])
    columns |= _measures(trace, metrics, group, len(keys))
    columns["is_matrix_unit_eligible"] = np.array(
        [matrix_units.is_eligible(str(name)) for name in columns["name"]], dtype=bool
    )
    table = to_frame(SCHEMAS[by], columns)
    if len(replayed_operators(trace).operator):
        table = pd.concat((table, _replayed(trace, by)), ignore_index=True)
    order = ["device_self_ns", "host_self_ns", "name"]
    return table.sort_values(
        order, ascending=[False, False, True], kind="stable", ignore_index=True
    )


def _replayed(trace: Trace, by: Grouping) -> pd.DataFrame:
    """Return the rows of operators whose kernels graphs replay, in `SCHEMAS[by]` columns."""
    replayed = replayed_operators(trace)
    texts = {"name": replayed.operator} | {
        column.name: getattr(replayed, column.name, np.full(len(replayed.operator), None))
        for column in _LABELS[by]
    }
    keys = pd.DataFrame(texts, dtype=object)
    of_call, first = group_rows(keys, keys.columns)
    count, group = len(first), of_call[replayed.call_of_replay]
    duration = trace.device_events["duration_ns"].to_numpy()
    device = replayed.sums(duration)
    total, calls = sums(device, group, count), np.bincount(group, minlength=count)
    on_unit, unclassified = (
        sums(replayed.sums(duration, mask), group, count)
        for mask in (matrix_units.are_used(trace), matrix_units.are_unclassified(trace))
    )
    work = Metric(
        index=np.flatnonzero(~np.isnan(replayed.flops)),
        values=(replayed.flops * replayed.replay_count)[~np.isnan(replayed.flops)],
        is_complete=False,
    )
    share = total / max(1, window(trace).duration_ns)
    is_classified = (total > unclassified) & (trace.dialect.matrix_unit_kernel is not None)
    unit_share = np.where(is_classified, ratio(on_unit, total), np.nan)
    flops, unknown = _nan_sums(work, of_call, count), np.full(count, np.nan)
    zero, nothing = np.zeros(count, dtype=np.int64), np.full(count, None, dtype=object)
    names = replayed.operator[first]
    columns: dict[str, NDArray[Any]] = {
        **{name: values[first] for name, values in texts.items()},
        "kind": np.full(count, REPLAYED, dtype=object),
        "call_count": calls,
        **{column.name: zero for column in _FIGURES if column.name.startswith("host_")},
        "device_self_ns": total,
        "device_total_ns": total,
        "device_mean_ns": ratio(total, calls),
        "device_p50_ns": quantile(device, group, count, 0.5),
        "device_p95_ns": quantile(device, group, count, 0.95),
        "device_max_ns": extremes(device, group, count)[1],
        "device_self_share": share,
        "device_total_share": share,
        **{column.name: unknown for column in _FIGURES if column.name.endswith("_bytes")},
        "flops": flops,
        "total_flops": flops,
        "flops_source": nothing,
        "data_types": nothing,
        "is_matrix_unit_eligible": np.array([matrix_units.is_eligible(of) for of in names]),
        "matrix_unit_type_share": unknown,
        "matrix_unit_self_share": unit_share,
        "matrix_unit_total_share": unit_share,
    }
    return to_frame(SCHEMAS[by], columns)


def _measures(
    trace: Trace, metrics: CallMetrics, group: Ints, count: int
) -> dict[str, NDArray[Any]]:
    """Return the columns of numbers, one row per group."""
    calls = np.bincount(group[metrics.is_call], minlength=count)
    columns: dict[str, NDArray[Any]] = {"call_count": calls}
    for name, figure in metrics.times.items():
        columns[name] = sums(figure.values, group[figure.index], count)
    for name, figure in metrics.amounts.items():
        columns[name] = _nan_sums(figure, group, count)
    for side, times in metrics.spreads.items():
        columns[f"{side}_mean_ns"] = columns[f"{side}_total_ns"] / calls
        columns |= {f"{side}_{name}_ns": of for name, of in quantiles(times, group, calls).items()}
    window_ns = max(1, window(trace).duration_ns)
    for name in ("host_self", "host_total", "device_self", "device_total"):
        columns[f"{name}_share"] = columns[f"{name}_ns"] / window_ns
    for name in ("self", "total"):
        whole, untold = columns[f"device_{name}_ns"], columns[f"unclassified_{name}_ns"]
        is_classified = (whole > untold) & (trace.dialect.matrix_unit_kernel is not None)
        shares = ratio(columns[f"matrix_unit_{name}_ns"], whole)
        columns[f"matrix_unit_{name}_share"] = np.where(is_classified, shares, np.nan)
    fits = metrics.fits_matrix_unit
    typed = np.bincount(group[fits.index], minlength=count)
    columns["matrix_unit_type_share"] = _nan_sums(fits, group, count) / np.maximum(typed, 1)
    work = operator_work(trace)
    columns["flops_source"] = _listed(work.source, metrics.flops_source, group, count)
    columns["data_types"] = _listed(work.data_type, metrics.data_type, group, count)
    return columns


def _nan_sums(figure: Metric, group: Ints, count: int) -> Floats:
    """Return each group's sum; NaN where no value is known."""
    of_group = group[figure.index]
    total = np.bincount(of_group, weights=figure.values.astype(np.float64), minlength=count)
    has_value = figure.is_complete or np.bincount(of_group, minlength=count) > 0
    return np.where(has_value, total, np.nan)


def _listed(texts: pd.Categorical, figure: Metric, group: Ints, count: int) -> Objects:
    """Return each group's distinct texts, comma separated; None where there are none."""
    width = len(texts.categories)
    pairs = np.sort(pd.unique(group[figure.index] * width + figure.values.astype(np.int64)))
    listed = np.full(count, None, dtype=object)
    for which, code in zip(*(part.tolist() for part in np.divmod(pairs, width)), strict=True):
        before = f"{listed[which]}, " if listed[which] else ""
        listed[which] = before + str(texts.categories[code])
    return listed


public_table(
    "operators-by-full-stack",
    SCHEMAS["full_stack"],
    "One row per operator and all Python functions around it.",
)(partial(operator_table, by="full_stack"))
public_table(
    "operators-by-module",
    SCHEMAS["module"],
    "One row per operator and the module in whose forward or backward pass it ran.",
)(partial(operator_table, by="module"))
public_table(
    "operators-by-shape",
    SCHEMAS["shape"],
    "One row per operator and the shapes of its inputs, as `record_shapes=True` records.",
    title="Operators by input shape",
)(partial(operator_table, by="shape"))
public_table(
    "operators-by-stack",
    SCHEMAS["stack"],
    "One row per operator and the five innermost Python functions around it.",
)(partial(operator_table, by="stack"))
public_table(
    "operators-folded",
    SCHEMAS["node"],
    "One row per operator; what autograd's engine does around a node is the node's.",
    title="Operators, autograd folded",
)(partial(operator_table, by="node"))
