"""Events that are drawn into a trace: counters of queues and copies, and the critical path.

All have the category `stepscope`, by which other tools can filter them. Counters belong to their
device's process. The critical path is a process with one track, whose slices do not overlap, and
arrows between the recorded slices where the path goes from one track to another.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.requirements import RECORD_DEVICE
from stepscope.analyses.devices.memory_bandwidth import bandwidth_series
from stepscope.analyses.devices.queue_length import queue_series
from stepscope.analyses.idle.critical_path import BOUNDS
from stepscope.analyses.idle.critical_path_edges import LAUNCH, NAMES, SYNC, path_edges
from stepscope.analyses.idle.critical_path_tables import critical_path_segments
from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import Ints, Mask
from stepscope.model.trace import Trace
from stepscope.render.chrome_events import metadata, microseconds

Drawing = Literal["counters", "critical-path"]
DRAWINGS: tuple[Drawing, ...] = get_args(Drawing)
CATEGORY = "stepscope"
FIRST_PROCESS = 9_000_000
"""Above the numbers of processes on Linux and Windows."""
BYTES_PER_GB = 1e9
PROCESS_NAMES: tuple[tuple[str, dict[str, str | int], int], ...] = (
    ("process_name", {"name": "Critical path"}, 0),
    ("process_labels", {"labels": "stepscope"}, 0),
    ("process_sort_index", {"sort_index": -1}, 0),
    ("thread_name", {"name": "what each step waits for"}, 1),
)
TimeSpan = tuple[int, int]


def drawn_events(trace: Trace, drawings: Sequence[Drawing], span: TimeSpan) -> Iterator[str]:
    """Yield the events of drawings in a time span as JSON.

    Raises:
        MissingDataError: the trace has nothing to draw.
    """
    for drawing in dict.fromkeys(drawings):
        yield from _EVENTS[drawing](trace, span)


# --- counters -------------------------------------------------------------------------------------


def _counters(trace: Trace, span: TimeSpan) -> Iterator[str]:
    if not len(trace.device_events):
        msg = "the trace has no device work, and so neither queues nor copies"
        raise MissingDataError(msg, RECORD_DEVICE)
    queues, rates = queue_series(trace), bandwidth_series(trace)
    for device, stream in _distinct(queues, "device", "stream"):
        rows = queues[(queues["device"] == device) & (queues["stream"] == stream)]
        samples = rows["time_ns"].to_numpy(), rows["length"].to_numpy(), "launched"
        yield from _counter(trace, (f"Queue length (stream {stream})", device), samples, span)
    for device, kind in _distinct(rates, "device", "kind"):
        rows = rates[(rates["device"] == device) & (rates["kind"] == kind)]
        rate = rows["bytes_per_second"].to_numpy() / BYTES_PER_GB
        samples = rows["time_ns"].to_numpy(), rate, "GB/s"
        yield from _counter(trace, (f"Memory bandwidth {kind} (GB/s)", device), samples, span)


def _distinct(rows: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(set(zip(*(rows[column].tolist() for column in columns), strict=True)))


def _counter(
    trace: Trace,
    track: tuple[str, int],
    samples: tuple[Ints, NDArray[Any], str],
    span: TimeSpan,
) -> Iterator[str]:
    """Yield a counter's samples in a span, and at its start the value from before."""
    name, device = track
    times, values, series = samples
    process = _process_of(trace, device)
    first, last = np.searchsorted(times, span).tolist()
    begins = [(span[0], first - 1)] if first and span[0] not in times[first : first + 1] else []
    for time_ns, row in [*begins, *((int(times[row]), row) for row in range(first, last))]:
        yield (
            f'{{"ph": "C", "cat": "{CATEGORY}", "name": {json.dumps(name)}, "pid": {process}, '
            f'"ts": {_stamp(trace, time_ns)}, '
            f'"args": {{{json.dumps(series)}: {values[row].item()!r}}}}}'
        )


def _process_of(trace: Trace, device: int) -> str:
    """Return the process of a device's events, as JSON."""
    events = trace.device_events
    event = events["event"].to_numpy()[np.argmax(events["device"].to_numpy() == device)]
    return _identifier(trace, int(trace.columns.pid[event]))


# --- critical path --------------------------------------------------------------------------------


