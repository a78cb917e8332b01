"""Events linked to an event: launches, waits, and its forward and backward counterparts."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core.forward_backward import forward_backward
from stepscope.analyses.core.links import links, rows_of_keys
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.idle.host_waits import awaited_work
from stepscope.base.errors import MissingDataError
from stepscope.dialects import Kind
from stepscope.model.arrays import NONE, Ints
from stepscope.model.trace import Trace

HOST_KINDS = frozenset({Kind.OPERATOR, Kind.ANNOTATION, Kind.PYTHON_CALL})
DEVICE_KINDS = frozenset({Kind.KERNEL, Kind.COPY, Kind.MEMORY_SET})


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedEvents:
    """Events that are linked to an event in one way."""

    kind: str
    events: Ints


def launched_by(trace: Trace, event: int) -> tuple[int, int]:
    """Return the call that launched a device event, and its operator, as events; -1: none."""
    row = _row(trace.device_events, event)
    if row == NONE:
        return NONE, NONE
    of_trace = links(trace)
    call = int(of_trace.call_of_device_event[row])
    owner = int(of_trace.owner_of_device_event[row])
    return _event(trace.runtime_calls, call), _event(trace.host_calls, owner)


def launched(trace: Trace, event: int) -> Ints:
    """Return the device events that a host event launched, including its callees."""
    kind = Kind(int(trace.source.kinds[event]))
    calls = trace.runtime_calls
    if kind is Kind.RUNTIME_CALL:
        rows = np.flatnonzero(calls["event"].to_numpy() == event)
    elif kind in HOST_KINDS:
        rows = _calls_inside(trace, event)
    else:
        return np.zeros(0, dtype=np.int64)
    is_call = np.zeros(len(calls) + 1, dtype=bool)  # the last is of no call
    is_call[rows] = True
    events = np.flatnonzero(is_call[links(trace).call_of_device_event])
    launched_events: Ints = trace.device_events["event"].to_numpy()[events]
    return launched_events


def _calls_inside(trace: Trace, event: int) -> Ints:
    columns, calls = trace.columns, trace.runtime_calls
    start_ns, duration_ns = int(columns.start_ns[event]), int(columns.duration_ns[event])
    low, high = np.searchsorted(
        calls["start_ns"].to_numpy(), [start_ns, start_ns + max(duration_ns, 0)]
    ).tolist()
    threads = calls["thread"].cat.codes.to_numpy()[low:high]
    rows: Ints = low + np.flatnonzero(threads == trace.source.threads[0][event])
    return rows


def linked_events(trace: Trace, event: int) -> Iterator[LinkedEvents]:
    """Yield the links of an event; none if they are unknown."""
    kind = Kind(int(trace.source.kinds[event]))
    if kind in DEVICE_KINDS:
        call, operator = launched_by(trace, event)
        yield _linked("launched by", [call])
        yield _linked("launched by operator", [operator])
        yield _linked("awaited by", _waits(trace, event, is_device=True))
        if operator != NONE:
            forward, backward = passes_around(trace, operator)
            yield _linked("forward", [forward])
            yield _linked("backward", backward)
    elif kind in HOST_KINDS or kind is Kind.RUNTIME_CALL:
        yield _linked("launches", launched(trace, event))
    if kind is Kind.RUNTIME_CALL:
        yield _linked("waits for", _waits(trace, event, is_device=False))
    if kind is Kind.OPERATOR:
        forward, backward = passes(trace, event)
        yield _linked("forward", [forward])
        yield _linked("backward", backward)
    if kind is Kind.SYNCHRONIZATION:
        yield _linked("recorded of", [_call_of_record(trace, event)])


def passes(trace: Trace, event: int) -> tuple[int, Ints]:
    """Return the forward operator of a backward call, and the backward calls of a forward one."""
    calls = trace.host_calls
    row = _row(calls, event)
    if row == NONE:
        return NONE, np.zeros(0, dtype=np.int64)
    pairs = forward_backward(trace)
    node = int(pairs.node[row])
    if node == NONE:  # the engine's own call around a node
        rows = np.flatnonzero(pairs.wrapper == row)
        node = int(rows[0]) if len(rows) else NONE
    forward = int(pairs.forward[node]) if node != NONE else NONE
    backward = np.flatnonzero(pairs.forward == row)
    return _event(calls, forward), calls["event"].to_numpy()[backward]


def passes_around(trace: Trace, event: int) -> tuple[int, Ints]:
    """Return `passes` of a call, or of the innermost call around it with a backward node.

    The call that launches work may be an inner call of the operator with the node.
    """
    forward, backward = passes(trace, event)
    if forward != NONE or len(backward):
        return forward, backward
    calls, made_by = trace.host_calls, forward_backward(trace).forward
    around = _with_those_around(calls["parent"].to_numpy(), _row(calls, event))
    nodes = np.flatnonzero(np.isin(made_by, around))
    makers = set(made_by[nodes].tolist())
    innermost = next((row for row in around if row in makers), NONE)
    return NONE, calls["event"].to_numpy()[nodes[made_by[nodes] == innermost]]


def _with_those_around(parent: Ints, row: int) -> list[int]:
    """Return a call and its parents, the innermost first."""
    chain = []
    while row != NONE:
        chain.append(row)
        row = int(parent[row])
    return chain


def _waits(trace: Trace, event: int, *, is_device: bool) -> Ints:
    """Return the work that a blocking call waited for, or the calls that waited for an event."""
    try:
        syncs, awaited = synchronizations(trace), awaited_work(trace)
    except MissingDataError:
        return np.zeros(0, dtype=np.int64)
    calls = np.append(trace.runtime_calls["event"].to_numpy(), NONE)[syncs.calls]
    work = np.append(trace.device_events["event"].to_numpy(), NONE)[awaited]
    waits: Ints = calls[work == event] if is_device else work[calls == event]
    return waits


def _call_of_record(trace: Trace, event: int) -> int:
    records = trace.synchronization_events
    row = _row(records, event)
    if row == NONE:
        return NONE
    number = records["correlation"].to_numpy()[row : row + 1]
    call = int(rows_of_keys(number, trace.runtime_calls["correlation"].to_numpy())[0])
    return _event(trace.runtime_calls, call)


def _linked(kind: str, events: Ints | list[int]) -> LinkedEvents:
    numbers = np.asarray(events, dtype=np.int64)
    return LinkedEvents(kind=kind, events=numbers[numbers >= 0])


def _row(frame: pd.DataFrame, event: int) -> int:
    """Return an event's row in a frame, or -1."""
    rows = np.flatnonzero(frame["event"].to_numpy() == event)
    return int(rows[0]) if len(rows) else NONE


def _event(frame: pd.DataFrame, row: int) -> int:
    return int(frame["event"].to_numpy()[row]) if row != NONE else NONE
