"""Excerpts of the timeline: some rows of a few tracks around an event and claimed times.

The track of the event comes first, cut to the rows around its depth; then the busiest thread, the
idle times by cause, and the busiest stream.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stepscope.analyses.timeline.detail_levels import longest_of, new_items
from stepscope.analyses.timeline.slice_neighbors import duration_ns, in_time
from stepscope.analyses.timeline.slices import LATEST_NS, Slices
from stepscope.analyses.timeline.timeline import Timeline, idle_slices, timeline
from stepscope.analyses.timeline.tracks import Track, TrackKind
from stepscope.model.arrays import NONE, Ints
from stepscope.model.trace import Trace

Range = tuple[int, int]
"""Start and end, in nanoseconds."""
MOST_ROWS_OF_EVENT = 5
ROWS_ABOVE_EVENT = 2
MOST_ROWS = 3
"""Limit of rows of a track without the event."""
MARGIN = 0.15
"""Time on either side, as a part of the time that must be shown."""
LEAST_MARGIN_NS = 5_000
PIXELS = 800
"""Slices shorter than one of these parts of the range are merged."""


class Items(NamedTuple):
    """Slices of a lane by row, then time, the short ones merged; arrays are parallel."""

    row: Ints
    start_ns: Ints
    end_ns: Ints
    """Of merged slices the last one's end."""
    longest: Ints
    """The longest slice of each item."""
    slice_count: Ints
    """Number of slices."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lane:
    """Consecutive rows of one track."""

    track: Track | None
    """None: the only row is of an event that is on no track."""
    first_row: int
    row_count: int
    rows_below: int
    """Rows with slices in the range that follow the last row."""
    slices: Slices
    items: Items


@dataclass(frozen=True, kw_only=True, eq=False)
class ShownEvent:
    """The event that an excerpt shows; it is in the first lane."""

    row: int
    """Row in its track."""
    start_ns: int
    end_ns: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Excerpt:
    """Lanes of the timeline in a time range."""

    start_ns: int
    end_ns: int
    event: ShownEvent | None
    lanes: tuple[Lane, ...]


def excerpt(
    trace: Trace, event: int | None, event_time: Range | None, times: Sequence[Range]
) -> Excerpt:
    """Return the timeline around an event, or around `times`, which are inside the range.

    `event_time` places an event that is on no track; without an event both are None. One of them
    or a time must be given.
    """
    content = timeline(trace)
    index = int(content.slice_of_event[event]) if event is not None else NONE
    shown = _shown_event(content.slices, index, event_time)
    bounds = [(shown.start_ns, shown.end_ns)] if shown else []
    time = _with_margin([*bounds, *(_clipped(start, end) for start, end in times)])
    lanes = list(_other_lanes(trace, content, index, time))
    if shown is not None:
        lanes.insert(0, _event_lane(content, index, shown, time))
    return Excerpt(start_ns=time[0], end_ns=time[1], event=shown, lanes=tuple(lanes))


def _shown_event(slices: Slices, index: int, event_time: Range | None) -> ShownEvent | None:
    if index != NONE:
        start_ns = int(slices.times.start_ns[index])
        return ShownEvent(
            row=int(slices.row_number[_row_of(slices, index)]),
            start_ns=start_ns,
            end_ns=start_ns + duration_ns(slices, index),
        )
    if event_time is None:
        return None
    start_ns, end_ns = _clipped(*event_time)
    return ShownEvent(row=0, start_ns=start_ns, end_ns=end_ns)


def _clipped(start_ns: int, end_ns: int) -> Range:
    start = min(max(0, start_ns), LATEST_NS)
    return start, min(max(start, end_ns), LATEST_NS)


def _with_margin(times: Iterable[Range]) -> Range:
    starts, ends = zip(*times, strict=True)
    start_ns, end_ns = min(starts), max(ends)
    margin_ns = max(LEAST_MARGIN_NS, round(MARGIN * (end_ns - start_ns)))
    return max(0, start_ns - margin_ns), min(end_ns + margin_ns, LATEST_NS + 1)


def _row_of(slices: Slices, index: int) -> int:
    return int(slices.row_of(np.array([index]))[0])


def _event_lane(content: Timeline, index: int, event: ShownEvent, time: Range) -> Lane:
    slices = content.slices
    if index == NONE:
        return Lane(
            track=None,
            first_row=0,
            row_count=1,
            rows_below=0,
            slices=slices,
            items=_items(slices, [], time),
        )
    track = content.tracks[int(slices.row_track[_row_of(slices, index)])]
    last = min(
        _used_rows(slices, track, time) - 1,
        max(0, event.row - ROWS_ABOVE_EVENT) + MOST_ROWS_OF_EVENT - 1,
    )
    first = max(0, last - MOST_ROWS_OF_EVENT + 1)
    return _lane(slices, track, range(first, last + 1), time)


def _other_lanes(trace: Trace, content: Timeline, index: int, time: Range) -> Iterator[Lane]:
    """Yield the busiest thread, the idle times by cause, and the busiest stream.

    The event's track is left out. The idle times are of its device, else of the stream's.
    """
    slices = content.slices
    of_event = None
    if index != NONE:
        of_event = content.tracks[int(slices.row_track[_row_of(slices, index)])]
    is_stream = of_event is not None and of_event.kind == "stream"
    stream = of_event if is_stream else _busiest(content, "stream", time)
    thread = _busiest(content, "thread", time)
    if thread is not None and thread is not of_event:
        yield _top_lane(slices, thread, time)
    yield from _idle_lane(trace, content, stream, time)
    if stream is not None and stream is not of_event:
        yield _top_lane(slices, stream, time)


def _busiest(content: Timeline, kind: TrackKind, time: Range) -> Track | None:
    """Return the track whose first row is busy longest in the range; None: none is."""
    busy = {
        track.id: busy_ns
        for track in content.tracks
        if track.kind == kind and (busy_ns := _busy_ns(content.slices, track, time))
    }
    return content.tracks[max(busy, key=lambda number: busy[number])] if busy else None


def _busy_ns(slices: Slices, track: Track, time: Range) -> int:
    rows = slices.rows_of(track.id)
    span = in_time(slices, rows.start, time) if rows else range(0)
    if not span:
        return 0
    start, end = _times(slices, span)
    return int((np.minimum(end, time[1]) - np.maximum(start, time[0])).sum())


def _idle_lane(
    trace: Trace, content: Timeline, stream: Track | None, time: Range
) -> Iterator[Lane]:
    """Yield the idle times of the stream's device; without a stream, of the first idle device."""
    slices = idle_slices(trace)
    for track in content.tracks:
        is_of_device = stream is None or (track.subject and track.subject.device == stream.device)
        if track.kind == "idle" and is_of_device and _used_rows(slices, track, time):
            yield _lane(slices, track, range(1), time)
            return


