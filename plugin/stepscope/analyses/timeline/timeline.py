"""The timeline of a trace: its tracks, and the slices on them; computed once per trace."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.window import window
from stepscope.analyses.idle.ledger import CAUSES, idle_ledger
from stepscope.analyses.timeline.counters import counter_tracks, idle_track
from stepscope.analyses.timeline.slice_categories import CODES, category_codes
from stepscope.analyses.timeline.slices import (
    MOST_ROWS,
    NO_EVENT,
    Slices,
    UnsortedSlices,
    clipped,
    row_counts,
    sort_slices,
)
from stepscope.analyses.timeline.track_events import TrackEvents, step_events, track_events
from stepscope.analyses.timeline.tracks import Track, numbered, thread_names
from stepscope.base.errors import MissingDataError, UnknownNameError
from stepscope.dialects import RECORDING_SPAN
from stepscope.model import intervals
from stepscope.model.arrays import NONE
from stepscope.model.trace import Trace, computed

KEY = f"{__name__}.timeline"

_locks: WeakKeyDictionary[Trace, Lock] = WeakKeyDictionary()
_lock = Lock()


@dataclass(frozen=True, kw_only=True, eq=False)
class Timeline:
    """A trace's tracks and slices."""

    tracks: tuple[Track, ...]
    slices: Slices
    slice_of_event: NDArray[np.int32]
    """Each event's slice; -1 if it has none."""
    names: tuple[str, ...]
    """Distinct names of slices, indexed by `Slices.name`; then those of idle causes."""
    steps: pd.DataFrame
    """As `frames.steps`."""
    end_ns: int
    """End of the last slice, without the profiler's span of the recording itself."""
    too_deep_count: int
    """Slices more than `MOST_ROWS` rows deep, which are not drawn."""

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
            MissingDataError: it has no slice on the timeline.
        """
        if not 0 <= event < len(self.slice_of_event):
            msg = f"there is no event {event}; there are {len(self.slice_of_event)}"
            raise UnknownNameError(msg)
        index = int(self.slice_of_event[event])
        if index == NONE:
            msg = f"event {event} is on no track: it has no duration, or is no call or device work"
            raise MissingDataError(msg)
        return index


def timeline(trace: Trace) -> Timeline:
    """Return a trace's timeline; concurrent callers wait for the first one."""
    with _lock:
        lock = _locks.setdefault(trace, Lock())
    with lock:
        layout: Timeline | None = trace.results.get(KEY)
        if layout is None:
            layout = trace.results[KEY] = _timeline(trace)
        return layout


def _timeline(trace: Trace) -> Timeline:
    by_steps, steps = step_events(trace)
    parts = [*track_events(trace), by_steps]
    given = [track for part in parts for track in _measured(trace, part)]
    given.extend(_without_slices(trace, given))
    tracks, numbers = numbered(given)
    slices = sort_slices(
        [
            _placed(trace, part, track_numbers)
            for part, track_numbers in _with_numbers(parts, numbers)
        ]
    )
    names, slices = _named(trace, slices)
    return Timeline(
        tracks=tracks,
        slices=slices,
        slice_of_event=_slices_of_events(trace, slices, tracks),
        names=names,
        steps=steps,
        end_ns=max((_end_ns(trace, part) for part in parts), default=0),
        too_deep_count=sum(int((part.row >= MOST_ROWS).sum()) for part in parts),
    )


def _without_slices(trace: Trace, given: Sequence[Track]) -> Iterator[Track]:
    """Yield the tracks whose contents are computed on request."""
    devices = sorted({track.device for track in given if track.kind == "stream"})
    for device in devices:
        yield idle_track(trace, device)
    yield from counter_tracks(trace, thread_names(trace), devices)


def _with_numbers(
    parts: Sequence[TrackEvents], numbers: Sequence[int]
) -> list[tuple[TrackEvents, Sequence[int]]]:
    """Return each part with the numbers of its own tracks."""
    numbered_parts, first = [], 0
    for part in parts:
        numbered_parts.append((part, numbers[first : first + len(part.tracks)]))
        first += len(part.tracks)
    return numbered_parts


def _end_ns(trace: Trace, part: TrackEvents) -> int:
    """Return the end of a part's last slice that is not the span of the recording; 0: none."""
    return int(part.end_ns[_is_work(trace, part)].max(initial=0))


