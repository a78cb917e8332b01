"""Recorded and simulated events of one step on the host and on streams, for a picture.

Events that are shorter than a pixel are merged with their neighbours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.core.window import complete_steps
from stepscope.analyses.timeline.slice_categories import category_codes
from stepscope.base.errors import UnknownNameError
from stepscope.model.arrays import Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.steps import STEP_NAME
from stepscope.model.trace import Trace
from stepscope.replay.points import chain_of_thread
from stepscope.replay.simulated_events import (
    Span,
    simulated_device_events,
    simulated_host_events,
)
from stepscope.replay.simulation import Simulation

MOST_STREAMS = 6
MOST_BLOCKS = 10_000
"""Limit of a lane."""
LEVELS = ("host", "host, inside")
"""Labels of the outermost calls, and of those inside them."""


class Blocks(NamedTuple):
    """Events of a lane by start, the short ones merged; arrays of shape (n,)."""

    start_ns: Ints
    """From the step's start; below 0 for an event that began before."""
    end_ns: Ints
    name: Ints
    """Code of the first event's name in the lane's `names`."""
    category: Ints
    """Code in `slice_categories.CATEGORIES` of the first event."""
    event_count: Ints
    change_ns: Ints
    """Simulated minus recorded time of the events."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lane:
    """A row of events, as recorded and as simulated."""

    label: str
    names: tuple[str, ...]
    recorded: Blocks
    simulated: Blocks


@dataclass(frozen=True, kw_only=True, eq=False)
class StepLanes:
    """The lanes of one step, or of the whole window of a trace without steps."""

    step: int | None
    steps: tuple[int, ...]
    """Numbers of all steps."""
    start_ns: int
    """Recorded start."""
    recorded_ns: int
    """Length of the step on the host."""
    simulated_ns: int
    lanes: tuple[Lane, ...]


class _Events(NamedTuple):
    label: str
    frame: pd.DataFrame
    simulated: Span


class Stretch(NamedTuple):
    """A time on the trace's clock."""

    start_ns: int
    end_ns: int


