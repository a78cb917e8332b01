"""What is told of slices: all that is known of one, those that are found, the sums of an area."""

from collections.abc import Iterable, Sequence
from math import isfinite

import msgspec
import numpy as np
import pandas as pd

from stepscope.analyses.timeline import range_summary as areas
from stepscope.analyses.timeline import slice_neighbors
from stepscope.analyses.timeline.linked_slices import LinkedEvents
from stepscope.analyses.timeline.search import Search, search
from stepscope.analyses.timeline.slice_categories import CATEGORIES
from stepscope.analyses.timeline.slice_details import Value, details
from stepscope.analyses.timeline.slices import LATEST_NS, NO_EVENT, Slices
from stepscope.analyses.timeline.timeline import Timeline, idle_slices, timeline
from stepscope.api.messages import Table
from stepscope.api.public_tables import RowOrder, shown_table
from stepscope.base.errors import UsageError
from stepscope.base.report import SCHEMA_VERSION
from stepscope.model.arrays import NONE
from stepscope.model.table import Table as PublicTable
from stepscope.model.trace import Trace

MOST_LINKS = 100
"""Of each kind; how many there are is told beside them."""
MOST_LISTED = 10_000
MOST_LETTERS = 20_000
"""Of an argument's text."""
MOST_NAMES = 10_000
"""Rows of an area's table."""
EXACT_BELOW = 2**53
CATEGORY_IDS = tuple(CATEGORIES)


class TimelineHit(msgspec.Struct, frozen=True):
    """A slice, and where it is."""

    event: int | None
    """Its place in the file; null where it is none of the file's events."""
    name: str
    category: str
    track: int
    row: int
    start_ns: int
    duration_ns: int


class SliceLink(msgspec.Struct, frozen=True):
    """Another slice that one has to do with."""

    kind: str
    """`launches`, `launched by`, `launched by operator`, `waits for`, `awaited by`, `forward`,
    `backward` or `recorded of`: what the other is to this one."""
    event: int
    name: str
    category: str
    track: int
    row: int
    start_ns: int
    duration_ns: int


class SliceArgument(msgspec.Struct, frozen=True):
    """What the trace says of an event beside its time."""

    key: str
    value: str | int | float
    is_cut: bool
    """Whether the value is longer than what is shown."""


class SliceFrame(msgspec.Struct, frozen=True):
    """A Python function of a stack."""

    function: str
    file: str
    """Empty of what is built in."""
    line: int


class SliceParent(msgspec.Struct, frozen=True):
    """A slice that contains another."""

    event: int
    name: str
    category: str


class TimelineSlice(msgspec.Struct, frozen=True):
    """All that is known of one slice."""

    schema: int
    event: int
    name: str
    category: str
    track: int
    row: int
    start_ns: int
    """As recorded: below 0 where it began before the first event, as the profiler's own range does.
    Tracks show it from 0."""
    duration_ns: int
    """As recorded, or where that cannot be drawn as the tracks show it."""
    self_ns: int | None
    """Without the slices within it; null where slices do not nest."""
    device_ns: int | None
    """Sum of what it launched on devices, with what it called; null where that is nothing."""
    arguments: tuple[SliceArgument, ...]
    stack: tuple[SliceFrame, ...]
    """The Python functions that led to it, the outermost first."""
    stack_of: str
    """Whose stack it is: `itself`, `launch` or `forward`; empty where there is none."""
    parents: tuple[SliceParent, ...]
    """What contains it, the outermost first."""
    child_count: int
    module: str | None
    operator: SliceParent | None
    """The innermost operator around it, or around its launch."""
    step: int | None
    """The number of the step in which it, or its launch, began."""
    links: tuple[SliceLink, ...]
    link_counts: dict[str, int]
    """How many links of each kind there are; no more than 100 of each are listed."""


class TimelineHits(msgspec.Struct, frozen=True):
    """Slices that were found, by time."""

    schema: int
    total: int
    hits: tuple[TimelineHit, ...]
    """Some of them, next to each other."""
    first: int = 0
    """How many come before those."""
    density: tuple[int, ...] = ()
    """Of a search: how many begin in each of 1000 equal times of the recording."""


