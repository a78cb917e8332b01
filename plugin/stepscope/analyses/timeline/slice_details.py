"""All that is known of one slice."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.timeline.event_arguments import Value, arguments_of
from stepscope.analyses.timeline.linked_slices import (
    LinkedEvents,
    launched,
    launched_by,
    linked_events,
    passes,
)
from stepscope.analyses.timeline.slice_neighbors import around, children, duration_ns
from stepscope.analyses.timeline.slice_stack import (
    Origin,
    StackFrame,
    module_of,
    operator_of,
    stack_of,
)
from stepscope.analyses.timeline.timeline import Timeline, timeline
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.trace import Trace

NONE = -1
NESTED_TRACKS = frozenset({"thread", "annotations"})


@dataclass(frozen=True, kw_only=True, eq=False)
class Details:
    """What is known of a slice; other slices are told by their events."""

    place: int
    parents: list[int]
    """Slices that contain it, the outermost first."""
    child_count: int
    self_ns: int | None
    """Without the slices in the next row; None where slices do not nest."""
    arguments: list[tuple[str, Value]]
    stack: list[StackFrame]
    stack_of: Origin
    module: str
    operator: int
    """The innermost operator around it or its launch, as an event; -1: none."""
    step: int | None
    """Of the host, or of the launch: the step's number."""
    device_ns: int | None
    """Of what it launched, with what it called; None for what launches nothing."""
    links: list[LinkedEvents]


def details(trace: Trace, event: int) -> Details:
    """Return what is known of an event's slice.

    Raises:
        UnknownNameError: the event is none of the timeline's slices.
    """
    found = timeline(trace)
    place = found.slice_index(event)
    track = found.tracks[track_of(found, place)]
    nests = track.kind in NESTED_TRACKS
    within = children(found.slices, place)
    call, owner = launched_by(trace, event)
    cause = int(found.slice_of_event[call]) if call != NONE else place
    frames, origin = _stack(trace, found, place, cause)
    inner = operator_of(found, cause)
    return Details(
        place=place,
        parents=around(found.slices, place),
        child_count=len(within),
        self_ns=_self_ns(found, place, within) if nests else None,
        arguments=arguments_of(trace, event),
        stack=frames,
        stack_of=origin,
        module=module_of(found, cause) or _module_of_forward(trace, found, event),
        operator=int(found.slices.event[inner]) if inner != NONE else owner,
        step=_step(found, cause),
        device_ns=_device_ns(trace, event),
        links=[each for each in linked_events(trace, event) if len(each.events)],
    )


def track_of(found: Timeline, place: int) -> int:
    """Return the track that a slice lies on."""
    row = int(found.slices.row_of(np.array([place]))[0])
    return int(found.slices.row_track[row])


def _self_ns(found: Timeline, place: int, within: NDArray[np.int64]) -> int:
    """Return what is left of a slice; those that it contains may cross each other."""
    times = found.slices.times
    start_ns = times.start_ns[within]
    inner = intervals.union(start_ns, start_ns + times.duration_ns(within))
    return duration_ns(found.slices, place) - intervals.duration_ns(inner)


def _stack(
    trace: Trace, found: Timeline, place: int, cause: int
) -> tuple[list[StackFrame], Origin]:
    own = stack_of(trace, found, cause)
    if own:
        return own, "itself" if cause == place else "launch"
    forward = _forward(trace, int(found.slices.event[cause]))
    if forward == NONE or found.slice_of_event[forward] == NONE:
        return [], ""
    others = stack_of(trace, found, int(found.slice_of_event[forward]))
    return others, "forward" if others else ""


def _forward(trace: Trace, event: int) -> int:
    """Return the forward operator that a host event is the backward of, or -1."""
    if trace.source.kinds[event] != int(Kind.OPERATOR):
        return NONE
    return passes(trace, event)[0]


def _module_of_forward(trace: Trace, found: Timeline, event: int) -> str:
    _, owner = launched_by(trace, event)
    forward = _forward(trace, owner if owner != NONE else event)
    place = int(found.slice_of_event[forward]) if forward != NONE else NONE
    return module_of(found, place) if place != NONE else ""


def _step(found: Timeline, cause: int) -> int | None:
    start_ns = int(found.slices.times.start_ns[cause])
    steps = found.steps
    within = np.flatnonzero(
        (steps["start_ns"].to_numpy() <= start_ns) & (start_ns < steps["end_ns"].to_numpy())
    )
    return int(steps["number"].to_numpy()[within[-1]]) if len(within) else None


def _device_ns(trace: Trace, event: int) -> int | None:
    events = launched(trace, event)
    if not len(events):
        return None
    return int(np.maximum(trace.columns.duration_ns[events], 0).sum())
