"""Inputs of compiled frames that change their shape from call to call.

With gradients, a compiled frame's graph is called as `CompiledFunction`, with input shapes if
record_shapes is on. Traces do not contain guards.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from stepscope.analyses.core.compile_events import COMPILE_ID, REGION, compile_events, name_parts
from stepscope.model.arrays import NONE, Ints, Objects
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace

CALL = "CompiledFunction"
MOST_SHAPES = 64
"""Most distinct lists of shapes to compare."""
Change = Literal["sizes", "dimensions", "none", "unknown"]


@dataclass(frozen=True, kw_only=True)
class ChangingInputs:
    """Change of the inputs of some frames between calls."""

    change: Change
    """`sizes` of dimensions, the number of `dimensions`, `none` of both, or `unknown`."""
    dimension: int = -1
    """Of `sizes`: the first dimension that changes."""
    sizes: tuple[int, ...] = ()
    """Of `sizes`: its sizes, ascending."""


def changing_inputs(trace: Trace, frames: Iterable[int]) -> ChangingInputs:
    """Return the change of the inputs of these frames (by dynamo's number)."""
    calls = trace.host_calls
    rows = np.flatnonzero(name_mask(calls["name"], CALL.__eq__))
    ids = name_parts(trace, compile_events(trace).region[rows], REGION, "id")
    frame_of_call = _frames(ids)
    changes = [_change(trace, rows[frame_of_call == frame]) for frame in sorted(set(frames))]
    order: tuple[Change, ...] = ("sizes", "dimensions", "none", "unknown")
    return min(changes, key=lambda change: order.index(change.change), default=UNKNOWN)


UNKNOWN = ChangingInputs(change="unknown")


def _frames(ids: Objects) -> Ints:
    codes, distinct = pd.factorize(ids)
    matches = [COMPILE_ID.fullmatch(str(text)) for text in distinct]
    numbers = [int(match["frame"] or NONE) if match else NONE for match in matches]
    return np.array([*numbers, NONE], dtype=np.int64)[codes]


def _change(trace: Trace, rows: Ints) -> ChangingInputs:
    texts = trace.host_calls["input_dims"].iloc[rows].dropna().unique()[:MOST_SHAPES]
    lists = [shapes for text in texts if (shapes := _shapes(str(text))) is not None]
    if len(rows) < 2 or not lists or len({len(shapes) for shapes in lists}) > 1:
        return UNKNOWN
    for shapes_of_input in zip(*lists, strict=True):
        if len({len(shape) for shape in shapes_of_input}) > 1:
            return ChangingInputs(change="dimensions")
        for dimension, sizes in enumerate(zip(*shapes_of_input, strict=True)):
            if len(set(sizes)) > 1:
                return ChangingInputs(
                    change="sizes", dimension=dimension, sizes=tuple(sorted(set(sizes)))
                )
    return ChangingInputs(change="none")


def _shapes(text: str) -> list[list[int]] | None:
    try:
        shapes = json.loads(text)
    except ValueError:
        return None
    is_plain = isinstance(shapes, list) and all(isinstance(shape, list) for shape in shapes)
    return shapes if is_plain else None
