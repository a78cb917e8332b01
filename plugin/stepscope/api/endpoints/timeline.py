"""The timeline of one recording: its tracks, tiles of them, and what is told of a slice."""

from stepscope.analyses.timeline.idle_slices import idle_slices
from stepscope.analyses.timeline.tiles import tile
from stepscope.analyses.timeline.timeline import timeline
from stepscope.api.endpoint import Binary, Bytes, Query, TraceEndpoint
from stepscope.api.timeline import (
    Timeline,
    TimelineCounter,
    TimelineNames,
    timeline_counter,
    timeline_names,
    timeline_tracks,
)
from stepscope.api.timeline_tiles import encoded
from stepscope.base.errors import UnknownNameError, UsageError
from stepscope.model.trace import Trace

MOST_TRACKS = 10_000


class TileQuery(Query, frozen=True, kw_only=True):
    """Which tile, of which tracks."""

    level: int
    """A pixel is 2^level ns wide; 0 to 44."""
    tile: int
    """The tile begins at this number times 1024 pixels from the trace's first event."""
    tracks: str = ""
    """Numbers of tracks, parted by commas, in the order in which they are wanted; none: all."""


class CounterQuery(Query, frozen=True, kw_only=True):
    """Which tile of which counter."""

    track: int
    """The counter's track."""
    level: int
    """As of tiles: a bucket is 4 pixels of 2^level ns."""
    tile: int
    """As of tiles."""


def ask_tracks(trace: Trace, _: Query) -> Timeline:
    """Answer with the tracks."""
    return timeline_tracks(trace)


def ask_names(trace: Trace, _: Query) -> TimelineNames:
    """Answer with the names."""
    return timeline_names(trace)


def ask_tile(trace: Trace, query: TileQuery) -> Binary:
    """Answer with a tile."""
    found = timeline(trace)
    chosen = parse_tracks(query.tracks, len(found.tracks))
    sources = [found.slices]
    if any(found.tracks[number].kind == "idle" for number in chosen):
        sources.append(idle_slices(trace))
    return Binary(
        body=encoded([(each, tile(each, chosen, query.level, query.tile)) for each in sources])
    )


def ask_counter(trace: Trace, query: CounterQuery) -> TimelineCounter:
    """Answer with a counter."""
    return timeline_counter(trace, query.track, query.level, query.tile)


def parse_tracks(text: str, count: int) -> list[int]:
    """Return the tracks that a request names.

    Raises:
        UsageError: it is no list of numbers.
        UnknownNameError: there is no such track.
    """
    if not text:
        return list(range(count))
    parts = text.split(",")
    if len(parts) > MOST_TRACKS or not all(part.isdecimal() and len(part) < 10 for part in parts):
        msg = f"tracks are up to {MOST_TRACKS} whole numbers, parted by commas"
        raise UsageError(msg)
    chosen = list(dict.fromkeys(map(int, parts)))
    unknown = [number for number in chosen if number >= count]
    if unknown:
        msg = f"there is no track {unknown[0]}; there are {count}"
        raise UnknownNameError(msg)
    return chosen


ENDPOINTS = (
    TraceEndpoint(
        path="timeline/tracks",
        meaning="The timeline's tracks, in the order in which they are shown, and its steps.",
        response=Timeline,
        handler=ask_tracks,
    ),
    TraceEndpoint(
        path="timeline/names",
        meaning="The distinct names of slices, which tiles give by their place.",
        response=TimelineNames,
        handler=ask_names,
    ),
    TraceEndpoint(
        path="timeline/tiles",
        meaning="What some tracks show in 1024 pixels of 2^level ns.",
        response=Bytes(
            "application/octet-stream",
            "A header in JSON behind `TLT2` and its length, then arrays of all items.",
        ),
        handler=ask_tile,
        query=TileQuery,
    ),
    TraceEndpoint(
        path="timeline/counters",
        meaning="What a counter was in 256 buckets of 4 pixels: a value holds until the next.",
        response=TimelineCounter,
        handler=ask_counter,
        query=CounterQuery,
    ),
)
