"""What each operator and annotation costs on the host and on the devices it feeds.

Calls, self and total host time are those of torch's `key_averages()`
(`torch/autograd/profiler_util.py`): a call whose only child has its name is one call with it
(`_remove_dup_nodes`), steps are one row `ProfilerStep*` (`_rewrite_name`), and self time is without
the operators, annotations and runtime calls within. As there, the total of a name is the sum of
its calls, so that one that calls itself deeper down counts the inner time twice.
"""

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope import call_tree
from stepscope.analyses import matrix_units
from stepscope.analyses.links import enclosing_call, links
from stepscope.analyses.window import window
from stepscope.frames import Column, Schema
from stepscope.trace import Trace, computed

Grouping = Literal["name", "shape"]
SCHEMA: Schema = (
    Column("name", "object", "text", "The name; all steps are `ProfilerStep*`."),
    Column("kind", "object", "text", "`operator` or `annotation`."),
    Column("input_dims", "object", "text", "Input shapes (JSON), None where not recorded."),
    Column(
        "call_count", "int64", "count", "Calls; an only child of its caller's name is no other."
    ),
    Column("host_self_ns", "int64", "ns", "Host time without calls within, of whatever kind."),
    Column("host_total_ns", "int64", "ns", "Host time with calls within, summed over calls."),
    Column("host_mean_ns", "float64", "ns", "Mean of a call's host total."),
    Column("host_p50_ns", "float64", "ns", "Median of a call's host total."),
    Column("host_p95_ns", "float64", "ns", "95th percentile of a call's host total."),
    Column("host_max_ns", "int64", "ns", "Longest call's host total."),
    Column("device_self_ns", "int64", "ns", "Kernels, copies and memory sets it launched itself."),
    Column("device_total_ns", "int64", "ns", "The same with what calls within it launched."),
    Column("host_self_share", "float64", "share", "Host self time of the window."),
    Column("device_self_share", "float64", "share", "Device self time of the window."),
    Column("is_matrix_unit_eligible", "bool", "", "Can run on tensor cores, in a fitting type."),
    Column("matrix_unit_self_share", "float64", "share", "Of device self time; NaN: not known."),
    Column("matrix_unit_total_share", "float64", "share", "Of device total time; NaN: not known."),
)
STEP_NAME = re.compile(r"^ProfilerStep\s*#.*")
ALL_STEPS = "ProfilerStep*"


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorCalls:
    """Every call with its cost; all arrays are parallel to `host_calls`."""

    counted: NDArray[np.int64]
    """The call that each is counted as: itself, or the one around it of which it is the only
    child and has the name."""
    host_self_ns: NDArray[np.int64]
    """Without calls within; of calls counted as another's, 0."""
    device_self_ns: NDArray[np.int64]
    device_total_ns: NDArray[np.int64]
    matrix_unit_self_ns: NDArray[np.int64]
    matrix_unit_total_ns: NDArray[np.int64]


def operator_table(trace: Trace, by: Grouping = "name") -> pd.DataFrame:
    """Return one row a name and kind, or a name, kind and input shapes, in `SCHEMA` columns.

    Rows are ordered by device self time, then by host self time, largest first.
    """
    return _by_shape(trace) if by == "shape" else _by_name(trace)


@computed
def _by_name(trace: Trace) -> pd.DataFrame:
    return _table(trace, np.zeros(len(trace.host_calls), dtype=np.int64), ())


@computed
def _by_shape(trace: Trace) -> pd.DataFrame:
    dims = trace.host_calls["input_dims"].cat
    return _table(trace, dims.codes.to_numpy().astype(np.int64) + 1, tuple(dims.categories))