def _top_lane(slices: Slices, track: Track, time: Range) -> Lane:
    """Return a track from the innermost of the slices that enclose the whole range."""
    used = _used_rows(slices, track, time)
    enclosing = 0
    for row in slices.rows_of(track.id):
        span = in_time(slices, row, time)
        if len(span) != 1 or not _encloses(slices, span.start, time):
            break
        enclosing += 1
    first = max(0, min(enclosing - 1, used - MOST_ROWS))
    return _lane(slices, track, range(first, min(used, first + MOST_ROWS)), time)


def _encloses(slices: Slices, index: int, time: Range) -> bool:
    start_ns = int(slices.times.start_ns[index])
    return start_ns <= time[0] and start_ns + duration_ns(slices, index) >= time[1]


def _used_rows(slices: Slices, track: Track, time: Range) -> int:
    """Return the number of rows of a track down to the last one with slices in the range."""
    used = [
        int(slices.row_number[row]) + 1
        for row in slices.rows_of(track.id)
        if len(in_time(slices, row, time))
    ]
    return max(used, default=0)


def _lane(slices: Slices, track: Track, numbers: range, time: Range) -> Lane:
    rows = [row for row in slices.rows_of(track.id) if int(slices.row_number[row]) in numbers]
    return Lane(
        track=track,
        first_row=numbers.start,
        row_count=len(numbers),
        rows_below=max(0, _used_rows(slices, track, time) - numbers.stop),
        slices=slices,
        items=_items(slices, rows, time),
    )


def _items(slices: Slices, rows: Sequence[int], time: Range) -> Items:
    parts = [_row_items(slices, row, time) for row in rows]
    empty = Items(*(np.zeros(0, dtype=np.int64) for _ in Items._fields))
    return Items(*(np.concatenate(columns) for columns in zip(empty, *parts, strict=True)))


def _row_items(slices: Slices, row: int, time: Range) -> Items:
    span = in_time(slices, row, time)
    start, end = _times(slices, span)
    pixel_ns = max(1, (time[1] - time[0]) // PIXELS)
    first = np.flatnonzero(new_items(start // pixel_ns, end - start >= pixel_ns))
    first = first if len(span) else first[:0]
    last = np.append(first[1:], len(span))[: len(first)] - 1
    indices = np.arange(span.start, span.stop, dtype=np.int64)
    return Items(
        row=np.full(len(first), slices.row_number[row], dtype=np.int64),
        start_ns=start[first],
        end_ns=end[last],
        longest=longest_of(indices, end - start, first) if len(first) else indices[:0],
        slice_count=last - first + 1,
    )


def _times(slices: Slices, span: range) -> tuple[Ints, Ints]:
    """Return starts and ends of consecutive slices."""
    start = slices.times.start_ns[span.start : span.stop]
    before = slices.times.busy_before_ns[span.start : span.stop + 1]
    return start, start + np.diff(before)
