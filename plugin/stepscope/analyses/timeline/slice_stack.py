"""The Python functions that led to a slice, with their files and lines."""

from dataclasses import dataclass
from typing import Literal

from stepscope.analyses.core.event_references import FRAME
from stepscope.analyses.host.module_names import LIGHTNING_MODULE, TORCH_MODULE
from stepscope.analyses.timeline.event_arguments import argument_of
from stepscope.analyses.timeline.slice_categories import CODES
from stepscope.analyses.timeline.slice_neighbors import around
from stepscope.analyses.timeline.timeline import Timeline
from stepscope.model.trace import Trace

CALL_STACK = "Call stack"
Origin = Literal["itself", "launch", "forward", ""]
"""Whose stack it is: the slice's, that of what launched it, or of what it is the backward of."""


@dataclass(frozen=True)
class StackFrame:
    """One function of a stack."""

    function: str
    file: str
    """Empty where it has none, as what is built in."""
    line: int
    """0 where there is none."""


def stack_of(trace: Trace, found: Timeline, place: int) -> list[StackFrame]:
    """Return the Python functions around a slice, the outermost first; without itself.

    Where none were recorded it is the text that the event, or what contains it, has for a stack.
    """
    over = around(found.slices, place)
    python = CODES["python"]
    frames = [each for each in over if int(found.slices.category[each]) == python]
    if frames:
        return [frame_of(found.names[int(found.slices.name[each])]) for each in frames]
    if CALL_STACK not in trace.columns.arguments:
        return []
    for each in (place, *reversed(over)):
        text = argument_of(trace, int(found.slices.event[each]), CALL_STACK)
        if text:
            return [frame_of(line) for line in reversed(str(text).split(";")) if line]
    return []


def frame_of(name: str) -> StackFrame:
    """Return what the name of a Python call says."""
    match = FRAME.match(name)
    if match is None:
        return StackFrame(name, "", 0)
    return StackFrame(match["function"], match["path"], int(match["line"]))


def module_of(found: Timeline, place: int) -> str:
    """Return the innermost module around a slice, or that it is; empty where there is none."""
    for each in (place, *reversed(around(found.slices, place))):
        name = found.names[int(found.slices.name[each])]
        match = TORCH_MODULE.match(name) or LIGHTNING_MODULE.match(name)
        if match is not None:
            return match["name"]
    return ""


def operator_of(found: Timeline, place: int) -> int:
    """Return the innermost operator around a slice, or -1."""
    operators = (
        each
        for each in reversed(around(found.slices, place))
        if int(found.slices.category[each]) == CODES["cpu"]
    )
    return next(operators, -1)