@computed
def operator_calls(trace: Trace) -> OperatorCalls:
    """Return every operator's and annotation's own and total cost."""
    calls = trace.host_calls
    counted = _counted(trace)
    own_ns = np.maximum(calls["self_ns"].to_numpy() - _runtime_ns(trace), 0)
    device_ns, matrix_ns = _device_ns(trace)
    self_ns, device_self, matrix_self = (
        _gathered(values, counted) for values in (own_ns, device_ns, matrix_ns)
    )
    depth, parent = calls["depth"].to_numpy(), calls["parent"].to_numpy()
    return OperatorCalls(
        counted=counted,
        host_self_ns=self_ns,
        device_self_ns=device_self,
        device_total_ns=_with_descendants(device_ns, parent, depth),
        matrix_unit_self_ns=matrix_self,
        matrix_unit_total_ns=_with_descendants(matrix_ns, parent, depth),
    )


def _names(trace: Trace) -> tuple[NDArray[np.int64], list[str]]:
    """Return each call's name as an index into the names, steps being of one name."""
    names = trace.host_calls["name"].cat
    texts = [STEP_NAME.sub(ALL_STEPS, str(name)) for name in names.categories]
    texts.append("")  # code -1: an event without a name
    distinct = sorted(set(texts))
    place = {text: index for index, text in enumerate(distinct)}
    translated = np.array([place[text] for text in texts], dtype=np.int64)
    return translated[names.codes.to_numpy()], distinct


def _counted(trace: Trace) -> NDArray[np.int64]:
    """Return the row that each call is counted as, after torch's `_remove_dup_nodes`."""
    calls = trace.host_calls
    name, _ = _names(trace)
    parent = calls["parent"].to_numpy()
    child_count = np.bincount(parent[parent >= 0], minlength=len(calls))
    made = _outermost_calls(trace)[1]
    child_count += np.bincount(made[made >= 0], minlength=len(calls))
    counted = np.arange(len(calls))
    alike = np.flatnonzero((parent >= 0) & (name == name[parent]))
    for row in alike.tolist():  # callers come before what they call
        caller = counted[parent[row]]
        if child_count[caller] == 1:
            counted[row] = caller
            child_count[caller] = child_count[row]
    return counted


@computed
def _around_calls(trace: Trace) -> NDArray[np.int64]:
    """Return the innermost host call around each runtime call, or -1."""
    return enclosing_call(trace, trace.runtime_calls)


