"""The timeline of one recording: its tracks, tiles of them, and what is told of a slice."""

from typing import Literal

import msgspec

from stepscope.analyses.timeline.counters import counter_tile
from stepscope.analyses.timeline.slice_categories import CATEGORIES
from stepscope.analyses.timeline.slices import LATEST_NS, MOST_ROWS
from stepscope.analyses.timeline.tiles import tile
from stepscope.analyses.timeline.timeline import idle_slices, timeline
from stepscope.analyses.timeline.tracks import Track
from stepscope.api.endpoint import Binary, Bytes, Query, TraceEndpoint
from stepscope.api.metrics import finite
from stepscope.api.timeline_tiles import encoded
from stepscope.base.errors import UnknownNameError, UsageError
from stepscope.base.report import SCHEMA_VERSION
from stepscope.model.trace import Trace


class TimelineTrack(msgspec.Struct, frozen=True):
    """One track, or the header above some."""

    id: int
    parent: int | None
    """The header that it is shown under."""
    kind: Literal["group", "steps", "stream", "annotations", "idle", "counter", "thread", "other"]
    label: str
    detail: str
    row_count: int
    """Rows of slices; 0 of a header, and of a counter."""
    event_count: int | None
    """Null where nobody has counted: what is worked out when it is asked for."""
    busy_ns: int | None
    """For how long anything of it ran; null where nobody has summed that up."""
    order: int
    """Its place among the tracks."""
    unit: str
    """Of a counter's values."""
    is_open: bool
    """Whether it is shown in full at first."""


class TimelineCategory(msgspec.Struct, frozen=True):
    """What slices of a code are."""

    id: str
    label: str


class TimelineStep(msgspec.Struct, frozen=True):
    """A step, as the host marked it."""

    number: int
    start_ns: int
    end_ns: int


class Timeline(msgspec.Struct, frozen=True):
    """The tracks of a recording, in the order in which they are shown."""

    schema: int
    start_ns: int
    end_ns: int
    """When the last slice ends, from the trace's first event."""
    names_count: int
    tracks: tuple[TimelineTrack, ...]
    categories: tuple[TimelineCategory, ...]
    """A slice's code is the place here."""
    steps: tuple[TimelineStep, ...]
    note: str
    """What the tracks do not show, and why; empty where they show everything."""


class TimelineNames(msgspec.Struct, frozen=True):
    """Names of slices; a slice's code is the place here."""

    schema: int
    names: tuple[str, ...]


def timeline_tracks(trace: Trace) -> Timeline:
    """Return the tracks of a recording."""
    found = timeline(trace)
    steps = zip(
        *(found.steps[key].tolist() for key in ("number", "start_ns", "end_ns")), strict=True
    )
    return Timeline(
        schema=SCHEMA_VERSION,
        start_ns=0,
        end_ns=found.end_ns,
        names_count=len(found.names),
        tracks=tuple(map(_track, found.tracks)),
        categories=tuple(TimelineCategory(*pair) for pair in CATEGORIES.items()),
        steps=tuple(TimelineStep(*step) for step in steps),
        note=_note(found.too_deep_count, found.end_ns),
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
        notes.append(f"{too_deep_count} slices lie deeper than {MOST_ROWS} rows and are not drawn.")
    if end_ns >= LATEST_NS:
        notes.append("An event claims to last longer than can be drawn: it is cut at 104 days.")
    return " ".join(notes)


def timeline_names(trace: Trace) -> TimelineNames:
    """Return the distinct names of slices."""
    return TimelineNames(schema=SCHEMA_VERSION, names=timeline(trace).names)


class TimelineCounter(msgspec.Struct, frozen=True):
    """A counter in equal times; null where no value is known."""

    schema: int
    track: int
    level: int
    tile: int
    start_ns: int
    bucket_ns: int
    unit: str
    least: float | None
    """Over the whole recording."""
    most: float | None
    min: tuple[float | None, ...]
    """The least value in each bucket, with the one that held when it began."""
    max: tuple[float | None, ...]
    last: tuple[float | None, ...]
    """The value when the bucket ends; of a share, its mean in the bucket."""


def timeline_counter(trace: Trace, track: int, level: int, tile: int) -> TimelineCounter:
    """Return a counter in a tile.

    Raises:
        UnknownNameError: there is no such counter.
        UsageError: there is no such tile.
    """
    shown = timeline(trace).track(track)
    found = counter_tile(trace, shown, level, tile)
    return TimelineCounter(
        schema=SCHEMA_VERSION,
        track=track,
        level=level,
        tile=tile,
        start_ns=found.start_ns,
        bucket_ns=found.bucket_ns,
        unit=shown.unit,
        least=finite(found.least_of_all),
        most=finite(found.most_of_all),
        min=tuple(map(finite, found.least.tolist())),
        max=tuple(map(finite, found.most.tolist())),
        last=tuple(map(finite, found.last.tolist())),
    )


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
