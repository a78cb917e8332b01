"""The timeline of a recording: its tracks, and the slices on them; made once a recording."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.idle.ledger import CAUSES
from stepscope.analyses.timeline.counters import counter_tracks, idle_track
from stepscope.analyses.timeline.slice_categories import category_codes
from stepscope.analyses.timeline.slices import (
    MOST_ROWS,
    Slices,
    UnsortedSlices,
    row_counts,
    sort_slices,
)
from stepscope.analyses.timeline.track_events import TrackEvents, step_events, track_events
from stepscope.analyses.timeline.track_names import thread_names
from stepscope.analyses.timeline.tracks import Track, numbered
from stepscope.base.errors import MissingDataError, UnknownNameError
from stepscope.model import intervals
from stepscope.model.trace import Trace

KEY = f"{__name__}.timeline"
NONE = -1

_locks: WeakKeyDictionary[Trace, Lock] = WeakKeyDictionary()
_lock = Lock()


@dataclass(frozen=True, kw_only=True, eq=False)
class Timeline:
    """A recording's tracks and slices."""

    tracks: tuple[Track, ...]
    slices: Slices
    slice_of_event: NDArray[np.int32]
    """Each event's slice; -1 where it has none."""
    names: tuple[str, ...]
    """Distinct names of slices; `Slices.name` is the place here, those of idle causes behind."""
    steps: pd.DataFrame
    """As `frames.steps`."""
    end_ns: int
    """When the last slice ends."""
    too_deep_count: int
    """Slices that lie more than `MOST_ROWS` rows deep, and are not drawn."""

    def track(self, number: int) -> Track:
        """Return a track.

        Raises:
            UnknownNameError: there is no such track.
        """
        if not 0 <= number < len(self.tracks):
            msg = f"there is no track {number}; there are {len(self.tracks)}"
            raise UnknownNameError(msg)
        return self.tracks[number]

    def slice_index(self, event: int) -> int:
        """Return the slice of an event.

        Raises:
            UnknownNameError: there is no such event.
            MissingDataError: it is none of the timeline's slices.
        """
        if not 0 <= event < len(self.slice_of_event):
            msg = f"there is no event {event}; there are {len(self.slice_of_event)}"
            raise UnknownNameError(msg)
        place = int(self.slice_of_event[event])
        if place == NONE:
            msg = f"event {event} is drawn on no track: it has no duration, or is no call or work"
            raise MissingDataError(msg)
        return place


def timeline(trace: Trace) -> Timeline:
    """Return a recording's timeline; who asks while it is being made waits for that."""
    with _lock:
        own = _locks.setdefault(trace, Lock())
    with own:
        found: Timeline | None = trace.results.get(KEY)
        if found is None:
            found = trace.results[KEY] = _timeline(trace)
        return found


def _timeline(trace: Trace) -> Timeline:
    by_steps, steps = step_events(trace)
    parts = [*track_events(trace), by_steps]
    given = [track for part in parts for track in _measured(part)]
    given.extend(_without_slices(trace, given))
    tracks, numbers = numbered(given)
    slices = sort_slices([_placed(trace, part, own) for part, own in _with_numbers(parts, numbers)])
    names, slices = _named(trace, slices)
    return Timeline(
        tracks=tracks,
        slices=slices,
        slice_of_event=_places(trace, slices, tracks),
        names=names,
        steps=steps,
        end_ns=max((int(part.end_ns.max()) for part in parts if len(part.end_ns)), default=0),
        too_deep_count=sum(int((part.row >= MOST_ROWS).sum()) for part in parts),
    )


def _without_slices(trace: Trace, given: Sequence[Track]) -> Iterator[Track]:
    """Yield the tracks of what is worked out when it is asked for."""
    devices = sorted({track.device for track in given if track.kind == "stream"})
    for device in devices:
        yield idle_track(trace, device)
    yield from counter_tracks(trace, thread_names(trace), devices)


def _with_numbers(
    parts: Sequence[TrackEvents], numbers: Sequence[int]
) -> list[tuple[TrackEvents, Sequence[int]]]:
    """Return each part with the numbers of its own tracks."""
    found, first = [], 0
    for part in parts:
        found.append((part, numbers[first : first + len(part.tracks)]))
        first += len(part.tracks)
    return found


def _measured(part: TrackEvents) -> list[Track]:
    """Return the tracks of a part with how much is on them."""
    if not part.tracks:
        return []
    count = len(part.tracks)
    narrow = part.track.astype(np.int16) if count < np.iinfo(np.int16).max else part.track
    order = np.argsort(narrow, kind="stable")
    counts = np.bincount(part.track, minlength=count)
    rows = row_counts(part.track, part.row)
    own = np.split(order, np.cumsum(counts)[:-1])
    return [
        replace(
            track,
            row_count=int(rows[place]),
            event_count=int(counts[place]),
            busy_ns=intervals.duration_ns(
                intervals.union(part.start_ns[own[place]], part.end_ns[own[place]])
            ),
        )
        for place, track in enumerate(part.tracks)
    ]


def _placed(trace: Trace, part: TrackEvents, numbers: Sequence[int]) -> UnsortedSlices:
    is_step = any(track.kind == "steps" for track in part.tracks)
    category = category_codes(trace.source, part.events, is_step=is_step)
    return UnsortedSlices(
        track=np.array(numbers, dtype=np.int32)[part.track],
        row=part.row,
        parent=part.parent,
        event=part.events.astype(np.uint32),
        start_ns=part.start_ns,
        end_ns=part.end_ns,
        name=trace.columns.name[part.events],
        category=category,
    )


def _named(trace: Trace, slices: Slices) -> tuple[tuple[str, ...], Slices]:
    """Return the names that occur, and the slices with places among these for names."""
    strings = trace.columns.strings
    occurs = np.zeros(len(strings) + 1, dtype=bool)  # the last is of events without a name
    occurs[slices.name] = True
    place = (np.cumsum(occurs) - 1).astype(np.int32)
    names = [*strings, ""]
    found = [names[code] for code in np.flatnonzero(occurs).tolist()]
    labels = [label for label, _ in CAUSES.values()]
    return (*found, *labels), replace(slices, name=place[slices.name])


def _places(trace: Trace, slices: Slices, tracks: Sequence[Track]) -> NDArray[np.int32]:
    """Return each event's slice; a step's is the one on its thread."""
    found = np.full(len(trace.columns), NONE, dtype=np.int32)
    places = np.arange(len(slices), dtype=np.int32)
    copies = {track.id for track in tracks if track.kind == "steps"}
    first = slices.times.row_first
    for row in range(len(slices.row_track)):
        if int(slices.row_track[row]) not in copies:
            own = slice(int(first[row]), int(first[row + 1]))
            found[slices.event[own]] = places[own]
    return found
