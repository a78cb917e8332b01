"""Endpoints of the timeline: tracks, names, tiles and counters."""

from typing import Literal

import msgspec

from stepscope.analyses.core.window import complete_steps, window
from stepscope.analyses.timeline.counters import counter_tile
from stepscope.analyses.timeline.slice_categories import CATEGORIES
from stepscope.analyses.timeline.slices import LATEST_NS, MOST_ROWS
from stepscope.analyses.timeline.tiles import tile
from stepscope.analyses.timeline.timeline import idle_slices, timeline
from stepscope.analyses.timeline.tracks import Track
from stepscope.api.endpoint import Binary, Bytes, Query, trace_endpoint
from stepscope.api.messages import Response
from stepscope.api.metrics import finite
from stepscope.api.timeline_tiles import encoded
from stepscope.base.errors import UnknownNameError, UsageError
from stepscope.model.trace import Trace


class TimelineTrack(msgspec.Struct, frozen=True):
    """A track, or the header of a group of tracks."""

    id: int
    parent: int | None
    """The header of its group."""
    kind: Literal["group", "steps", "stream", "annotations", "idle", "counter", "thread", "other"]
    label: str
    detail: str
    row_count: int
    """Rows of slices; 0 for headers and counters."""
    event_count: int | None
    """Number of events; null where it is computed on request."""
    busy_ns: int | None
    """Time in the window with any slice; null where it is computed on request."""
    order: int
    """Position among the tracks."""
    unit: str
    """Unit of a counter's values."""
    is_open: bool
    """Whether it is expanded at first."""


class TimelineCategory(msgspec.Struct, frozen=True):
    """A category of slices."""

    id: str
    label: str


class TimelineStep(msgspec.Struct, frozen=True):
    """A step of the host."""

    number: int
    start_ns: int
    end_ns: int


class Timeline(Response, frozen=True, kw_only=True):
    """The tracks of a trace, in the order of the page."""

    start_ns: int
    end_ns: int
    """End of the last slice, from the trace's first event; the profiler's span of the recording
    itself is none."""
    window_ns: int
    """Duration of the window, as in the Overview: the whole of `TimelineTrack.busy_ns`."""
    names_count: int
    tracks: tuple[TimelineTrack, ...]
    categories: tuple[TimelineCategory, ...]
    """A slice's category code is an index of these."""
    steps: tuple[TimelineStep, ...]
    """The complete steps."""
    note: str
    """Events that the tracks leave out, and why; empty where there are none."""
    levels: tuple[int, ...] = ()
    """The levels of tiles that there are, in a shared file; empty: all."""


class TimelineNames(Response, frozen=True, kw_only=True):
    """Names of slices; a slice's name code is an index of these."""

    names: tuple[str, ...]


def tracks(trace: Trace, _: Query) -> Timeline:
    """Return the timeline's tracks in the order of the page, its categories and its steps."""
    content = timeline(trace)
    steps = zip(
        *(complete_steps(trace).steps[key].tolist() for key in ("number", "start_ns", "end_ns")),
        strict=True,
    )
    return Timeline(
        start_ns=0,
        end_ns=content.end_ns,
        window_ns=window(trace).reference_ns,
        names_count=len(content.names),
        tracks=tuple(map(_track, content.tracks)),
        categories=tuple(TimelineCategory(*pair) for pair in CATEGORIES.items()),
        steps=tuple(TimelineStep(*step) for step in steps),
        note=_note(content.too_deep_count, content.end_ns),
    )


def _track(track: Track) -> TimelineTrack:
    return TimelineTrack(
        id=track.id,
        parent=track.parent,
        kind=track.kind,
        label=track.label,
        detail=track.detail,
        row_count=track.row_count,
        event_count=track.event_count,
        busy_ns=track.busy_ns,
        order=track.id,
        unit=track.unit,
        is_open=track.is_open,
    )


def _note(too_deep_count: int, end_ns: int) -> str:
    notes = []
    if too_deep_count:
        notes.append(f"{too_deep_count} slices below row {MOST_ROWS} of their track are not drawn.")
    if end_ns >= LATEST_NS:
        notes.append("An event is longer than the timeline can draw: it is cut at 104 days.")
    return " ".join(notes)


