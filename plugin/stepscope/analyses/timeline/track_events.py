"""Events of each track, before they are put into rows."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.timeline import row_layout
from stepscope.analyses.timeline.slices import clipped
from stepscope.analyses.timeline.tracks import ThreadNames, Track, device_owner, thread_names
from stepscope.dialects import Kind
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames import steps as step_frame
from stepscope.model.frames.device_events import device_of, stream_of
from stepscope.model.frames.source import Source
from stepscope.model.trace import Trace

HOST = (Kind.OPERATOR, Kind.ANNOTATION, Kind.RUNTIME_CALL, Kind.PYTHON_CALL)
DEVICE = (Kind.KERNEL, Kind.COPY, Kind.MEMORY_SET)
OTHER = (Kind.OVERHEAD, Kind.SYNCHRONIZATION, Kind.OTHER)
STREAM_ORDER, ANNOTATION_ORDER = 0, 4


@dataclass(frozen=True, kw_only=True, eq=False)
class TrackEvents:
    """Events of some tracks, in the order they began; arrays are parallel."""

    tracks: tuple[Track, ...]
    track: Ints
    """Each event's index in `tracks`."""
    row: NDArray[np.int32]
    parent: Ints
    """Index of the innermost event that contains each; -1: none, or they do not nest."""
    events: Ints
    start_ns: Ints
    end_ns: Ints


def track_events(trace: Trace) -> Iterator[TrackEvents]:
    """Yield the events of the host, of devices, and all others."""
    names = thread_names(trace)
    yield _host(trace, names)
    yield _streams(trace)
    yield _device_annotations(trace)
    yield _others(trace, names)


def step_events(trace: Trace) -> tuple[TrackEvents, pd.DataFrame]:
    """Return the steps as slices of a track, and as a frame."""
    source = trace.source
    events = source.rows(Kind.ANNOTATION)
    steps = step_frame.build(
        pd.DataFrame({**source.timing(events), "thread": source.thread(events)}, copy=False)
    )
    track = Track(kind="steps", label="Steps", order=(-1, 0, ""))
    step_rows = steps["event"].to_numpy().astype(np.int64)
    group = np.zeros(len(step_rows), dtype=np.int64)
    return _free(source, (track,) if len(steps) else (), group, step_rows), steps


def _host(trace: Trace, names: ThreadNames) -> TrackEvents:
    events = trace.source.rows(*HOST)
    threads, group = _used(trace.source.threads[0][events])
    tracks = tuple(names.track(thread) for thread in threads)
    return _nested(trace.source, tracks, group, events)


def _streams(trace: Trace) -> TrackEvents:
    source = trace.source
    events = source.rows(*DEVICE)
    device, stream = device_of(source, events), stream_of(source, events)
    pairs, group = _pairs(device, stream)
    work = _work(trace, events, group, len(pairs))
    tracks = tuple(
        Track(
            kind="stream",
            label=f"Stream {number}" if number >= 0 else "Stream not recorded",
            detail=STREAM_USES[use],
            owner=device_owner(trace, owner),
            device=owner,
            order=(STREAM_ORDER, use, f"{number:20}"),
        )
        for (owner, number), use in zip(pairs, work, strict=True)
    )
    return _free(source, tracks, group, events)


COMPUTATION, COMMUNICATION, COPIES = range(3)
STREAM_USES = ("computation", "communication", "copies")


def _work(trace: Trace, events: Ints, group: Ints, count: int) -> list[int]:
    """Return the use of each stream as an index into `STREAM_USES`."""
    kernels = trace.source.kinds[events] == int(Kind.KERNEL)
    names = trace.source.columns.name[events]
    is_collective = np.zeros(len(trace.source.columns.strings) + 1, dtype=bool)
    strings = trace.source.columns.strings
    for code in np.unique(names[kernels & (names >= 0)]).tolist():
        is_collective[code] = bool(trace.dialect.collective.search(strings[code]))
    collective = kernels & is_collective[names]
    kernel_count = np.bincount(group[kernels], minlength=count)
    collective_count = np.bincount(group[collective], minlength=count)
    return [
        COPIES if not kernels else COMMUNICATION if 2 * collectives > kernels else COMPUTATION
        for kernels, collectives in zip(
            kernel_count.tolist(), collective_count.tolist(), strict=True
        )
    ]


def _device_annotations(trace: Trace) -> TrackEvents:
    source = trace.source
    events = source.rows(Kind.DEVICE_ANNOTATION)
    pairs, group = _pairs(device_of(source, events), stream_of(source, events))
    tracks = tuple(
        Track(
            kind="annotations",
            label="Annotations",
            detail=f"of stream {stream}" if stream >= 0 else "",
            owner=device_owner(trace, device),
            order=(ANNOTATION_ORDER, 0, f"{stream:20}"),
        )
        for device, stream in pairs
    )
    return _nested(source, tracks, group, events)


def _others(trace: Trace, names: ThreadNames) -> TrackEvents:
    events = trace.source.rows(*OTHER)
    threads, group = _used(trace.source.threads[0][events])
    tracks = tuple(names.other(thread) for thread in threads)
    return _free(trace.source, tracks, group, events)


def _nested(source: Source, tracks: tuple[Track, ...], group: Ints, events: Ints) -> TrackEvents:
    start_ns, end_ns = _times(source, events)
    narrow = group.astype(np.int16) if len(tracks) < np.iinfo(np.int16).max else group
    row, parent = row_layout.nested_rows(narrow, start_ns, end_ns)
    return TrackEvents(
        tracks=tracks,
        track=group,
        row=row,
        parent=parent,
        events=events,
        start_ns=start_ns,
        end_ns=end_ns,
    )


def _free(source: Source, tracks: tuple[Track, ...], group: Ints, events: Ints) -> TrackEvents:
    """Return events in the first free row, ordered by start, then end."""
    start_ns, end_ns = _times(source, events)
    order = np.lexsort((end_ns, start_ns))
    group, start_ns, end_ns = group[order], start_ns[order], end_ns[order]
    return TrackEvents(
        tracks=tracks,
        track=group,
        row=row_layout.free_rows(group, start_ns, end_ns),
        parent=np.full(len(group), NONE, dtype=np.int64),
        events=events[order],
        start_ns=start_ns,
        end_ns=end_ns,
    )


def _times(source: Source, events: Ints) -> tuple[Ints, Ints]:
    return clipped(source.columns.start_ns[events], source.columns.duration_ns[events])


def _used(codes: NDArray[np.int32]) -> tuple[list[int], Ints]:
    """Return the codes that occur, and the index of each code among them."""
    present = np.flatnonzero(np.bincount(codes)) if len(codes) else np.zeros(0, dtype=np.int64)
    index_of = np.zeros(int(present[-1]) + 1 if len(present) else 0, dtype=np.int64)
    index_of[present] = np.arange(len(present))
    return present.tolist(), index_of[codes]


def _pairs(device: Ints, stream: Ints) -> tuple[list[tuple[int, int]], Ints]:
    """Return the distinct pairs, and the index of each pair among them."""
    devices, device_values = pd.factorize(device, sort=True)
    streams, stream_values = pd.factorize(stream, sort=True)
    width = max(1, len(stream_values))
    codes, present = pd.factorize(devices * width + streams, sort=True)
    pairs = [divmod(int(pair), width) for pair in present]
    return [(int(device_values[a]), int(stream_values[b])) for a, b in pairs], codes
