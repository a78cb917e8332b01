"""Details of one operator or annotation."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.occurrences import longest, step_index
from stepscope.analyses.operators import grouping
from stepscope.analyses.operators.costs import operator_calls, owners_of_device_events
from stepscope.analyses.operators.grouping import modules, stack_tops
from stepscope.analyses.operators.operator_kernels import KIND_NAMES
from stepscope.api import name_details
from stepscope.api.endpoint import TimeRangeQuery, trace_endpoint
from stepscope.api.name_details import (
    MOST_INSTANCES,
    NONE,
    CallInstance,
    LaunchedWork,
    OperatorDetails,
    RelatedOperator,
    ShapeUse,
    Values,
    ranked,
)
from stepscope.base.errors import UnknownNameError
from stepscope.dialects import Kind
from stepscope.model.trace import Trace

LABELS = {"shape": grouping.shapes, "stack": stack_tops, "module": modules}
KINDS = {True: "operator", False: "annotation"}


class OneOperator(TimeRangeQuery, frozen=True, kw_only=True):
    """One row of the table of operators, with a time range."""

    name: str
    """The operator's name; all steps are `ProfilerStep*`."""
    kind: str = "operator"
    """`operator` or `annotation`."""
    group: str = "name"
    """The table's grouping."""
    label: str = ""
    """The row's shapes, stack or module in that grouping; empty: none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Calls:
    """Calls, as rows of `host_calls` that count once, with their times."""

    rows: NDArray[np.int64]
    host_ns: Values
    device_ns: Values
    is_selected: NDArray[np.bool_]
    """Mask of all host calls, with those that count as another's."""


def operator_details(trace: Trace, query: OneOperator) -> OperatorDetails:
    """Return durations, steps, shapes, stacks, callers and device work of an operator's calls.

    Raises:
        UnknownNameError: the operator was not called.
        MissingDataError: the grouping needs stacks or modules, which were not recorded.
    """
    calls = _calls(trace, query)
    start_ns = trace.host_calls["start_ns"].to_numpy()[calls.rows]
    step = step_index(trace, start_ns)
    host = name_details.distribution(calls.host_ns)
    if host is None:
        msg = f"there is no {query.kind} {query.name!r} in this time range"
        raise UnknownNameError(msg)
    shapes = _shapes(trace, calls)
    uses, count, missing = name_details.call_stacks(
        trace, calls.rows, calls.host_ns, calls.device_ns
    )
    kernels = _launched(trace, calls)
    return OperatorDetails(
        name=query.name,
        kind=query.kind,
        host=host,
        device=name_details.distribution(calls.device_ns[calls.device_ns > 0]),
        steps=name_details.over_steps(trace, step, calls.host_ns, calls.device_ns),
        shapes=tuple(shapes[: name_details.MOST_PARTS]),
        shape_count=len(shapes),
        stacks=uses,
        stack_count=count,
        stacks_missing=missing,
        kernels=tuple(kernels[: name_details.MOST_PARTS]),
        kernel_count=len(kernels),
        callers=related(trace, trace.host_calls["parent"].to_numpy()[calls.rows], calls.host_ns),
        callees=_callees(trace, calls),
        instances=_instances(trace, calls, step),
    )


def _calls(trace: Trace, query: OneOperator) -> _Calls:
    names = grouping.names(trace)
    is_named = np.array([text == query.name for text in names.texts], dtype=bool)[names.codes]
    is_operator = trace.host_calls["is_operator"].to_numpy()
    is_selected = is_named & (is_operator == (query.kind == KINDS[True]))
    if query.group in LABELS:
        labels = LABELS[query.group](trace)
        fits = np.array([text == query.label for text in labels.texts] + [not query.label])
        is_selected &= fits[labels.codes]
    costs = operator_calls(trace)
    counted = costs.counted
    rows = np.flatnonzero(is_selected & (counted == np.arange(len(counted))))
    return _Calls(
        rows=rows,
        host_ns=trace.host_calls["duration_ns"].to_numpy()[rows],
        device_ns=costs.device_total_ns[rows],
        is_selected=is_selected[counted] if len(counted) else is_selected,
    )


