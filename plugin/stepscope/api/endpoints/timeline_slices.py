"""Endpoints of slices of the timeline: details, search, neighbours and areas."""

import pandas as pd

from stepscope.analyses.timeline import range_summary as areas
from stepscope.analyses.timeline import slice_neighbors
from stepscope.analyses.timeline.search import Search
from stepscope.analyses.timeline.search import search as search_slices
from stepscope.analyses.timeline.slice_details import details
from stepscope.analyses.timeline.slice_neighbors import Direction
from stepscope.analyses.timeline.slices import LATEST_NS, Slices
from stepscope.analyses.timeline.timeline import idle_slices, timeline
from stepscope.api.endpoint import Query, trace_endpoint
from stepscope.api.endpoints.timeline import parse_tracks
from stepscope.api.public_tables import RowOrder, shown_table
from stepscope.api.timeline_slices import (
    AreaTrack,
    SliceFrame,
    TimelineArea,
    TimelineHits,
    TimelineNeighbour,
    TimelineSlice,
    argument,
    hit_of,
    links,
    parent,
    recorded_times,
)
from stepscope.base.errors import UsageError
from stepscope.model.arrays import NONE
from stepscope.model.table import Table as PublicTable
from stepscope.model.trace import Trace

MOST_LISTED = 10_000
MOST_NAMES = 10_000
"""Limit of rows of an area's table."""
AREA = PublicTable(
    title="Area",
    meaning="Slices in an area of the timeline, by name.",
    schema=areas.SCHEMA,
    build=lambda _: pd.DataFrame(),
)


class SliceQuery(Query, frozen=True, kw_only=True):
    """A slice."""

    event: int
    """Index of its event in the file."""


class RangeQuery(Query, frozen=True, kw_only=True):
    """A time range of the timeline."""

    start_ns: int
    """Start of the time range, in ns from the trace's first event."""
    end_ns: int
    """End of the time range, exclusive."""


class ListQuery(RangeQuery, frozen=True, kw_only=True):
    """Slices of a track in a time range."""

    track: int
    """The track's number."""
    limit: int = 100
    """Maximum number of slices, up to 10,000."""


class SearchQuery(Query, frozen=True, kw_only=True):
    """A search in the whole trace."""

    q: str
    """Part of a name; `key:value` also matches arguments, and `key:` all events with that key."""
    case: bool = False
    """Whether upper and lower case differ."""
    regex: bool = False
    """Whether `q` is a regular expression: Python's syntax, without look-around and references."""
    limit: int = 1000
    """Maximum number of listed matches, by time; up to 10,000."""
    offset: int = 0
    """Number of matches to skip."""
    start_ns: int = 0
    """Earliest start of a match, in ns from the trace's first event."""


class NeighbourQuery(SliceQuery, frozen=True, kw_only=True):
    """A slice, and a direction from it."""

    direction: Direction
    """`left` and `right` on its row; `up` to its parent, `down` to its first child."""


class AtQuery(Query, frozen=True, kw_only=True):
    """A time on a row."""

    track: int
    """The track's number."""
    row: int
    """The row in its track."""
    time_ns: int
    """The time, in ns from the trace's first event."""


class AreaQuery(RangeQuery, frozen=True, kw_only=True):
    """An area of the timeline: tracks and a time range."""

    tracks: str = ""
    """Numbers of tracks, separated by commas; empty: all tracks."""


def slice_details(trace: Trace, query: SliceQuery) -> TimelineSlice:
    """Return the details of a slice: arguments, stack, module, parents and links.

    Raises:
        UnknownNameError: the event has no slice on the timeline.
    """
    tracks, of_slice = timeline(trace), details(trace, query.event)
    hit = hit_of(tracks, tracks.slices, of_slice.index)
    operator = tracks.slice_of_event[of_slice.operator] if of_slice.operator >= 0 else -1
    start_ns, duration_ns = recorded_times(trace, hit, query.event)
    return TimelineSlice(
        event=query.event,
        name=hit.name,
        category=hit.category,
        track=hit.track,
        row=hit.row,
        start_ns=start_ns,
        duration_ns=duration_ns,
        self_ns=of_slice.self_ns,
        device_ns=of_slice.device_ns,
        arguments=tuple(argument(key, value) for key, value in of_slice.arguments),
        stack=tuple(SliceFrame(frame.function, frame.file, frame.line) for frame in of_slice.stack),
        stack_of=of_slice.stack_of,
        parents=tuple(parent(tracks, index) for index in of_slice.parents),
        child_count=of_slice.child_count,
        module=of_slice.module or None,
        operator=parent(tracks, int(operator)) if operator >= 0 else None,
        step=of_slice.step,
        links=tuple(link for linked in of_slice.links for link in links(tracks, linked)),
        link_counts={linked.kind: len(linked.events) for linked in of_slice.links},
    )