class TimelineNeighbour(msgspec.Struct, frozen=True):
    """A slice beside another, or nearest to a moment."""

    schema: int
    hit: TimelineHit | None
    """Null where there is none."""


class AreaTrack(msgspec.Struct, frozen=True):
    """One track's time in an area."""

    track: int
    busy_ns: int
    idle_ns: int
    slice_count: int


class TimelineArea(msgspec.Struct, frozen=True):
    """What runs in a part of the timeline."""

    schema: int
    start_ns: int
    end_ns: int
    table: Table
    """By name; the time within the area."""
    tracks: tuple[AreaTrack, ...]


def hit_of(found: Timeline, slices: Slices, place: int) -> TimelineHit:
    """Return where a slice is."""
    row = int(slices.row_of(np.array([place]))[0])
    event = int(slices.event[place])
    return TimelineHit(
        event=None if event == NO_EVENT else event,
        name=found.names[int(slices.name[place])],
        category=CATEGORY_IDS[int(slices.category[place])],
        track=int(slices.row_track[row]),
        row=int(slices.row_number[row]),
        start_ns=int(slices.times.start_ns[place]),
        duration_ns=slice_neighbors.duration_ns(slices, place),
    )


def timeline_slice(trace: Trace, event: int) -> TimelineSlice:
    """Return what is known of an event's slice.

    Raises:
        UnknownNameError: the event is none of the timeline's slices.
    """
    found, known = timeline(trace), details(trace, event)
    own = hit_of(found, found.slices, known.index)
    inner = found.slice_of_event[known.operator] if known.operator >= 0 else -1
    start_ns, duration_ns = _recorded(trace, own, event)
    return TimelineSlice(
        schema=SCHEMA_VERSION,
        event=event,
        name=own.name,
        category=own.category,
        track=own.track,
        row=own.row,
        start_ns=start_ns,
        duration_ns=duration_ns,
        self_ns=known.self_ns,
        device_ns=known.device_ns,
        arguments=tuple(_argument(key, value) for key, value in known.arguments),
        stack=tuple(SliceFrame(each.function, each.file, each.line) for each in known.stack),
        stack_of=known.stack_of,
        parents=tuple(_parent(found, place) for place in known.parents),
        child_count=known.child_count,
        module=known.module or None,
        operator=_parent(found, int(inner)) if inner >= 0 else None,
        step=known.step,
        links=tuple(link for each in known.links for link in _links(found, each)),
        link_counts={each.kind: len(each.events) for each in known.links},
    )


def _recorded(trace: Trace, own: TimelineHit, event: int) -> tuple[int, int]:
    """Return when an event began, and for how long it lasted, also before the first event."""
    start_ns, duration_ns = (
        int(column[event]) for column in (trace.columns.start_ns, trace.columns.duration_ns)
    )
    is_early = -LATEST_NS <= start_ns < 0 <= start_ns + duration_ns
    if is_early and duration_ns <= LATEST_NS:
        return start_ns, duration_ns
    return own.start_ns, own.duration_ns


def _argument(key: str, value: Value) -> SliceArgument:
    if isinstance(value, str):
        return SliceArgument(key, value[:MOST_LETTERS], len(value) > MOST_LETTERS)
    # JSON has no infinity, and a browser's numbers end at 2^53.
    is_exact = abs(value) < EXACT_BELOW or (isinstance(value, float) and isfinite(value))
    return SliceArgument(key, value if is_exact else str(value), is_cut=False)


def _parent(found: Timeline, place: int) -> SliceParent:
    hit = hit_of(found, found.slices, place)
    return SliceParent(hit.event or 0, hit.name, hit.category)


def _links(found: Timeline, linked: LinkedEvents) -> Iterable[SliceLink]:
    for event in linked.events[:MOST_LINKS].tolist():
        place = int(found.slice_of_event[event])
        if place >= 0:
            hit = hit_of(found, found.slices, place)
            yield SliceLink(
                kind=linked.kind,
                event=event,
                name=hit.name,
                category=hit.category,
                track=hit.track,
                row=hit.row,
                start_ns=hit.start_ns,
                duration_ns=hit.duration_ns,
            )


