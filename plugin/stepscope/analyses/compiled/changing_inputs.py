"""Which inputs of compiled frames change their shape from call to call.

Where gradients are wanted, a compiled frame's graph is called as `CompiledFunction`, whose inputs'
shapes are recorded with record_shapes. Guards themselves are not in a trace.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stepscope.analyses.compiled.compile_events import COMPILE_ID, REGION, compile_events, matching
from stepscope.frames.naming import named
from stepscope.trace import Trace

CALL = "CompiledFunction"
MOST_SHAPES = 64
"""Distinct lists of shapes that are looked at: more say no more."""
Change = Literal["sizes", "dimensions", "none", "unknown"]


@dataclass(frozen=True, kw_only=True)
class ChangingInputs:
    """How the inputs of some frames change between their calls."""

    change: Change
    """`sizes` of dimensions, the number of `dimensions`, `none` of both, or `unknown`."""
    dimension: int = -1
    """Of `sizes`: the first dimension that changes."""
    sizes: tuple[int, ...] = ()
    """Of `sizes`: what it was, in rising order."""


def changing_inputs(trace: Trace, frames: Iterable[int]) -> ChangingInputs:
    """Return how the inputs of these frames (by dynamo's number) change."""
    calls = trace.host_calls
    rows = np.flatnonzero(named(calls["name"], CALL.__eq__))
    ids = matching(trace, compile_events(trace).region[rows], REGION, "id")
    found = [_change(trace, rows[_is_of(ids, frame)]) for frame in sorted(set(frames))]
    order: tuple[Change, ...] = ("sizes", "dimensions", "none", "unknown")
    return min(found, key=lambda each: order.index(each.change), default=UNKNOWN)


UNKNOWN = ChangingInputs(change="unknown")


def _is_of(ids: "np.ndarray[tuple[int], np.dtype[np.object_]]", frame: int) -> list[bool]:
    matches = [COMPILE_ID.fullmatch(text) if text else None for text in ids]
    return [bool(match and match["frame"] == str(frame)) for match in matches]


def _change(trace: Trace, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> ChangingInputs:
    texts = trace.host_calls["input_dims"].iloc[rows].dropna().unique()[:MOST_SHAPES]
    lists = [shapes for text in texts if (shapes := _shapes(str(text))) is not None]
    if len(rows) < 2 or not lists or len({len(shapes) for shapes in lists}) > 1:
        return UNKNOWN
    for each in zip(*lists, strict=True):
        if len({len(shape) for shape in each}) > 1:
            return ChangingInputs(change="dimensions")
        for place, sizes in enumerate(zip(*each, strict=True)):
            if len(set(sizes)) > 1:
                return ChangingInputs(
                    change="sizes", dimension=place, sizes=tuple(sorted(set(sizes)))
                )
    return ChangingInputs(change="none")


def _shapes(text: str) -> list[list[int]] | None:
    try:
        shapes = json.loads(text)
    except ValueError:
        return None
    if not isinstance(shapes, list):
        return None
    return [shape if isinstance(shape, list) else [] for shape in shapes]