def _is_work(trace: Trace, part: TrackEvents) -> NDArray[np.bool_]:
    """Return a mask of the events of a part that are not the span of the recording."""
    category, strings = trace.columns.category[part.events], trace.columns.strings
    codes = [code for code, text in enumerate(strings) if text == RECORDING_SPAN]
    return ~np.isin(category, codes)


def _measured(trace: Trace, part: TrackEvents) -> list[Track]:
    """Return the tracks of a part with their counts, and the busy time of work in the window."""
    if not part.tracks:
        return []
    count = len(part.tracks)
    narrow = part.track.astype(np.int16) if count < np.iinfo(np.int16).max else part.track
    order = np.argsort(narrow, kind="stable")
    counts = np.bincount(part.track, minlength=count)
    rows = row_counts(part.track, part.row)
    span, work = window(trace), _is_work(trace, part)
    rows_of_track = [of[work[of]] for of in np.split(order, np.cumsum(counts)[:-1])]
    return [
        replace(
            track,
            row_count=int(rows[number]),
            event_count=int(counts[number]),
            busy_ns=intervals.duration_ns(
                intervals.clip(
                    intervals.union(
                        part.start_ns[rows_of_track[number]], part.end_ns[rows_of_track[number]]
                    ),
                    span.device_start_ns,
                    span.device_end_ns,
                )
            ),
        )
        for number, track in enumerate(part.tracks)
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
    """Return the names that occur, and the slices with `name` as an index into them."""
    strings = trace.columns.strings
    occurs = np.zeros(len(strings) + 1, dtype=bool)  # the last is of events without a name
    occurs[slices.name] = True
    code_of = (np.cumsum(occurs) - 1).astype(np.int32)
    names = [*strings, ""]
    present = [names[code] for code in np.flatnonzero(occurs).tolist()]
    labels = [label for label, _ in CAUSES.values()]
    return (*present, *labels), replace(slices, name=code_of[slices.name])


def _slices_of_events(trace: Trace, slices: Slices, tracks: Sequence[Track]) -> NDArray[np.int32]:
    """Return each event's slice; a step's is the one on its thread."""
    slice_of_event = np.full(len(trace.columns), NONE, dtype=np.int32)
    places = np.arange(len(slices), dtype=np.int32)
    copies = {track.id for track in tracks if track.kind == "steps"}
    first = slices.times.row_first
    for row in range(len(slices.row_track)):
        if int(slices.row_track[row]) not in copies:
            in_row = slice(int(first[row]), int(first[row + 1]))
            slice_of_event[slices.event[in_row]] = places[in_row]
    return slice_of_event


@computed
def idle_slices(trace: Trace) -> Slices:
    """Return the idle times of every device, on their tracks of the timeline."""
    layout = timeline(trace)
    tracks = {
        track.subject.device: track.id
        for track in layout.tracks
        if track.kind == "idle" and track.subject
    }
    try:
        ledgers = idle_ledger(trace)
    except MissingDataError:
        return sort_slices([])
    first_name = len(layout.names) - len(CAUSES)
    return sort_slices(
        [
            _cause_slices(ledger.times, tracks[device], first_name)
            for device, ledger in ledgers.items()
            if device in tracks
        ]
    )


def _cause_slices(times: dict, track: int, first_name: int) -> UnsortedSlices:  # type: ignore[type-arg]
    pairs = [
        (number, cause, times[cause]) for number, cause in enumerate(CAUSES) if len(times[cause])
    ]
    bounds = np.concatenate(
        [np.zeros((0, 2), dtype=np.int64), *(times_of_cause for _, _, times_of_cause in pairs)]
    )
    lengths = [len(times_of_cause) for _, _, times_of_cause in pairs]
    name = np.repeat(
        np.array([first_name + number for number, _, _ in pairs], dtype=np.int32), lengths
    )
    category = np.repeat(
        np.array([CODES[f"idle-{cause}"] for _, cause, _ in pairs], dtype=np.uint8), lengths
    )
    order = np.argsort(bounds[:, 0], kind="stable")
    start_ns, end_ns = clipped(bounds[order, 0], (bounds[:, 1] - bounds[:, 0])[order])
    return UnsortedSlices(
        track=np.full(len(order), track, dtype=np.int32),
        row=np.zeros(len(order), dtype=np.int32),
        parent=np.full(len(order), NONE, dtype=np.int64),
        event=np.full(len(order), NO_EVENT, dtype=np.uint32),
        start_ns=start_ns,
        end_ns=end_ns,
        name=name[order],
        category=category[order],
    )
