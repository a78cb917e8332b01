"""Details of one slice: its callers, arguments, stack, module, step and linked events."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from stepscope.analyses.core.event_references import FRAME
from stepscope.analyses.host.module_tree import LIGHTNING_MODULE, TORCH_MODULE
from stepscope.analyses.timeline.linked_slices import (
    LinkedEvents,
    launched,
    launched_by,
    linked_events,
    passes,
)
from stepscope.analyses.timeline.slice_categories import CODES
from stepscope.analyses.timeline.slice_neighbors import around, children, duration_ns
from stepscope.analyses.timeline.timeline import Timeline, timeline
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.trace import Trace

NESTED_TRACKS = frozenset({"thread", "annotations"})
CALL_STACK = "Call stack"
Origin = Literal["itself", "launch", "forward", ""]
"""Owner of a stack: the slice, the call that launched it, or its forward operator."""
Value = str | int | float


@dataclass(frozen=True)
class StackFrame:
    """One function of a stack."""

    function: str
    file: str
    """Empty for a built-in function."""
    line: int
    """0 if unknown."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Details:
    """Details of a slice; other slices are given by their events."""

    index: int
    parents: list[int]
    """Slices that contain it, the outermost first."""
    child_count: int
    self_ns: int | None
    """Without the slices in the next row; None if slices do not nest."""
    arguments: list[tuple[str, Value]]
    stack: list[StackFrame]
    stack_of: Origin
    module: str
    operator: int
    """The innermost operator around it or its launch, as an event; -1: none."""
    step: int | None
    """Number of the step of the host, or of the launch."""
    device_ns: int | None
    """Device time that it launched, including its callees; None if it launched nothing."""
    links: list[LinkedEvents]


def details(trace: Trace, event: int) -> Details:
    """Return the details of an event's slice.

    Raises:
        UnknownNameError: the event is none of the timeline's slices.
    """
    layout = timeline(trace)
    index = layout.slice_index(event)
    nests = layout.tracks[track_of(layout, index)].kind in NESTED_TRACKS
    inner = children(layout.slices, index)
    call, owner = launched_by(trace, event)
    cause = int(layout.slice_of_event[call]) if call != NONE else index
    frames, origin = _stack(trace, layout, index, cause)
    operator = _operator_of(layout, cause)
    return Details(
        index=index,
        parents=around(layout.slices, index),
        child_count=len(inner),
        self_ns=_self_ns(layout, index, inner) if nests else None,
        arguments=_arguments(trace, event),
        stack=frames,
        stack_of=origin,
        module=_module_of(layout, cause) or _module_of_forward(trace, layout, event),
        operator=int(layout.slices.event[operator]) if operator != NONE else owner,
        step=_step(layout, cause),
        device_ns=_device_ns(trace, event),
        links=[link for link in linked_events(trace, event) if len(link.events)],
    )


def track_of(layout: Timeline, index: int) -> int:
    """Return the track of a slice."""
    row = int(layout.slices.row_of(np.array([index]))[0])
    return int(layout.slices.row_track[row])


def _self_ns(layout: Timeline, index: int, inner: Ints) -> int:
    """Return a slice's time without its children, which may cross each other."""
    times = layout.slices.times
    start_ns = times.start_ns[inner]
    covered = intervals.union(start_ns, start_ns + times.duration_ns(inner))
    return duration_ns(layout.slices, index) - intervals.duration_ns(covered)


def _step(layout: Timeline, cause: int) -> int | None:
    start_ns = int(layout.slices.times.start_ns[cause])
    steps = layout.steps
    starts_ns, ends_ns = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    rows = np.flatnonzero((starts_ns <= start_ns) & (start_ns < ends_ns))
    return int(steps["number"].to_numpy()[rows[-1]]) if len(rows) else None


def _device_ns(trace: Trace, event: int) -> int | None:
    events = launched(trace, event)
    if not len(events):
        return None
    return int(np.maximum(trace.columns.duration_ns[events], 0).sum())


# --- arguments ------------------------------------------------------------------------------------


def _arguments(trace: Trace, event: int) -> list[tuple[str, Value]]:
    """Return an event's arguments in the order of their first occurrence in the file."""
    values = ((key, _argument(trace, event, key)) for key in trace.columns.arguments)
    return [(key, value) for key, value in values if value is not None]


def _argument(trace: Trace, event: int, key: str) -> Value | None:
    column = trace.columns.arguments.get(key)
    if column is None:
        return None
    row = int(column.rows.searchsorted(np.int32(event)))  # of their type, or all are converted
    if row == len(column.rows) or int(column.rows[row]) != event:
        return None
    value: Value = column.values[row].item()
    return value if column.texts is None else column.texts[int(value)]


# --- stack, module and operator -------------------------------------------------------------------


def _stack(
    trace: Trace, layout: Timeline, index: int, cause: int
) -> tuple[list[StackFrame], Origin]:
    frames = _stack_of(trace, layout, cause)
    if frames:
        return frames, "itself" if cause == index else "launch"
    forward = _forward(trace, int(layout.slices.event[cause]))
    if forward == NONE or layout.slice_of_event[forward] == NONE:
        return [], ""
    frames = _stack_of(trace, layout, int(layout.slice_of_event[forward]))
    return frames, "forward" if frames else ""


def _stack_of(trace: Trace, layout: Timeline, index: int) -> list[StackFrame]:
    """Return the Python functions around a slice, the outermost first.

    Without recorded functions, it is the stack argument of the event or of a slice around it.
    """
    outer = around(layout.slices, index)
    python = CODES["python"]
    calls = [call for call in outer if int(layout.slices.category[call]) == python]
    if calls:
        return [_frame(_name(layout, call)) for call in calls]
    if CALL_STACK not in trace.columns.arguments:
        return []
    for owner in (index, *reversed(outer)):
        text = _argument(trace, int(layout.slices.event[owner]), CALL_STACK)
        if text:
            return [_frame(line) for line in reversed(str(text).split(";")) if line]
    return []


def _frame(name: str) -> StackFrame:
    match = FRAME.match(name)
    if match is None:
        return StackFrame(name, "", 0)
    return StackFrame(match["function"], match["path"], int(match["line"]))


def _name(layout: Timeline, index: int) -> str:
    return layout.names[int(layout.slices.name[index])]


def _forward(trace: Trace, event: int) -> int:
    """Return the forward operator of a backward operator, or -1."""
    if trace.source.kinds[event] != int(Kind.OPERATOR):
        return NONE
    return passes(trace, event)[0]


def _module_of(layout: Timeline, index: int) -> str:
    """Return the innermost module at or around a slice, or ""."""
    for call in (index, *reversed(around(layout.slices, index))):
        name = _name(layout, call)
        match = TORCH_MODULE.match(name) or LIGHTNING_MODULE.match(name)
        if match is not None:
            return match["name"]
    return ""


def _module_of_forward(trace: Trace, layout: Timeline, event: int) -> str:
    _, owner = launched_by(trace, event)
    forward = _forward(trace, owner if owner != NONE else event)
    index = int(layout.slice_of_event[forward]) if forward != NONE else NONE
    return _module_of(layout, index) if index != NONE else ""


def _operator_of(layout: Timeline, index: int) -> int:
    """Return the innermost operator around a slice, or -1."""
    outer = reversed(around(layout.slices, index))
    codes = layout.slices.category
    return next((call for call in outer if int(codes[call]) == CODES["cpu"]), NONE)