def step_lanes(
    trace: Trace, simulation: Simulation, *, step: int | None = None, pixels: int = 1000
) -> StepLanes:
    """Return the lanes of a step; by default, of one that takes about as long as the others.

    Raises:
        UnknownNameError: the trace has no such step.
    """
    steps = complete_steps(trace).steps
    number, *stretches = _stretches(trace, simulation, steps, step)
    lengths_ns = [stretch.end_ns - stretch.start_ns for stretch in stretches]
    pixel_ns = max(1, max(lengths_ns) // pixels)
    rows = _rows(trace, simulation, stretches[0])
    lanes = (_lane(trace, events, stretches, pixel_ns) for events in rows)
    return StepLanes(
        step=number,
        steps=tuple(steps["number"].tolist()),
        start_ns=stretches[0].start_ns,
        recorded_ns=lengths_ns[0],
        simulated_ns=lengths_ns[1],
        lanes=tuple(lane for lane in lanes if len(lane.recorded.start_ns)),
    )


def _stretches(
    trace: Trace, simulation: Simulation, steps: pd.DataFrame, step: int | None
) -> tuple[int | None, Stretch, Stretch]:
    """Return the step's number, and its recorded and simulated start and end."""
    if not len(steps):
        points, graph = simulation.points, simulation.graph
        return None, _extent(graph.time_ns[points]), _extent(simulation.time_ns[points])
    row = _row_of(steps, step)
    part = steps.iloc[[row]]
    moved = simulated_host_events(trace, simulation, part)
    start_ns, end_ns = (int(part[name].iloc[0]) for name in ("start_ns", "end_ns"))
    simulated = Stretch(int(moved.start_ns[0]), int(moved.end_ns[0]))
    return int(part["number"].iloc[0]), Stretch(start_ns, end_ns), simulated


def _extent(time_ns: Ints) -> Stretch:
    return Stretch(int(time_ns.min()), int(time_ns.max())) if len(time_ns) else Stretch(0, 0)


def _row_of(steps: pd.DataFrame, step: int | None) -> int:
    if step is None:
        duration_ns = (steps["end_ns"] - steps["start_ns"]).to_numpy()
        return int(np.abs(duration_ns - np.median(duration_ns)).argmin())
    rows = np.flatnonzero(steps["number"].to_numpy() == step)
    if not len(rows):
        msg = f"there is no complete step {step}"
        raise UnknownNameError(msg)
    return int(rows[0])


def _rows(trace: Trace, simulation: Simulation, stretch: Stretch) -> Iterator[_Events]:
    for label, calls in _host_rows(trace):
        reaches = (calls["end_ns"] > stretch.start_ns) & (calls["start_ns"] < stretch.end_ns)
        part = calls[reaches]
        yield _Events(label, part, simulated_host_events(trace, simulation, part))
    device, moved = trace.device_events, simulated_device_events(trace, simulation)
    start, end = device["start_ns"].to_numpy(), device["end_ns"].to_numpy()
    busy_ns = np.minimum(end, stretch.end_ns) - np.maximum(start, stretch.start_ns)
    busy = device[["device", "stream"]].assign(busy_ns=np.maximum(0, busy_ns))
    streams = busy.groupby(["device", "stream"])["busy_ns"].sum()
    busiest = streams[streams > 0].nlargest(MOST_STREAMS).sort_index()
    prefix = "device {}, " if len({number for number, _ in busiest.index}) > 1 else ""
    for number, stream in busiest.index:
        is_inside = (device["device"] == number) & (device["stream"] == stream)
        rows = np.flatnonzero(is_inside.to_numpy())
        times = Span(*(of[rows] for of in moved))
        yield _Events(f"{prefix.format(number)}stream {stream}", device.iloc[rows], times)


def _host_rows(trace: Trace) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the training loop's outermost calls, those inside them, and its waits."""
    calls, chain_of = trace.host_calls, chain_of_thread(trace)
    is_inside = chain_of[calls["thread"].cat.codes.to_numpy()] == 0
    parents = np.append(np.flatnonzero(name_mask(calls["name"], STEP_NAME.match)), -1)
    is_step = name_mask(calls["name"], STEP_NAME.match)
    for label in LEVELS:
        rows = np.flatnonzero(is_inside & ~is_step & np.isin(calls["parent"].to_numpy(), parents))
        yield label, calls.iloc[rows]
        parents = rows
    waits = trace.runtime_calls.iloc[synchronizations(trace).calls]
    is_loop = chain_of[waits["thread"].cat.codes.to_numpy()] == 0
    yield "waits", waits[is_loop]


def _lane(trace: Trace, events: _Events, stretches: Sequence[Stretch], pixel_ns: int) -> Lane:
    frame, names = events.frame, events.frame["name"].cat
    category = category_codes(trace.source, frame["event"].to_numpy()).astype(np.int64)
    times = Span(frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy()), events.simulated
    recorded_ns, simulated_ns = (of.end_ns - of.start_ns for of in times)
    columns = np.stack((names.codes.to_numpy(), category, simulated_ns - recorded_ns))
    blocks = [
        _blocks(of, columns, stretch, pixel_ns)
        for of, stretch in zip(times, stretches, strict=True)
    ]
    codes = np.concatenate([part.name for part in blocks])
    used, renumbered = np.unique(codes, return_inverse=True)
    first = len(blocks[0].name)
    return Lane(
        label=events.label,
        names=tuple(str(names.categories[code]) for code in used),
        recorded=blocks[0]._replace(name=renumbered[:first]),
        simulated=blocks[1]._replace(name=renumbered[first:]),
    )


def _blocks(times: Span, columns: Ints, stretch: Stretch, pixel_ns: int) -> Blocks:
    """Return the events that reach into a stretch; `columns`: name, category and change of each."""
    start, end = (of - stretch.start_ns for of in times)
    rows = np.flatnonzero((end > 0) & (start < stretch.end_ns - stretch.start_ns) & (end > start))
    rows = rows[np.argsort(start[rows], kind="stable")]
    start, end = start[rows], end[rows]
    name, category, change_ns = columns[:, rows]
    is_short, pixel = end - start < pixel_ns, start // pixel_ns
    joins = is_short[1:] & is_short[:-1] & (pixel[1:] == pixel[:-1])
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = ~joins
    first = np.flatnonzero(begins)
    count = np.diff(np.append(first, len(rows)))
    merged = Blocks(
        start_ns=start[first],
        end_ns=np.maximum.reduceat(end, first) if len(first) else end,
        name=name[first],
        category=category[first],
        event_count=count,
        change_ns=np.add.reduceat(change_ns, first) if len(first) else change_ns,
    )
    return Blocks(*(column[:MOST_BLOCKS] for column in merged))