@computed
def _outermost_calls(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the runtime calls that no other runtime call holds, and the host call around each."""
    runtime = trace.runtime_calls
    thread = runtime["thread"].cat.codes.to_numpy()
    start, duration = runtime["start_ns"].to_numpy(), runtime["duration_ns"].to_numpy()
    rows = np.flatnonzero(call_tree.nest(thread, start, duration).depth == 0)
    return rows, _around_calls(trace)[rows]


def _runtime_ns(trace: Trace) -> NDArray[np.int64]:
    """Return how long each host call was in runtime calls that it made itself."""
    end = trace.host_calls["end_ns"].to_numpy()
    spent = np.zeros(len(end), dtype=np.int64)
    rows, made_by = _outermost_calls(trace)
    rows, made_by = rows[made_by >= 0], made_by[made_by >= 0]
    until = np.minimum(trace.runtime_calls["end_ns"].to_numpy()[rows], end[made_by])
    np.add.at(spent, made_by, until - trace.runtime_calls["start_ns"].to_numpy()[rows])
    return spent


def _device_ns(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the device time that each host call launched itself: all, and on matrix units."""
    linked = links(trace)
    around = np.append(_around_calls(trace), -1)[linked.call_of_device_event]
    owner = np.where(linked.owner_of_device_event >= 0, linked.owner_of_device_event, around)
    duration = trace.device_events["duration_ns"].to_numpy()
    on_matrix_unit = matrix_units.are_used(trace)
    all_ns, matrix_ns = (np.zeros(len(trace.host_calls), dtype=np.int64) for _ in range(2))
    np.add.at(all_ns, owner[owner >= 0], duration[owner >= 0])
    chosen = (owner >= 0) & on_matrix_unit
    np.add.at(matrix_ns, owner[chosen], duration[chosen])
    return all_ns, matrix_ns


def _gathered(values: NDArray[np.int64], into: NDArray[np.int64]) -> NDArray[np.int64]:
    gathered = np.zeros(len(values), dtype=np.int64)
    np.add.at(gathered, into, values)
    return gathered


def _with_descendants(
    own: NDArray[np.int64], parent: NDArray[np.int64], depth: NDArray[np.int64]
) -> NDArray[np.int64]:
    total = own.copy()
    deepest_first = np.argsort(-depth, kind="stable")
    borders = np.flatnonzero(np.diff(depth[deepest_first])) + 1
    for rows in np.split(deepest_first, borders):
        inner = rows[parent[rows] >= 0]
        np.add.at(total, parent[inner], total[inner])
    return total


def _table(trace: Trace, shape: NDArray[np.int64], shapes: tuple[str, ...]) -> pd.DataFrame:
    calls, cost = trace.host_calls, operator_calls(trace)
    name, names = _names(trace)
    is_operator = calls["is_operator"].to_numpy()
    rows = np.flatnonzero(cost.counted == np.arange(len(calls)))
    key = (name * (len(shapes) + 1) + shape) * 2 + is_operator
    group, keys = pd.factorize(key[rows], sort=True)
    each = pd.DataFrame(
        {
            "group": group,
            "total": calls["duration_ns"].to_numpy()[rows],
            "self": cost.host_self_ns[rows],
            "device_self": cost.device_self_ns[rows],
            "device_total": cost.device_total_ns[rows],
            "matrix_self": cost.matrix_unit_self_ns[rows],
            "matrix_total": cost.matrix_unit_total_ns[rows],
        }
    )
    of_name, of_shape = np.divmod(keys // 2, len(shapes) + 1)
    identity = pd.DataFrame(
        {
            "name": np.array([names[index] for index in of_name], dtype=object),
            "kind": np.where(keys % 2 == 1, "operator", "annotation").astype(object),
            "input_dims": np.array([(None, *shapes)[index] for index in of_shape], dtype=object),
        },
        dtype=object,
    )
    return _ordered(pd.concat([identity, _figures(trace, each, identity["name"])], axis=1))


def _figures(trace: Trace, each: pd.DataFrame, names: pd.Series) -> pd.DataFrame:
    """Return the columns of numbers, one row a group in the groups' order."""
    groups = each.groupby("group", sort=True)
    total, sums = groups["total"], groups.sum()
    window_ns = max(1, window(trace).device_duration_ns)
    return pd.DataFrame(
        {
            "call_count": groups.size().astype(np.int64),
            "host_self_ns": sums["self"],
            "host_total_ns": sums["total"],
            "host_mean_ns": total.mean(),
            "host_p50_ns": total.quantile(0.5),
            "host_p95_ns": total.quantile(0.95),
            "host_max_ns": total.max(),
            "device_self_ns": sums["device_self"],
            "device_total_ns": sums["device_total"],
            "host_self_share": sums["self"] / window_ns,
            "device_self_share": sums["device_self"] / window_ns,
            "is_matrix_unit_eligible": np.array(
                [matrix_units.is_eligible(str(name)) for name in names], dtype=bool
            ),
            "matrix_unit_self_share": _share(trace, sums["matrix_self"], sums["device_self"]),
            "matrix_unit_total_share": _share(trace, sums["matrix_total"], sums["device_total"]),
        }
    )


def _share(trace: Trace, part: pd.Series, whole: pd.Series) -> NDArray[np.float64]:
    shares = np.full(len(part), np.nan)
    known = (whole > 0).to_numpy() & (trace.dialect.matrix_unit_kernel is not None)
    np.divide(part.to_numpy(), whole.to_numpy(), out=shares, where=known)
    return shares


def _ordered(table: pd.DataFrame) -> pd.DataFrame:
    by = ["device_self_ns", "host_self_ns", "name"]
    ordered = table.sort_values(by, ascending=[False, False, True], kind="stable")
    return ordered.reset_index(drop=True)
