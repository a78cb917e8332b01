"""Recorded and simulated events as one Chrome trace, for Perfetto.

Each device and the host are two processes: as recorded, and below it as simulated. Python functions
are left out.
"""

import json
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.dialects import Kind
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace
from stepscope.render.chrome_events import metadata, microseconds
from stepscope.replay.simulated_events import (
    Span,
    simulated_device_events,
    simulated_host_events,
)
from stepscope.replay.simulation import Simulation
from stepscope.storage.output_files import atomic_output

ROWS_AT_ONCE = 10_000
VERSIONS = ("recorded", "simulated")
CATEGORIES = {
    Kind.OPERATOR: "cpu_op",
    Kind.ANNOTATION: "user_annotation",
    Kind.RUNTIME_CALL: "cuda_runtime",
    Kind.KERNEL: "kernel",
    Kind.COPY: "gpu_memcpy",
    Kind.MEMORY_SET: "gpu_memset",
}
COLUMNS = ["name", "thread", "start_ns", "end_ns"]


class Tracks(NamedTuple):
    """Events of the host or of a device, with their recorded and simulated times."""

    label: str
    names: pd.Series
    kind: Ints
    """`dialects.Kind` of each event."""
    track: NDArray[np.integer]
    """Thread or stream of each event."""
    track_names: dict[int, str]
    times: tuple[Span, Span]


def write(trace: Trace, simulation: Simulation, path: str) -> None:
    """Write the events of a trace to a file; compressed if its name ends in `.gz`.

    Raises:
        OSError: the file cannot be written.
    """
    with atomic_output(path) as sink:
        write_events(trace, simulation, sink)


def write_events(trace: Trace, simulation: Simulation, sink: BinaryIO) -> None:
    """Write the events of a trace as a JSON document, some thousand events in memory at a time."""
    sink.write(b'{"displayTimeUnit": "ms",\n"traceEvents": [')
    separator = "\n"
    for text in _texts(trace, simulation):
        sink.write(f"{separator}{text}".encode("utf-8", "replace"))
        separator = ",\n"
    sink.write(b"\n]}\n")


def _texts(trace: Trace, simulation: Simulation) -> Iterator[str]:
    """Yield events as JSON, without the commas between them."""
    process = 0
    for tracks in _tracks(trace, simulation):
        for version, times in zip(VERSIONS, tracks.times, strict=True):
            process += 1
            yield metadata("process_name", process, {"name": f"{tracks.label}, {version}"})
            yield metadata("process_sort_index", process, {"sort_index": process})
            for number, name in tracks.track_names.items():
                yield metadata("thread_name", process, {"name": name}, number)
            yield from _events(tracks, times, process)


def _tracks(trace: Trace, simulation: Simulation) -> Iterator[Tracks]:
    calls, runtime, device = trace.host_calls, trace.runtime_calls, trace.device_events
    host = pd.concat([calls[COLUMNS], runtime[COLUMNS]], ignore_index=True)
    of_calls = np.where(calls["is_operator"].to_numpy(), Kind.OPERATOR, Kind.ANNOTATION)
    code, threads = host["thread"].cat.codes.to_numpy(), host["thread"].cat.categories
    yield Tracks(
        label="Host",
        names=host["name"].astype(str),
        kind=np.append(of_calls, np.full(len(runtime), Kind.RUNTIME_CALL)),
        track=code,
        track_names={number: str(threads[number]) for number in np.unique(code).tolist()},
        times=(_recorded(host), simulated_host_events(trace, simulation, host)),
    )
    simulated = simulated_device_events(trace, simulation)
    for number in np.unique(device["device"].to_numpy()).tolist():
        rows = np.flatnonzero(device["device"].to_numpy() == number)
        part = device.iloc[rows]
        streams = np.unique(part["stream"].to_numpy()).tolist()
        yield Tracks(
            label=f"Device {number}",
            names=part["name"].astype(str),
            kind=part["kind"].to_numpy(),
            track=part["stream"].to_numpy(),
            track_names={stream: f"stream {stream}" for stream in streams},
            times=(_recorded(part), Span(*(of[rows] for of in simulated))),
        )


def _recorded(frame: pd.DataFrame) -> Span:
    return Span(frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy())


def _events(tracks: Tracks, times: Span, process: int) -> Iterator[str]:
    """Yield complete events as JSON, with exact times in microseconds."""
    for first in range(0, len(tracks.kind), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        start, end = times.start_ns[rows], times.end_ns[rows]
        columns = (
            tracks.names.iloc[rows],
            tracks.kind[rows],
            tracks.track[rows],
            start,
            end - start,
        )
        for name, kind, track, start_ns, duration_ns in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            yield (
                f'{{"ph": "X", "cat": "{CATEGORIES[Kind(kind)]}", "name": {json.dumps(name)}, '
                f'"pid": {process}, "tid": {track}, '
                f'"ts": {microseconds(start_ns)}, "dur": {microseconds(duration_ns)}}}'
            )
