"""One operator or annotation in detail."""

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
from stepscope.analyses.operators.grouping import modules, stack_tops, stacks
from stepscope.analyses.operators.operator_kernels import KIND_NAMES
from stepscope.api import name_details
from stepscope.api.endpoint import TimeRangeQuery, TraceEndpoint
from stepscope.api.name_details import (
    MOST_INSTANCES,
    MOST_STACKS,
    NONE,
    CallInstance,
    LaunchedWork,
    OperatorDetails,
    RelatedOperator,
    ShapeUse,
    StackUse,
    Values,
    ranked,
)
from stepscope.base.errors import MissingDataError, UnknownNameError
from stepscope.base.report import SCHEMA_VERSION
from stepscope.dialects import Kind
from stepscope.model.trace import Trace

LABELS = {"shape": grouping.shapes, "stack": stack_tops, "module": modules}
KINDS = {True: "operator", False: "annotation"}


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Which calls: those of a name and kind, of one group of a table where one is said."""

    name: str
    kind: str
    group: str = "name"
    label: str = ""
    """The group's shapes, stack or module; empty: none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Calls:
    """The calls, as rows of `host_calls`, each counted once, and what they cost."""

    rows: NDArray[np.int64]
    host_ns: Values
    device_ns: Values
    is_chosen: NDArray[np.bool_]
    """Of all host calls, also those that are counted as another's."""


def operator_details(trace: Trace, chosen: Chosen) -> OperatorDetails:
    """Return everything about an operator's calls.

    Raises:
        UnknownNameError: there is no such operator.
        MissingDataError: stacks or modules are asked for and were not recorded.
    """
    calls = _chosen(trace, chosen)
    start_ns = trace.host_calls["start_ns"].to_numpy()[calls.rows]
    place = step_index(trace, start_ns)
    host = name_details.distribution(calls.host_ns)
    if host is None:
        msg = f"there is no {chosen.kind} {chosen.name!r} in the time that is shown"
        raise UnknownNameError(msg)
    own_shapes = _shapes(trace, calls)
    found, count, missing = _stacks(trace, calls)
    kernels = _launched(trace, calls)
    return OperatorDetails(
        schema=SCHEMA_VERSION,
        name=chosen.name,
        kind=chosen.kind,
        host=host,
        device=name_details.distribution(calls.device_ns[calls.device_ns > 0]),
        steps=name_details.over_steps(trace, place, calls.host_ns, calls.device_ns),
        shapes=tuple(own_shapes[: name_details.MOST_PARTS]),
        shape_count=len(own_shapes),
        stacks=found,
        stack_count=count,
        stacks_missing=missing,
        kernels=tuple(kernels[: name_details.MOST_PARTS]),
        kernel_count=len(kernels),
        callers=_callers(trace, calls),
        callees=_callees(trace, calls),
        instances=_instances(trace, calls, place),
    )


def _chosen(trace: Trace, chosen: Chosen) -> _Calls:
    names = grouping.names(trace)
    is_named = np.array([text == chosen.name for text in names.texts], dtype=bool)[names.codes]
    is_operator = trace.host_calls["is_operator"].to_numpy()
    is_chosen = is_named & (is_operator == (chosen.kind == KINDS[True]))
    if chosen.group in LABELS:
        labels = LABELS[chosen.group](trace)
        fits = np.array([text == chosen.label for text in labels.texts] + [not chosen.label])
        is_chosen &= fits[labels.codes]
    costs = operator_calls(trace)
    counted = costs.counted
    rows = np.flatnonzero(is_chosen & (counted == np.arange(len(counted))))
    return _Calls(
        rows=rows,
        host_ns=trace.host_calls["duration_ns"].to_numpy()[rows],
        device_ns=costs.device_total_ns[rows],
        is_chosen=is_chosen[counted] if len(counted) else is_chosen,
    )


