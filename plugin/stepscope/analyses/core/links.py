"""Links from device events to the runtime calls that launched them, and to operators.

Device event to runtime call: by `correlation`. Runtime call to operator: by containment on the
same thread, not by `External id`, which in many traces holds the correlation instead. It decides
ties only, where it agrees with containment otherwise: in traces of whole microseconds a call may
begin at the moment at which its operator ends, and the next one begins. Where a
separate thread launches the work (torch_npu's task queue), no operator is around the launch; there
the profiler's flow leads from the operator's start to the start of the device's task.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.dialects import Kind
from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.model import call_tree
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.spans import spans
from stepscope.model.trace import Trace, computed

SLACK_NS = 1000
"""Flow times are written as floats, which hold an absolute time to 250 ns."""
EXTERNAL_IDS = ("External id", "external id")
"""kineto's spellings, the second until 2021."""
LEAST_AGREED = 0.99
"""Fraction of calls away from borders whose `External id` names the operator around them."""


def owner_by_flow(trace: Trace) -> Ints:
    """Return, for each row of `device_events`, the operator that its flow starts at, or -1.

    Operators are rows of `host_calls`. Only flows of the dialect's category count.
    """
    owners = np.full(len(trace.device_events), NONE, dtype=np.int64)
    category = trace.dialect.operator_flow
    starts, ends = flow_events(trace, category, "s"), flow_events(trace, category, "f")
    if not len(starts) or not len(ends):
        return owners
    identifier = trace.columns.identifier
    operators = np.flatnonzero(trace.host_calls["is_operator"].to_numpy())
    begun = trace.host_calls["event"].to_numpy()[operators]
    origin = np.append(operators, NONE)[event_of_flow(trace, starts, begun)]
    of_flow = pd.Series(origin, index=identifier[starts])
    of_flow = of_flow[~of_flow.index.duplicated()]
    event = event_of_flow(trace, ends, trace.device_events["event"].to_numpy())
    owner = of_flow.reindex(identifier[ends], fill_value=NONE).to_numpy()
    reached = event >= 0
    owners[event[reached]] = owner[reached]
    return owners


def flow_events(trace: Trace, category: str, phase: str) -> Ints:
    """Return the events that begin (`s`) or end (`f`) the flows of a category, by time."""
    columns = trace.columns
    if not category:
        return np.zeros(0, dtype=np.int64)
    rows: Ints = np.flatnonzero(trace.source.kinds == int(Kind.FLOW))
    for column, text in ((columns.category, category), (columns.phase, phase)):
        present = pd.unique(column[rows])
        codes = [code for code in present.tolist() if code >= 0 and columns.strings[code] == text]
        rows = rows[np.isin(column[rows], codes)]
    rows = rows[(columns.start_ns[rows] != NO_TIME) & (columns.identifier[rows] >= 0)]
    ordered: Ints = rows[np.argsort(columns.start_ns[rows], kind="stable")]
    return ordered


def event_of_flow(trace: Trace, flows: Ints, events: Ints) -> Ints:
    """Return, for each flow event, the index in `events` of the event that begins there, or -1."""
    order = np.argsort(trace.columns.start_ns[events], kind="stable")
    nearest = pd.merge_asof(
        _places(trace, flows),
        _places(trace, events[order]).assign(place=order),
        on="start_ns",
        by=["pid", "tid"],
        direction="nearest",
        tolerance=SLACK_NS,
    )
    return nearest["place"].fillna(NONE).to_numpy().astype(np.int64)