def listed(trace: Trace, query: ListQuery) -> TimelineHits:
    """Return the slices of a track in a time range, by start.

    Raises:
        UnknownNameError: the track does not exist.
        UsageError: the range is empty, or the limit is out of range.
    """
    if query.start_ns >= query.end_ns or not 0 <= query.limit <= MOST_LISTED:
        msg = f"start_ns must be before end_ns, and limit from 0 to {MOST_LISTED}"
        raise UsageError(msg)
    slices, (start_ns, end_ns) = _slices_of(trace, query.track), _clipped(query)
    matches, total = slice_neighbors.overlapping(
        slices, slices.rows_of(query.track), (start_ns, end_ns), query.limit
    )
    tracks = timeline(trace)
    hits = tuple(hit_of(tracks, slices, index) for index in matches.tolist())
    return TimelineHits(total=total, hits=hits)


def search(trace: Trace, query: SearchQuery) -> TimelineHits:
    """Return the slices of the whole trace that match a search, and their density over time.

    Raises:
        UsageError: the text is empty, or the expression is invalid or not supported.
    """
    request = Search(
        text=query.q,
        is_exact=query.case,
        is_expression=query.regex,
        limit=query.limit,
        first=query.offset,
        from_ns=query.start_ns,
    )
    tracks, matches = timeline(trace), search_slices(trace, request)
    return TimelineHits(
        total=matches.total,
        hits=tuple(hit_of(tracks, tracks.slices, index) for index in matches.slices.tolist()),
        first=matches.first,
        density=tuple(matches.density.tolist()),
    )


def neighbour(trace: Trace, query: NeighbourQuery) -> TimelineNeighbour:
    """Return the slice next to another on its row, or above or below it.

    Raises:
        UnknownNameError: the event has no slice on the timeline.
    """
    tracks = timeline(trace)
    index = tracks.slice_index(query.event)
    return _neighbour(
        trace, tracks.slices, slice_neighbors.neighbour(tracks.slices, index, query.direction)
    )


def slice_at(trace: Trace, query: AtQuery) -> TimelineNeighbour:
    """Return the slice of a row that runs at a time, or the nearest.

    Raises:
        UnknownNameError: the track does not exist.
    """
    slices = _slices_of(trace, query.track)
    rows = slices.rows_of(query.track)
    row = next((row for row in rows if int(slices.row_number[row]) == query.row), None)
    if row is None:
        return TimelineNeighbour(hit=None)
    return _neighbour(trace, slices, slice_neighbors.nearest(slices, row, _clip(query.time_ns)))


def area(trace: Trace, query: AreaQuery) -> TimelineArea:
    """Return the slices in an area of the timeline by name, with busy and idle time per track.

    Raises:
        UsageError: the range is empty.
    """
    tracks, time = timeline(trace), _clipped(query)
    selected = parse_tracks(query.tracks, len(tracks.tracks))
    shown = [track for track in selected if tracks.tracks[track].row_count]
    idle = [track for track in shown if tracks.tracks[track].kind == "idle"]
    busy = [track for track in shown if track not in idle]
    sums = [areas.summarize(tracks, tracks.slices, busy, time)]
    if idle:
        sums.append(areas.summarize(tracks, idle_slices(trace), idle, time))
    frame = pd.concat([part.table for part in sums], ignore_index=True)
    return TimelineArea(
        start_ns=time[0],
        end_ns=time[1],
        table=shown_table(AREA, frame, RowOrder(key="total_ns", limit=MOST_NAMES)),
        tracks=tuple(
            AreaTrack(track.track, track.busy_ns, track.idle_ns, track.slice_count)
            for part in sums
            for track in part.tracks
        ),
    )


def _clip(time_ns: int) -> int:
    return min(max(time_ns, 0), LATEST_NS + 1)


def _clipped(query: RangeQuery) -> tuple[int, int]:
    return _clip(query.start_ns), _clip(query.end_ns)


def _slices_of(trace: Trace, track: int) -> Slices:
    tracks = timeline(trace)
    return idle_slices(trace) if tracks.track(track).kind == "idle" else tracks.slices


def _neighbour(trace: Trace, slices: Slices, index: int) -> TimelineNeighbour:
    hit = None if index == NONE else hit_of(timeline(trace), slices, index)
    return TimelineNeighbour(hit=hit)


ENDPOINTS = (
    trace_endpoint("timeline/slices/<event>", slice_details, lane="quick"),
    trace_endpoint("timeline/slices", listed, lane="quick"),
    trace_endpoint("timeline/search", search, lane="quick"),
    trace_endpoint("timeline/neighbour", neighbour, lane="quick"),
    trace_endpoint("timeline/at", slice_at, lane="quick"),
    trace_endpoint("timeline/area", area, lane="quick"),
)