def names(trace: Trace, _: Query) -> TimelineNames:
    """Return the distinct names of slices; tiles refer to them by index."""
    return TimelineNames(names=timeline(trace).names)


class TimelineCounter(Response, frozen=True, kw_only=True):
    """A counter in buckets of equal length; null where no value is known."""

    track: int
    level: int
    tile: int
    start_ns: int
    bucket_ns: int
    unit: str
    least: float | None
    """The least value of the whole trace."""
    most: float | None
    min: tuple[float | None, ...]
    """The least value in each bucket, with the value at its start."""
    max: tuple[float | None, ...]
    last: tuple[float | None, ...]
    """The value at the end of the bucket; for shares, the mean in the bucket."""


MOST_TRACKS = 10_000


class TileQuery(Query, frozen=True, kw_only=True):
    """A tile of some tracks."""

    level: int
    """A pixel is 2^level ns; 0 to 44."""
    tile: int
    """Number of the tile: it begins this many times 1024 pixels after the trace's first event."""
    tracks: str = ""
    """Numbers of tracks, separated by commas, in the order of the result; empty: all tracks."""


class CounterQuery(Query, frozen=True, kw_only=True):
    """A tile of a counter."""

    track: int
    """The counter's track."""
    level: int
    """A bucket is 4 pixels of 2^level ns; 0 to 44."""
    tile: int
    """Number of the tile, as for `timeline/tiles`."""


def tiles(trace: Trace, query: TileQuery) -> Binary:
    """Return the slices of tracks in one tile: 1024 pixels of 2^level ns."""
    content = timeline(trace)
    selected = parse_tracks(query.tracks, len(content.tracks))
    sources = [content.slices]
    if any(content.tracks[number].kind == "idle" for number in selected):
        sources.append(idle_slices(trace))
    parts = [(slices, tile(slices, selected, query.level, query.tile)) for slices in sources]
    return Binary(body=encoded(parts))


def counter(trace: Trace, query: CounterQuery) -> TimelineCounter:
    """Return a counter in 256 buckets of 4 pixels; a value holds until the next.

    Raises:
        UnknownNameError: the counter does not exist.
        UsageError: the tile does not exist.
    """
    track = timeline(trace).track(query.track)
    values = counter_tile(trace, track, query.level, query.tile)
    return TimelineCounter(
        track=query.track,
        level=query.level,
        tile=query.tile,
        start_ns=values.start_ns,
        bucket_ns=values.bucket_ns,
        unit=track.unit,
        least=finite(values.least_of_all),
        most=finite(values.most_of_all),
        min=tuple(map(finite, values.least.tolist())),
        max=tuple(map(finite, values.most.tolist())),
        last=tuple(map(finite, values.last.tolist())),
    )


def parse_tracks(text: str, count: int) -> list[int]:
    """Return the track numbers of a request.

    Raises:
        UsageError: the text is not a list of numbers.
        UnknownNameError: a track does not exist.
    """
    if not text:
        return list(range(count))
    parts = text.split(",")
    if len(parts) > MOST_TRACKS or not all(part.isdecimal() and len(part) < 10 for part in parts):
        msg = f"tracks are up to {MOST_TRACKS} whole numbers, separated by commas"
        raise UsageError(msg)
    numbers = list(dict.fromkeys(map(int, parts)))
    unknown = [number for number in numbers if number >= count]
    if unknown:
        msg = f"there is no track {unknown[0]}; there are {count}"
        raise UnknownNameError(msg)
    return numbers


TILE = Bytes(
    "application/octet-stream",
    "`TLT2`, the length of a header, the header in JSON, and then arrays of all items.",
)
ENDPOINTS = (
    trace_endpoint("timeline/tracks", tracks, lane="quick"),
    trace_endpoint("timeline/names", names, lane="quick"),
    trace_endpoint("timeline/tiles", tiles, response=TILE, lane="quick"),
    trace_endpoint("timeline/counters", counter, lane="quick"),
)