def _critical_path(trace: Trace, span: TimeSpan) -> Iterator[str]:
    segments, edges = critical_path_segments(trace), path_edges(trace)
    process = _free_process(trace)
    yield from (
        metadata(name, process, values, track, category=CATEGORY)
        for name, values, track in PROCESS_NAMES
    )
    start_ns = segments["start_ns"].to_numpy()
    inside = (start_ns >= span[0]) & (start_ns < span[1])
    yield from _slices(trace, segments[inside], process)
    for number, row in enumerate(_hops(trace, segments, inside)):
        kind = int(edges.kind[row])
        ends = int(edges.awaited[row]), int(edges.event[row])
        yield from _arrow(trace, kind, ends, number)


def _slices(trace: Trace, segments: pd.DataFrame, process: int) -> Iterator[str]:
    columns = ("start_ns", "duration_ns", "bound_by", "is_running", "name", "step", "event", "edge")
    for start_ns, duration_ns, bound_by, is_running, name, step, event, edge in zip(
        *(segments[column].tolist() for column in columns), strict=True
    ):
        label = BOUNDS[bound_by][0]
        arguments = {"bound_by": label, "step": step, "event": event, "edge": edge}
        yield (
            f'{{"ph": "X", "cat": "{CATEGORY}", '
            f'"name": {json.dumps(name if is_running and name else label)}, '
            f'"pid": {process}, "tid": 1, "ts": {_stamp(trace, start_ns)}, '
            f'"dur": {microseconds(duration_ns)}, "args": {json.dumps(arguments)}}}'
        )


def _hops(trace: Trace, segments: pd.DataFrame, inside: Mask) -> list[int]:
    """Return the segments at which the path comes from another track."""
    edges, columns = path_edges(trace), trace.columns
    step = segments["step"].to_numpy()
    previous = np.roll(edges.event, 1), np.roll(edges.kind, 1), np.roll(step, 1)
    is_new = (edges.event != previous[0]) | (edges.kind != previous[1])
    is_hop = inside & np.roll(inside, 1) & is_new & (step == previous[2]) & (edges.awaited >= 0)
    is_hop[:1] = False
    track = np.stack((columns.pid, columns.tid))
    is_hop &= (track[:, edges.awaited] != track[:, edges.event]).any(axis=0)
    rows: list[int] = np.flatnonzero(is_hop).tolist()
    return rows


def _arrow(trace: Trace, kind: int, ends: tuple[int, int], number: int) -> Iterator[str]:
    """Yield both ends of an arrow, at moments that viewers bind to the right slices.

    An arrow from device work to a call that waited for it leads to the next slice of the call's
    thread: Perfetto reverses arrows to a slice that began earlier.
    """
    columns = trace.columns
    (awaited_ns, event_ns), durations_ns = (
        of[list(ends)].tolist() for of in (columns.start_ns, columns.duration_ns)
    )
    last_ns = max(0, durations_ns[0] - 1)
    moments = (
        awaited_ns + (last_ns // 2 if kind == LAUNCH else last_ns),
        event_ns + (max(0, durations_ns[1]) if kind == SYNC else 0),
    )
    phases = '"s"', '"f"' if kind == SYNC else '"f", "bp": "e"'
    for phase, end, time_ns in zip(phases, ends, moments, strict=True):
        yield (
            f'{{"ph": {phase}, "id": {number + 1}, "cat": "{CATEGORY}", '
            f'"name": "critical path: {NAMES[kind]}", '
            f'"pid": {_identifier(trace, int(columns.pid[end]))}, '
            f'"tid": {_identifier(trace, int(columns.tid[end]))}, '
            f'"ts": {_stamp(trace, time_ns)}}}'
        )


def _free_process(trace: Trace) -> int:
    """Return the number of a process that the trace does not have."""
    codes: Ints = np.unique(trace.columns.pid)
    used = {trace.columns.strings[code] for code in codes.tolist() if code >= 0}
    return next(number for number in count(FIRST_PROCESS) if str(number) not in used)


def _stamp(trace: Trace, time_ns: int) -> str:
    return microseconds(trace.columns.origin_ns + time_ns)


def _identifier(trace: Trace, code: int) -> str:
    """Return a process or thread as JSON: a number where it is one."""
    text = trace.columns.strings[code] if code >= 0 else ""
    return text if text.isascii() and text.isdigit() else json.dumps(text)


_EVENTS: dict[Drawing, Callable[[Trace, TimeSpan], Iterator[str]]] = {
    "counters": _counters,
    "critical-path": _critical_path,
}
