"""Slices of the timeline: all that is known of one, those that are found, an area's sums."""

from stepscope.analyses.timeline.search import Search
from stepscope.analyses.timeline.slice_neighbors import Direction
from stepscope.analyses.timeline.timeline import timeline
from stepscope.api.endpoint import Query, TraceEndpoint
from stepscope.api.endpoints.timeline import parse_tracks
from stepscope.api.timeline_slices import (
    TimelineArea,
    TimelineHits,
    TimelineNeighbour,
    TimelineSlice,
    timeline_area,
    timeline_at,
    timeline_list,
    timeline_neighbour,
    timeline_search,
    timeline_slice,
)
from stepscope.model.trace import Trace


class SliceQuery(Query, frozen=True, kw_only=True):
    """Which slice."""

    event: int
    """The event's place in the file."""


class ListQuery(Query, frozen=True, kw_only=True):
    """Which slices of a track."""

    track: int
    """The track's number."""
    start_ns: int
    """From when, in ns from the trace's first event."""
    end_ns: int
    """Until when; not itself in it."""
    limit: int = 100
    """How many, at most; up to 10 000."""


class SearchQuery(Query, frozen=True, kw_only=True):
    """What is searched for in the whole recording."""

    q: str
    """A part of a name; `key:value` finds arguments too, and `key:` all events that have one."""
    case: bool = False
    """Whether small and capital letters differ."""
    regex: bool = False
    """Whether `q` is a regular expression: up to three repeats, none within another."""
    limit: int = 1000
    """How many hits are listed, by time; up to 10 000."""
    offset: int = 0
    """How many of the first are left out."""
    start_ns: int = 0
    """What begins before is left out, too, in ns from the trace's first event."""


class NeighbourQuery(SliceQuery, frozen=True, kw_only=True):
    """Which slice, and in which direction from it."""

    direction: Direction
    """`left` and `right` on its row; `up` to what contains it, `down` to what it contains."""


class AtQuery(Query, frozen=True, kw_only=True):
    """Which moment on which row."""

    track: int
    """The track's number."""
    row: int
    """The row in its track."""
    time_ns: int
    """When, in ns from the trace's first event."""


class AreaQuery(Query, frozen=True, kw_only=True):
    """Which part of the timeline."""

    start_ns: int
    """From when, in ns from the trace's first event."""
    end_ns: int
    """Until when; not itself in it."""
    tracks: str = ""
    """Numbers of tracks, parted by commas; none: all."""


def ask_slice(trace: Trace, query: SliceQuery) -> TimelineSlice:
    """Answer with all that is known of a slice."""
    return timeline_slice(trace, query.event)


def ask_list(trace: Trace, query: ListQuery) -> TimelineHits:
    """Answer with the slices of a track in a time."""
    return timeline_list(trace, query.track, (query.start_ns, query.end_ns), query.limit)


def ask_search(trace: Trace, query: SearchQuery) -> TimelineHits:
    """Answer with what a search finds."""
    wanted = Search(
        text=query.q,
        is_exact=query.case,
        is_expression=query.regex,
        limit=query.limit,
        first=query.offset,
        from_ns=query.start_ns,
    )
    return timeline_search(trace, wanted)


def ask_neighbour(trace: Trace, query: NeighbourQuery) -> TimelineNeighbour:
    """Answer with the slice beside another."""
    return timeline_neighbour(trace, query.event, query.direction)


def ask_at(trace: Trace, query: AtQuery) -> TimelineNeighbour:
    """Answer with the slice at a moment."""
    return timeline_at(trace, query.track, query.row, query.time_ns)


def ask_area(trace: Trace, query: AreaQuery) -> TimelineArea:
    """Answer with the sums of an area."""
    chosen = parse_tracks(query.tracks, len(timeline(trace).tracks))
    return timeline_area(trace, chosen, (query.start_ns, query.end_ns))


ENDPOINTS = (
    TraceEndpoint(
        path="timeline/slices/<event>",
        meaning="All that is known of a slice: arguments, stack, module, and what it launched.",
        response=TimelineSlice,
        handler=ask_slice,
        query=SliceQuery,
    ),
    TraceEndpoint(
        path="timeline/slices",
        meaning="The slices of a track in a time, by start.",
        response=TimelineHits,
        handler=ask_list,
        query=ListQuery,
    ),
    TraceEndpoint(
        path="timeline/search",
        meaning="The slices of the whole recording that a search finds, and where they are dense.",
        response=TimelineHits,
        handler=ask_search,
        query=SearchQuery,
    ),
    TraceEndpoint(
        path="timeline/neighbour",
        meaning="The slice beside another one, above or below it.",
        response=TimelineNeighbour,
        handler=ask_neighbour,
        query=NeighbourQuery,
    ),
    TraceEndpoint(
        path="timeline/at",
        meaning="The slice of a row that runs at a moment, or the nearest.",
        response=TimelineNeighbour,
        handler=ask_at,
        query=AtQuery,
    ),
    TraceEndpoint(
        path="timeline/area",
        meaning="What runs in a part of the timeline, by name; busy and idle time of each track.",
        response=TimelineArea,
        handler=ask_area,
        query=AreaQuery,
    ),
)
