"""Cost of each operator and annotation call, on the host and on the devices it launches work on.

As in torch's `key_averages()` (`torch/autograd/profiler_util.py`): a call whose only child has its
name is one call with it (`_remove_dup_nodes`), and self time excludes nested operators, annotations
and runtime calls.
"""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.group_statistics import EVERY_ROW, sums, sums_where
from stepscope.analyses.core.links import calls_around_runtime_calls, links
from stepscope.analyses.operators import matrix_units
from stepscope.model import call_tree
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorCalls:
    """Cost of every call; all arrays are parallel to `host_calls`."""

    counted: Ints
    """Call that each counts as: itself, or the caller of the same name whose only child it is."""
    host_self_ns: Ints
    """Without nested calls; 0 for calls that count as another, as in the next three."""
    device_self_ns: Ints
    matrix_unit_self_ns: Ints
    unclassified_self_ns: Ints
    """Time of kernels whose names do not show whether they use matrix units."""
    device_total_ns: Ints
    matrix_unit_total_ns: Ints
    unclassified_total_ns: Ints


@computed
def operator_calls(trace: Trace) -> OperatorCalls:
    """Return the self and total cost of every operator and annotation."""
    counted = _counted(trace)
    host_self = np.maximum(trace.host_calls["self_ns"].to_numpy() - _runtime_ns(trace), 0)
    of_devices = _device_ns(trace)
    self_ns, device_self, matrix_self, unclassified_self = (
        _gathered(values, counted) for values in (host_self, *of_devices)
    )
    parent = trace.host_calls["parent"].to_numpy()
    device_total, matrix_total, unclassified_total = ancestry.with_descendants(parent, *of_devices)
    return OperatorCalls(
        counted=counted,
        host_self_ns=self_ns,
        device_self_ns=device_self,
        matrix_unit_self_ns=matrix_self,
        unclassified_self_ns=unclassified_self,
        device_total_ns=device_total,
        matrix_unit_total_ns=matrix_total,
        unclassified_total_ns=unclassified_total,
    )


def _gathered(values: Ints, into: Ints) -> Ints:
    """Return the values of calls, moved to the calls that they count as."""
    moved = np.flatnonzero(values)
    moved = moved[into[moved] != moved]
    if not len(moved):
        return values
    gathered = values.copy()
    gathered[moved] = 0
    np.add.at(gathered, into[moved], values[moved])
    return gathered


@computed
def owners_of_device_events(trace: Trace) -> Ints:
    """Return the call that launched each of `device_events`: an operator, else an annotation.

    Rows of `host_calls`; -1 where the launch is unknown or has no enclosing call.
    """
    linked = links(trace)
    around = np.append(calls_around_runtime_calls(trace), -1)[linked.call_of_device_event]
    return np.where(linked.owner_of_device_event >= 0, linked.owner_of_device_event, around)


def _counted(trace: Trace) -> Ints:
    """Return the row that each call counts as, like torch's `_remove_dup_nodes`."""
    calls = trace.host_calls
    name, parent = calls["name"].cat.codes.to_numpy(), calls["parent"].to_numpy()
    child_count = np.bincount(parent[parent >= 0], minlength=len(calls))
    made = _outermost_calls(trace)[1]
    child_count += np.bincount(made[made >= 0], minlength=len(calls))
    # with a child that is another call of it, a caller has that one's children and no more
    is_another = (parent >= 0) & (name == name[parent]) & (child_count[parent] == 1)
    rows = np.flatnonzero(is_another)
    counted = np.arange(len(calls))
    counted[rows] = ancestry.nearest_of(parent, rows, ~is_another)
    return counted


@computed
def _outermost_calls(trace: Trace) -> tuple[Ints, Ints]:
    """Return the runtime calls that are in no other one, and the host call around each."""
    runtime = trace.runtime_calls
    thread = runtime["thread"].cat.codes.to_numpy()
    start, duration = runtime["start_ns"].to_numpy(), runtime["duration_ns"].to_numpy()
    rows = np.flatnonzero(call_tree.nest(thread, start, duration).depth == 0)
    return rows, calls_around_runtime_calls(trace)[rows]


def _runtime_ns(trace: Trace) -> Ints:
    """Return the time of the runtime calls that each host call made directly."""
    end = trace.host_calls["end_ns"].to_numpy()
    rows, made_by = _outermost_calls(trace)
    rows, made_by = rows[made_by >= 0], made_by[made_by >= 0]
    until = np.minimum(trace.runtime_calls["end_ns"].to_numpy()[rows], end[made_by])
    return sums(until - trace.runtime_calls["start_ns"].to_numpy()[rows], made_by, len(end))


def _device_ns(trace: Trace) -> tuple[Ints, ...]:
    """Return the device time that each host call launched directly.

    In total, on matrix units, and of kernels whose use of matrix units is unknown.
    """
    owner = owners_of_device_events(trace)
    duration = trace.device_events["duration_ns"].to_numpy()
    count = len(trace.host_calls)
    parts = (EVERY_ROW, matrix_units.are_used(trace), matrix_units.are_unclassified(trace))
    return tuple(sums_where(duration, owner, count, mask) for mask in parts)