def _shapes(trace: Trace, calls: _Calls) -> list[ShapeUse]:
    inputs = trace.host_calls[["input_dims", "input_types"]].iloc[calls.rows]
    if inputs["input_dims"].isna().all():
        return []
    dims, types = (inputs[column].cat for column in inputs)
    width = len(types.categories) + 1
    key = (dims.codes.to_numpy().astype(np.int64) + 1) * width + types.codes.to_numpy() + 1
    group, keys = pd.factorize(key)
    count = np.bincount(group, minlength=len(keys))
    host = sums(calls.host_ns, group, len(keys))
    device = sums(calls.device_ns, group, len(keys))
    of_dims, of_types = np.divmod(keys, width)
    return [
        ShapeUse(
            input_dims=str(dims.categories[of_dims[at] - 1]) if of_dims[at] else "",
            input_types=str(types.categories[of_types[at] - 1]) if of_types[at] else "",
            call_count=int(count[at]),
            host_total_ns=int(host[at]),
            device_total_ns=int(device[at]),
        )
        for at in ranked(host, count, len(keys))
    ]


def _launched(trace: Trace, calls: _Calls) -> list[LaunchedWork]:
    """Return device work that the calls and nested calls launched, longest total first."""
    parent = trace.host_calls["parent"].to_numpy()
    owner = owners_of_device_events(trace)
    inside = np.append(ancestry.nearest(parent, calls.is_selected), NONE)[owner] != NONE
    events = trace.device_events[inside]
    is_direct = np.append(calls.is_selected, False)[owner[inside]]
    kind = events["kind"].to_numpy().astype(np.int64)
    key = events["name"].cat.codes.to_numpy().astype(np.int64) * len(Kind) + kind
    group, keys = pd.factorize(key)
    duration = events["duration_ns"].to_numpy()
    total, count = sums(duration, group, len(keys)), np.bincount(group, minlength=len(keys))
    direct = sums(np.where(is_direct, duration, 0), group, len(keys))
    names = [*map(str, events["name"].cat.categories), ""]
    of_name, of_kind = np.divmod(keys, len(Kind))
    whole = max(1, int(total.sum()))
    return [
        LaunchedWork(
            name=short(names[of_name[at]])
            if of_kind[at] == int(Kind.KERNEL)
            else names[of_name[at]],
            full_name=names[of_name[at]],
            kind=KIND_NAMES[int(of_kind[at])],
            event_count=int(count[at]),
            total_ns=int(total[at]),
            own_ns=int(direct[at]),
            share=int(total[at]) / whole,
        )
        for at in ranked(total, count, len(keys))
    ]


def _callees(trace: Trace, calls: _Calls) -> tuple[RelatedOperator, ...]:
    """Return the operators that the calls called."""
    parent = trace.host_calls["parent"].to_numpy()
    counted = operator_calls(trace).counted
    below = np.append(calls.is_selected, False)[parent] & (counted == np.arange(len(counted)))
    rows = np.flatnonzero(below)
    return related(trace, rows, trace.host_calls["duration_ns"].to_numpy()[rows])


def related(trace: Trace, rows: NDArray[np.int64], time_ns: Values) -> tuple[RelatedOperator, ...]:
    """Return host calls (-1: none) by name and kind with their times, longest total first."""
    names = grouping.names(trace)
    is_operator = np.append(trace.host_calls["is_operator"].to_numpy(), True)[rows]
    codes = np.append(names.codes, len(names.texts))[rows]
    group, keys = pd.factorize(codes * 2 + is_operator)
    total, count = sums(time_ns, group, len(keys)), np.bincount(group, minlength=len(keys))
    whole = max(1, int(total.sum()))
    texts = [*names.texts, ""]
    return tuple(
        RelatedOperator(
            name=texts[keys[at] // 2],
            kind=KINDS[bool(keys[at] % 2)],
            call_count=int(count[at]),
            time_ns=int(total[at]),
            share=int(total[at]) / whole,
        )
        for at in ranked(total, count)
    )


def _instances(trace: Trace, calls: _Calls, step_indices: Values) -> tuple[CallInstance, ...]:
    best = longest(calls.host_ns, MOST_INSTANCES)
    rows = trace.host_calls.iloc[calls.rows[best]]
    return tuple(
        CallInstance(
            event=int(event),
            start_ns=int(start_ns),
            duration_ns=int(duration_ns),
            device_ns=int(device_ns),
            track=f"thread {str(thread).rpartition('/')[2]}",
            step=step,
        )
        for event, start_ns, duration_ns, device_ns, thread, step in zip(
            rows["event"],
            rows["start_ns"],
            rows["duration_ns"],
            calls.device_ns[best],
            rows["thread"],
            name_details.step_numbers(trace, step_indices[best]),
            strict=True,
        )
    )


ENDPOINTS = (trace_endpoint("operators/details", operator_details),)
