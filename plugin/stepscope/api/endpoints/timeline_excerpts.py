"""Endpoint of excerpts of the timeline: the pictures of findings."""

from typing import Annotated

import msgspec
import numpy as np

from stepscope.analyses.timeline.excerpts import Lane, Range, excerpt
from stepscope.analyses.timeline.timeline import Timeline, timeline
from stepscope.analyses.timeline.tracks import Track
from stepscope.api.endpoint import Query, trace_endpoint
from stepscope.api.messages import Response
from stepscope.api.timeline_slices import CATEGORY_IDS
from stepscope.base.errors import UnknownNameError, UsageError
from stepscope.model.trace import Trace

MOST_TIMES = 100
MOST_DIGITS = 16


class ExcerptQuery(Query, frozen=True, kw_only=True):
    """An event and times of the trace; one of them is required."""

    event: int | None = None
    """Index of the event in the file."""
    event_time: str = ""
    """Start and end of the event, `START-END` in ns from the trace's first event: for an event
    without an index, or on no track."""
    time: Annotated[tuple[str, ...], msgspec.Meta(max_length=MOST_TIMES)] = ()
    """A time to show, `START-END`; can be repeated."""


class ExcerptEvent(msgspec.Struct, frozen=True):
    """The event; it is in the first lane."""

    row: int
    """Row in its track."""
    start_ns: int
    end_ns: int


class ExcerptLane(msgspec.Struct, frozen=True):
    """Consecutive rows of a track. Lists of one length are parallel: slices, the short ones merged.

    Slices may begin before the range and end after it.
    """

    track: int | None
    """The track's number; null for the row of an event that is on no track."""
    label: str
    """Empty without a track."""
    first_row: int
    """Number of rows of the track above the first one."""
    row_count: int
    rows_below: int
    """Rows with slices in the range below the last one."""
    names: tuple[str, ...]
    categories: tuple[str, ...]
    """Category of each of `names`."""
    rows: tuple[int, ...]
    """Row of each slice in the track."""
    start_ns: tuple[int, ...]
    end_ns: tuple[int, ...]
    name: tuple[int, ...]
    """Index of the longest slice's name in `names`."""
    count: tuple[int, ...]
    """Number of slices."""


class TimelineExcerpt(Response, frozen=True, kw_only=True):
    """An excerpt of the timeline; the event and the times are inside its range."""

    start_ns: int
    end_ns: int
    event: ExcerptEvent | None
    """Null where none was requested."""
    lanes: tuple[ExcerptLane, ...]


def timeline_excerpt(trace: Trace, query: ExcerptQuery) -> TimelineExcerpt:
    """Return the timeline around an event and times: its row first, and the busiest others.

    Raises:
        UnknownNameError: there is no such event.
        UsageError: neither an event nor a time is given, or one is no range.
    """
    content = timeline(trace)
    event_time = parse_time(query.event_time) if query.event_time else None
    times = tuple(map(parse_time, query.time))
    if query.event is not None and not 0 <= query.event < len(content.slice_of_event):
        msg = f"there is no event {query.event}; there are {len(content.slice_of_event)}"
        raise UnknownNameError(msg)
    is_placed = query.event is not None and content.slice_of_event[query.event] >= 0
    if not (is_placed or event_time or times):
        msg = "an event on a track, event_time, or time is required"
        raise UsageError(msg)
    part = excerpt(trace, query.event, event_time, times)
    shown = part.event
    return TimelineExcerpt(
        start_ns=part.start_ns,
        end_ns=part.end_ns,
        event=None if shown is None else ExcerptEvent(shown.row, shown.start_ns, shown.end_ns),
        lanes=tuple(_lane(content, lane) for lane in part.lanes),
    )


def parse_time(text: str) -> Range:
    """Return start and end of a time as written in a query.

    Raises:
        UsageError: it is not two whole numbers, the first of which is not the greater.
    """
    parts = text.split("-")
    numbers = [int(part) for part in parts if part.isdecimal() and len(part) <= MOST_DIGITS]
    if len(parts) != 2 or len(numbers) != 2 or numbers[0] > numbers[1]:
        msg = f"a time is START-END in nanoseconds, not {text!r}"
        raise UsageError(msg)
    return numbers[0], numbers[1]


def _lane(content: Timeline, lane: Lane) -> ExcerptLane:
    items = lane.items
    codes = np.stack((lane.slices.name[items.longest], lane.slices.category[items.longest]))
    distinct, index = np.unique(codes.astype(np.int64), axis=1, return_inverse=True)
    names, categories = distinct.tolist()
    return ExcerptLane(
        track=lane.track.id if lane.track else None,
        label=_label(content, lane.track) if lane.track else "",
        first_row=lane.first_row,
        row_count=lane.row_count,
        rows_below=lane.rows_below,
        names=tuple(content.names[code] for code in names),
        categories=tuple(CATEGORY_IDS[code] for code in categories),
        rows=tuple(items.row.tolist()),
        start_ns=tuple(items.start_ns.tolist()),
        end_ns=tuple(items.end_ns.tolist()),
        name=tuple(index.ravel().tolist()),
        count=tuple(items.slice_count.tolist()),
    )


def _label(content: Timeline, track: Track) -> str:
    """Return a track's label, of a device's with the device's name."""
    if track.parent is None or track.kind == "thread":
        return track.label
    return f"{content.tracks[track.parent].label} {track.label}"


ENDPOINTS = (trace_endpoint("timeline/excerpt", timeline_excerpt, lane="quick"),)
