"""Compilations during the trace, their cost, and inputs that change their shape from call to call.

A compilation is an outermost phase that dynamo times; its parts are the phases inside of the names
in `PARTS`.

With gradients, a compiled frame's graph is called as `CompiledFunction`, with input shapes if
record_shapes is on. Traces do not contain guards.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.compile_events import (
    COMPILE_ID,
    ID_ARGUMENT,
    REGION,
    TIMED,
    compile_events,
    name_parts,
    outermost_named,
)
from stepscope.analyses.core.event_references import user_calls
from stepscope.analyses.core.host_activity import main_thread_stacks
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Floats, Ints, Objects
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.steps import step_at
from stepscope.model.intervals import Intervals
from stepscope.model.table import plain_values, public_table, to_frame
from stepscope.model.trace import Trace, computed

PARTS = {
    "tracing_ns": "bytecode_tracing (dynamo_timed)",
    "backend_ns": "OutputGraph.call_user_compiler (dynamo_timed)",
    "guards_ns": "build_guards (dynamo_timed)",
    "code_generation_ns": "GraphLowering.compile_to_module (dynamo_timed)",
}
"""Column to dynamo's name of the phase."""
SCHEMA: Schema = (
    Column("event", "int64", "id", "The phase's index in the file."),
    Column("phase", "object", "text", "Dynamo's name of it; `_compile.compile_inner`: a frame."),
    Column("compile_id", "object", "text", "`frame/compilation`; None: torch before 2.12."),
    Column("is_recompilation", "object", "", "Of a frame compiled before; None: unknown."),
    Column("step", "object", "text", "The step in which it began; None: no step."),
    Column("thread", "object", "text", "The host thread, as `pid/tid`."),
    Column("start_ns", "int64", "ns", "Its start, from the trace's first event."),
    Column("duration_ns", "int64", "ns", "Its duration."),
    Column("tracing_ns", "float64", "ns", "Part of bytecode tracing; NaN: not timed."),
    Column("backend_ns", "float64", "ns", "Part of the backend (Inductor); NaN: not timed."),
    Column("guards_ns", "float64", "ns", "Part of building guards; NaN: not timed."),
    Column("code_generation_ns", "float64", "ns", "Part of Inductor's code generation; NaN: none."),
    Column("source_line", "object", "text", "The user's running function; None: no stacks."),
)


@public_table(
    "compilations",
    SCHEMA,
    "One row per compilation of torch.compile in the trace: its frame, whether it is a"
    " recompilation, and its duration.",
)
@computed
def compilation_table(trace: Trace) -> pd.DataFrame:
    """Return one row per compilation, in the order they began."""
    calls, phase = trace.host_calls, compile_events(trace).phase
    rows = np.flatnonzero(phase == np.arange(len(phase)))
    selected = calls.iloc[rows]
    ids = _compile_ids(trace, rows)
    start = selected["start_ns"].to_numpy()
    columns: dict[str, NDArray[Any]] = {
        "event": selected["event"].to_numpy(),
        "phase": name_parts(trace, rows, TIMED, "phase"),
        "compile_id": ids,
        "is_recompilation": np.array([_is_again(text) for text in ids], dtype=object),
        "step": _steps(trace, start),
        "thread": plain_values(selected["thread"]),
        "start_ns": start,
        "duration_ns": selected["duration_ns"].to_numpy(),
        **{column: _part(trace, rows, name) for column, name in PARTS.items()},
        "source_line": _lines(trace, start),
    }
    return to_frame(SCHEMA, columns)


def _compile_ids(trace: Trace, rows: Ints) -> NDArray[Any]:
    phase = compile_events(trace).phase
    inside = np.flatnonzero(phase >= 0)
    ids = name_parts(trace, inside, ID_ARGUMENT, "id")
    index = np.searchsorted(rows, phase[inside])
    telling = np.flatnonzero(~pd.isna(ids))[::-1]
    first_ids = np.full(len(rows), None, dtype=object)
    first_ids[index[telling]] = ids[telling]  # what is set last, the first, stays
    return first_ids


def _is_again(compile_id: str | None) -> bool | None:
    match = COMPILE_ID.fullmatch(compile_id) if compile_id else None
    return int(match["number"]) > 0 if match and match["number"] else None


def _part(trace: Trace, rows: Ints, name: str) -> Floats:
    """Return the time of the outermost phases of a name in each compilation; NaN: none."""
    if not len(rows):
        return np.zeros(0)
    calls, phase = trace.host_calls, compile_events(trace).phase
    is_part = name_mask(calls["name"], name.__eq__)
    parts = np.flatnonzero(is_part & (phase >= 0))
    nested = np.append(is_part, False)[calls["parent"].to_numpy()[parts]]
    parts = parts[~nested]
    spent = np.full(len(calls), np.nan)
    spent[phase[parts]] = 0
    np.add.at(spent, phase[parts], calls["duration_ns"].to_numpy()[parts])
    return np.asarray(spent[rows])


def _steps(trace: Trace, moment_ns: Ints) -> NDArray[Any]:
    names = np.array([*plain_values(trace.steps["name"]), None], dtype=object)
    return np.asarray(names[step_at(trace.steps, moment_ns)])


def _lines(trace: Trace, moment_ns: Ints) -> NDArray[Any]:
    names = np.array([*user_calls(trace)["name"].cat.categories, None], dtype=object)
    places = main_thread_stacks(trace)
    return np.asarray(names[places.function[places.at(moment_ns)]])


AROUND = re.compile(r"^dynamo$|CompiledFunctionBackward$")
"""dynamo's call of a frame; the backward of compiled code, and autograd's call of it."""


def compiling_calls(trace: Trace, rows: Ints, ids: set[str]) -> Intervals:
    """Return the times of calls that had to compile, and of the first runs of the compiled code.

    The former include guard checks, dynamo's calls and autograd's call of a backward pass that is
    compiled on first use; newly compiled code runs slowly at first. `rows` are the compilations'
    rows of `host_calls`, `ids` their compile ids.
    """
    outer = outermost_named(trace, AROUND)[rows]
    around = np.where(outer == NONE, rows, outer)
    return intervals.merged(
        frame_times.times(trace.host_calls, around),
        frame_times.times(trace.host_calls, _first_runs(trace, ids)),
    )


def _first_runs(trace: Trace, ids: set[str]) -> Ints:
    regions = np.flatnonzero(name_mask(trace.host_calls["name"], REGION.search))
    called = pd.Series(name_parts(trace, regions, REGION, "id"))
    return regions[(called.isin(ids) & ~called.duplicated()).to_numpy()]


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
