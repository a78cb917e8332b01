"""Response types of slices of the timeline, and slices in that form."""

from collections.abc import Iterable
from math import isfinite

import msgspec
import numpy as np

from stepscope.analyses.timeline import slice_neighbors
from stepscope.analyses.timeline.linked_slices import LinkedEvents
from stepscope.analyses.timeline.slice_categories import CATEGORIES
from stepscope.analyses.timeline.slice_details import Value
from stepscope.analyses.timeline.slices import LATEST_NS, NO_EVENT, Slices
from stepscope.analyses.timeline.timeline import Timeline
from stepscope.api.messages import Response, Table
from stepscope.model.trace import Trace

MOST_LINKS = 100
"""Limit of listed links of each kind; all are counted."""
MOST_LETTERS = 20_000
"""Limit of an argument's text."""
EXACT_BELOW = 2**53
CATEGORY_IDS = tuple(CATEGORIES)


class TimelineHit(msgspec.Struct, frozen=True):
    """A slice and its position."""

    event: int | None
    """Index of its event in the file; null where it has no event."""
    name: str
    category: str
    track: int
    row: int
    start_ns: int
    duration_ns: int


class SliceLink(TimelineHit, frozen=True, kw_only=True):
    """A slice that is linked with another."""

    kind: str
    """Role of this slice: `launches`, `launched by`, `launched by operator`, `waits for`, `awaited
    by`, `forward`, `backward` or `recorded of`."""
    event: int


class SliceArgument(msgspec.Struct, frozen=True):
    """An argument of an event."""

    key: str
    value: str | int | float
    is_cut: bool
    """Whether the value is abbreviated."""


class SliceFrame(msgspec.Struct, frozen=True):
    """A Python function of a stack."""

    function: str
    file: str
    """Empty for built-in functions."""
    line: int


class SliceParent(msgspec.Struct, frozen=True):
    """A slice that contains another."""

    event: int
    name: str
    category: str


class TimelineSlice(Response, frozen=True, kw_only=True):
    """Details of one slice."""

    event: int
    name: str
    category: str
    track: int
    row: int
    start_ns: int
    """Recorded start: negative before the first event, as of the profiler's range. Tracks draw it
    from 0."""
    duration_ns: int
    """Recorded duration, or the drawn one where that is longer than a track can draw."""
    self_ns: int | None
    """Time without nested slices; null where slices do not nest."""
    device_ns: int | None
    """Sum of the device work that it and its nested calls launched; null without any."""
    arguments: tuple[SliceArgument, ...]
    stack: tuple[SliceFrame, ...]
    """The Python functions around it, outermost first."""
    stack_of: str
    """Owner of the stack: `itself`, `launch` or `forward`; empty without a stack."""
    parents: tuple[SliceParent, ...]
    """The slices around it, outermost first."""
    child_count: int
    module: str | None
    operator: SliceParent | None
    """The innermost operator around it, or around its launch."""
    step: int | None
    """Number of the step in which it, or its launch, began."""
    links: tuple[SliceLink, ...]
    link_counts: dict[str, int]
    """Number of links by kind; at most 100 of each are listed."""


class TimelineHits(Response, frozen=True, kw_only=True):
    """Slices, by time."""

    total: int
    hits: tuple[TimelineHit, ...]
    """A page of the slices."""
    first: int = 0
    """Number of slices before the page."""
    density: tuple[int, ...] = ()
    """Of a search: matches that begin in each of 1,000 equal parts of the trace."""


class TimelineNeighbour(Response, frozen=True, kw_only=True):
    """A slice next to another slice, or nearest to a time."""

    hit: TimelineHit | None
    """Null without such a slice."""


class AreaTrack(msgspec.Struct, frozen=True):
    """One track's time in an area."""

    track: int
    busy_ns: int
    idle_ns: int
    slice_count: int


class TimelineArea(Response, frozen=True, kw_only=True):
    """Slices in an area of the timeline."""

    start_ns: int
    end_ns: int
    table: Table
    """Slices by name, with their time inside the area."""
    tracks: tuple[AreaTrack, ...]


def hit_of(tracks: Timeline, slices: Slices, index: int) -> TimelineHit:
    """Return a slice with its position."""
    row = int(slices.row_of(np.array([index]))[0])
    event = int(slices.event[index])
    return TimelineHit(
        event=None if event == NO_EVENT else event,
        name=tracks.names[int(slices.name[index])],
        category=CATEGORY_IDS[int(slices.category[index])],
        track=int(slices.row_track[row]),
        row=int(slices.row_number[row]),
        start_ns=int(slices.times.start_ns[index]),
        duration_ns=slice_neighbors.duration_ns(slices, index),
    )


def recorded_times(trace: Trace, hit: TimelineHit, event: int) -> tuple[int, int]:
    """Return an event's recorded start and duration, also before the first event."""
    start_ns, duration_ns = (
        int(column[event]) for column in (trace.columns.start_ns, trace.columns.duration_ns)
    )
    is_early = -LATEST_NS <= start_ns < 0 <= start_ns + duration_ns
    if is_early and duration_ns <= LATEST_NS:
        return start_ns, duration_ns
    return hit.start_ns, hit.duration_ns


def argument(key: str, value: Value) -> SliceArgument:
    """Return an argument with its value in JSON's range."""
    if isinstance(value, str):
        return SliceArgument(key, value[:MOST_LETTERS], len(value) > MOST_LETTERS)
    # JSON has no infinity, and a browser's numbers end at 2^53.
    is_exact = abs(value) < EXACT_BELOW or (isinstance(value, float) and isfinite(value))
    return SliceArgument(key, value if is_exact else str(value), is_cut=False)


def parent(tracks: Timeline, index: int) -> SliceParent:
    """Return a slice of an event as the parent of another."""
    hit = hit_of(tracks, tracks.slices, index)
    return SliceParent(int(tracks.slices.event[index]), hit.name, hit.category)


def links(tracks: Timeline, linked: LinkedEvents) -> Iterable[SliceLink]:
    """Yield the slices of linked events."""
    for event in linked.events[:MOST_LINKS].tolist():
        index = int(tracks.slice_of_event[event])
        if index >= 0:
            hit = msgspec.structs.asdict(hit_of(tracks, tracks.slices, index))
            yield SliceLink(kind=linked.kind, **hit)