def timeline_search(trace: Trace, wanted: Search) -> TimelineHits:
    """Return the slices that a search finds.

    Raises:
        UsageError: nothing is asked for, or what may take for ever.
    """
    found, hits = timeline(trace), search(trace, wanted)
    return TimelineHits(
        schema=SCHEMA_VERSION,
        total=hits.total,
        hits=tuple(hit_of(found, found.slices, place) for place in hits.slices.tolist()),
        first=hits.first,
        density=tuple(hits.density.tolist()),
    )


def timeline_list(trace: Trace, track: int, time: tuple[int, int], limit: int) -> TimelineHits:
    """Return the slices of a track that are in a time, by start.

    Raises:
        UnknownNameError: there is no such track.
        UsageError: the time is empty, or too many are asked for.
    """
    if time[0] >= time[1] or not 0 <= limit <= MOST_LISTED:
        msg = f"start_ns lies before end_ns; limit is 0 to {MOST_LISTED}"
        raise UsageError(msg)
    found = timeline(trace)
    slices = slices_of(trace, track)
    rows = slices.rows_of(track)
    chosen, total = slice_neighbors.overlapping(slices, rows, _within(time), limit)
    hits = tuple(hit_of(found, slices, place) for place in chosen.tolist())
    return TimelineHits(schema=SCHEMA_VERSION, total=total, hits=hits)


def _within(time: tuple[int, int]) -> tuple[int, int]:
    """Return the part of a time in which anything can be."""
    start_ns, end_ns = (min(max(each, 0), LATEST_NS + 1) for each in time)
    return start_ns, end_ns


def slices_of(trace: Trace, track: int) -> Slices:
    """Return what holds a track's slices.

    Raises:
        UnknownNameError: there is no such track.
    """
    found = timeline(trace)
    return idle_slices(trace) if found.track(track).kind == "idle" else found.slices


def timeline_neighbour(
    trace: Trace, event: int, direction: slice_neighbors.Direction
) -> TimelineNeighbour:
    """Return the slice beside an event's, or above, or below.

    Raises:
        UnknownNameError: the event is none of the timeline's slices.
    """
    found = timeline(trace)
    place = slice_neighbors.neighbour(found.slices, found.slice_index(event), direction)
    return _neighbour(found, found.slices, place)


def timeline_at(trace: Trace, track: int, row: int, time_ns: int) -> TimelineNeighbour:
    """Return the slice of a track's row that runs at a moment, or the nearest.

    Raises:
        UnknownNameError: there is no such track.
    """
    slices = slices_of(trace, track)
    rows = slices.rows_of(track)
    own = [each for each in rows if int(slices.row_number[each]) == row]
    at_ns = _within((time_ns, time_ns))[0]
    place = slice_neighbors.nearest(slices, own[0], at_ns) if own else NONE
    return _neighbour(timeline(trace), slices, place)


def _neighbour(found: Timeline, slices: Slices, place: int) -> TimelineNeighbour:
    hit = None if place == NONE else hit_of(found, slices, place)
    return TimelineNeighbour(schema=SCHEMA_VERSION, hit=hit)


def timeline_area(trace: Trace, tracks: Sequence[int], time: tuple[int, int]) -> TimelineArea:
    """Return what some tracks show in a time, by name.

    Raises:
        UsageError: the time is empty.
    """
    found = timeline(trace)
    time = _within(time)
    shown = [track for track in tracks if found.tracks[track].row_count]
    idle = [track for track in shown if found.tracks[track].kind == "idle"]
    others = [track for track in shown if track not in idle]
    sums = [areas.summarize(found, found.slices, others, time)]
    if idle:
        sums.append(areas.summarize(found, idle_slices(trace), idle, time))
    frame = pd.concat([each.table for each in sums], ignore_index=True)
    return TimelineArea(
        schema=SCHEMA_VERSION,
        start_ns=time[0],
        end_ns=time[1],
        table=shown_table(_TABLE, frame, RowOrder(key="total_ns", limit=MOST_NAMES)),
        tracks=tuple(
            AreaTrack(each.track, each.busy_ns, each.idle_ns, each.slice_count)
            for part in sums
            for each in part.tracks
        ),
    )


def _no_rows(_: Trace) -> pd.DataFrame:
    return pd.DataFrame()


_TABLE = PublicTable(
    title="Area",
    meaning="What runs in a part of the timeline, by name.",
    schema=areas.SCHEMA,
    build=_no_rows,
)