def _places(trace: Trace, rows: Ints) -> pd.DataFrame:
    columns = trace.columns
    return pd.DataFrame(
        {
            "pid": columns.pid[rows],
            "tid": columns.tid[rows],
            "start_ns": columns.start_ns[rows],
        }
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Links:
    """Rows of frames; -1: none."""

    call_of_device_event: Ints
    """For each row of `device_events`, the `runtime_calls` row that launched it."""
    owner_of_call: Ints
    """For each row of `runtime_calls`, the innermost operator around it (`host_calls` row)."""
    owner_of_device_event: Ints
    """For each row of `device_events`, the operator that launched it (`host_calls` row)."""


def rows_of_keys(values: Ints, keys: Ints) -> Ints:
    """Return, for each value, the first row whose key equals it, or -1; negatives match none."""
    if not len(keys):
        return np.full(len(values), NONE, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    index = np.searchsorted(keys[order], values)
    index[index == len(keys)] = 0
    row = order[index]
    return np.where((keys[row] == values) & (values >= 0), row, NONE)


@computed
def links(trace: Trace) -> Links:
    """Link device events, runtime calls and operators."""
    calls, device = trace.runtime_calls, trace.device_events
    call = rows_of_keys(device["correlation"].to_numpy(), calls["correlation"].to_numpy())
    owner = _innermost_operator(trace, calls, calls_around_runtime_calls(trace))
    through = np.append(owner, NONE)[call]  # index -1: no call
    through = np.where(through < 0, owner_by_flow(trace), through)
    return Links(call_of_device_event=call, owner_of_call=owner, owner_of_device_event=through)


def _with_ties_decided(trace: Trace, around: Ints) -> Ints:
    """Return the call around each runtime call, by `External id` for those at an operator's end."""
    operator = _operator_by_external_id(trace)
    rows = np.flatnonzero(operator != NONE)
    if not len(rows):
        return around
    thread, start_ns, end_ns = (of[operator[rows]] for of in spans(trace.host_calls))
    of_thread, at_ns, _ = (of[rows] for of in spans(trace.runtime_calls))
    is_tie = (end_ns == at_ns) & (start_ns <= at_ns) & (thread == of_thread)
    is_around = np.append(trace.host_calls["is_operator"].to_numpy(), False)[around[rows]]
    agreed = (operator == around)[rows[is_around & ~is_tie]]
    if not len(agreed) or agreed.mean() < LEAST_AGREED:
        return around
    decided = around.copy()
    decided[rows[is_tie]] = operator[rows[is_tie]]
    return decided


def _operator_by_external_id(trace: Trace) -> Ints:
    """Return the operator with the same `External id` as each runtime call, or -1."""
    external: Ints = np.full(len(trace.columns), NONE, dtype=np.int64)
    for key in EXTERNAL_IDS:
        column = trace.columns.arguments.get(key)
        if column is not None and column.texts is None and column.values.dtype.kind == "i":
            external[column.rows] = column.values
    of_host = external[trace.host_calls["event"].to_numpy()]
    of_operator = np.where(trace.host_calls["is_operator"].to_numpy(), of_host, NONE)
    return rows_of_keys(external[trace.runtime_calls["event"].to_numpy()], of_operator)


def enclosing_operator(trace: Trace, frame: pd.DataFrame) -> Ints:
    """Return, for each row of a host frame, the innermost operator around it, or -1."""
    return _innermost_operator(trace, frame, enclosing_call(trace, frame))


def _innermost_operator(trace: Trace, frame: pd.DataFrame, around: Ints) -> Ints:
    """Return the innermost operator around each row; `around` is the result of `enclosing_call`.

    Where that is an annotation, the operators of that time are searched: an operator that ends
    inside the annotation is not its ancestor.
    """
    is_operator = trace.host_calls["is_operator"].to_numpy()
    operator = around.copy()
    rows = np.flatnonzero(~np.append(is_operator, True)[around])  # the last is of row -1
    if not len(rows):
        return operator
    thread, start_ns, end_ns = spans(trace.host_calls)
    inner = spans(frame.iloc[rows])
    moments = np.sort(inner[1])
    first = np.append(moments, np.iinfo(np.int64).max)[np.searchsorted(moments, start_ns)]
    outer = np.flatnonzero(is_operator & (first < end_ns))
    innermost = call_tree.enclosing((thread[outer], start_ns[outer], end_ns[outer]), inner)
    operator[rows] = np.append(outer, NONE)[innermost]
    return operator


@computed
def calls_around_runtime_calls(trace: Trace) -> Ints:
    """Return the innermost operator or annotation around each row of `runtime_calls`."""
    return _with_ties_decided(trace, enclosing_call(trace, trace.runtime_calls))


def enclosing_call(trace: Trace, frame: pd.DataFrame) -> Ints:
    """Return the innermost operator or annotation around the start of each row of a host frame."""
    moments = frame["thread"].cat.codes.to_numpy(), frame["start_ns"].to_numpy()
    parent = trace.host_calls["parent"].to_numpy()
    return call_tree.innermost_at(spans(trace.host_calls), parent, _host_order(trace), moments)


@computed
def _host_order(trace: Trace) -> Ints:
    return call_tree.ordered(*spans(trace.host_calls))