def _shapes(trace: Trace, calls: _Calls) -> list[ShapeUse]:
    own = trace.host_calls[["input_dims", "input_types"]].iloc[calls.rows]
    if own["input_dims"].isna().all():
        return []
    dims, types = (own[column].cat for column in own)
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


def _stacks(trace: Trace, calls: _Calls) -> tuple[tuple[StackUse, ...], int, str]:
    """Return the costliest stacks, how many there are, and what would record them."""
    try:
        labels = stacks(trace)
    except MissingDataError as missing:
        return (), 0, missing.remedy
    codes = labels.codes[calls.rows]
    known = codes != NONE
    size = len(labels.texts)
    count = np.bincount(codes[known], minlength=size)
    host = sums(calls.host_ns[known], codes[known], size)
    device = sums(calls.device_ns[known], codes[known], size)
    best = ranked(host, count, MOST_STACKS)
    found = tuple(
        name_details.stack_of(labels.texts[at], (int(count[at]), int(host[at]), int(device[at])))
        for at in best
    )
    return found, int((count > 0).sum()), ""


def _launched(trace: Trace, calls: _Calls) -> list[LaunchedWork]:
    """Return what the calls put on devices, the costliest first."""
    parent = trace.host_calls["parent"].to_numpy()
    owner = owners_of_device_events(trace)
    inside = np.append(ancestry.nearest(parent, calls.is_chosen), NONE)[owner] != NONE
    events = trace.device_events[inside]
    is_own = np.append(calls.is_chosen, False)[owner[inside]]
    kind = events["kind"].to_numpy().astype(np.int64)
    key = events["name"].cat.codes.to_numpy().astype(np.int64) * len(Kind) + kind
    group, keys = pd.factorize(key)
    duration = events["duration_ns"].to_numpy()
    total, count = sums(duration, group, len(keys)), np.bincount(group, minlength=len(keys))
    own = sums(np.where(is_own, duration, 0), group, len(keys))
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
            own_ns=int(own[at]),
            share=int(total[at]) / whole,
        )
        for at in ranked(total, count, len(keys))
    ]


def _callers(trace: Trace, calls: _Calls) -> tuple[RelatedOperator, ...]:
    """Return from which operators the calls were made."""
    above = trace.host_calls["parent"].to_numpy()[calls.rows]
    return related(trace, above, calls.host_ns)


def _callees(trace: Trace, calls: _Calls) -> tuple[RelatedOperator, ...]:
    """Return which operators the calls made."""
    parent = trace.host_calls["parent"].to_numpy()
    counted = operator_calls(trace).counted
    below = np.append(calls.is_chosen, False)[parent] & (counted == np.arange(len(counted)))
    rows = np.flatnonzero(below)
    return related(trace, rows, trace.host_calls["duration_ns"].to_numpy()[rows])


def related(trace: Trace, rows: NDArray[np.int64], time_ns: Values) -> tuple[RelatedOperator, ...]:
    """Return host calls by name and kind, -1 being none, with a time each, the costliest first."""
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


def _instances(trace: Trace, calls: _Calls, place: Values) -> tuple[CallInstance, ...]:
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
            name_details.step_numbers(trace, place[best]),
            strict=True,
        )
    )


class OneOperator(TimeRangeQuery, frozen=True, kw_only=True):
    """Which operator, as a row of the table of operators names it."""

    name: str
    """All steps are `ProfilerStep*`."""
    kind: str = "operator"
    """`operator` or `annotation`."""
    group: str = "name"
    """The table's grouping."""
    label: str = ""
    """What the grouping adds to the name: shapes, stack or module; empty: none."""


def details(trace: Trace, query: OneOperator) -> OperatorDetails:
    """Answer with everything about an operator's calls."""
    chosen = Chosen(name=query.name, kind=query.kind, group=query.group, label=query.label)
    return operator_details(trace, chosen)


ENDPOINTS = (
    TraceEndpoint(
        path="operators/details",
        meaning="An operator's calls: how long, when, of what shapes, from where, which kernels.",
        query=OneOperator,
        response=OperatorDetails,
        handler=details,
    ),
)
