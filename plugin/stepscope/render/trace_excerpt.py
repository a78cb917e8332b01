"""A trace, or a part of it, as a Chrome trace with the file's text of each event.

The file is read once more, one event in memory at a time. An event that was invalid JSON is written
as it was repaired; one that was shortened differs in `dur` alone.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, BinaryIO

import numpy as np

from stepscope import storage
from stepscope.analyses.core.trace_cut import Cut, cut, time_of_steps, whole
from stepscope.base.config import file_limits
from stepscope.base.step_range import StepRange
from stepscope.ingest.cursor import LONGEST_VALUE_CHARACTERS
from stepscope.ingest.exact_numbers import NumberText
from stepscope.ingest.incidents import IncidentLog
from stepscope.ingest.inflate import Inflater
from stepscope.ingest.repair import BeyondRepairError, repair
from stepscope.model.trace import Trace
from stepscope.render.chrome_events import microseconds
from stepscope.render.drawn_events import CATEGORY, Drawing, drawn_events
from stepscope.storage.output_files import atomic_output

NOTE = "stepscopeCut"
"""The top-level key that describes the excerpt."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The part of a trace to write, by time or by steps, and the file to write."""

    path: str
    time_ns: tuple[int, int] | None = None
    """First and last moment."""
    steps: StepRange | None = None
    """Without both, the whole trace, every event as recorded."""
    is_repaired: bool = True
    drawings: tuple[Drawing, ...] = ()
    """Events to add."""


@dataclass(frozen=True, kw_only=True)
class WrittenEvents:
    """Counts of events written, shortened, lost (they could not be read again), and added."""

    event_count: int
    shortened_count: int
    lost_count: int
    drawn_count: int = 0


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """A written part of a trace that has `of_count` events."""

    start_ns: int
    end_ns: int
    of_count: int
    written: WrittenEvents


def write(trace: Trace, request: Request) -> Excerpt:
    """Write the requested part of a trace to a file.

    Raises:
        MissingDataError: the trace has no steps, or nothing to draw.
        UsageError: it has no such steps, or no such time.
        OSError: the trace cannot be read again, or the file cannot be written.
    """
    part = _part(trace, request)
    with atomic_output(request.path) as sink:
        events = write_events(trace, part, sink, request.drawings)
    return Excerpt(start_ns=part.start_ns, end_ns=part.end_ns, of_count=len(trace), written=events)


def _part(trace: Trace, request: Request) -> Cut:
    if request.time_ns is None and request.steps is None:
        return whole(trace)
    steps = request.steps or StepRange(0, 0)
    time_ns = request.time_ns or time_of_steps(trace, steps.first, steps.last)
    return cut(trace, *time_ns, is_repaired=request.is_repaired)


def write_events(
    trace: Trace, part: Cut, sink: BinaryIO, drawings: Sequence[Drawing] = ()
) -> WrittenEvents:
    """Write a part of a trace as a JSON document, with drawings at the end.

    Raises:
        MissingDataError: the trace has nothing to draw.
        OSError: the trace cannot be read again, or the sink cannot be written.
    """
    note: dict[str, Any] = {
        "start_ns": part.start_ns,
        "end_ns": part.end_ns,
        "shortened_count": len(part.shortened),
    }
    if drawings:
        note["added"] = {"category": CATEGORY, "drawings": list(drawings)}
    sink.write(b"{\n")
    for key, value in {**trace.metadata, NOTE: note}.items():
        sink.write(f"{json.dumps(key)}: {_encoded(value)},\n".encode("utf-8", "replace"))
    sink.write(b'"traceEvents": [')
    durations = dict(zip(part.shortened.tolist(), part.duration_ns.tolist(), strict=True))
    count = 0
    for event, raw in _raw_events(trace, part):
        if text := _as_json(raw, durations.get(event)):
            sink.write(b",\n" if count else b"\n")
            sink.write(text)
            count += 1
    drawn_count = 0
    for drawn in drawn_events(trace, drawings, (part.start_ns, part.end_ns)):
        sink.write(f"{',' if count or drawn_count else ''}\n{drawn}".encode("utf-8", "replace"))
        drawn_count += 1
    sink.write(b"\n]}\n")
    return WrittenEvents(
        event_count=count,
        shortened_count=len(durations),
        lost_count=len(part.events) - count,
        drawn_count=drawn_count,
    )


def open_again(trace: Trace) -> BinaryIO:
    """Open a trace's file, if it is the one that was read.

    Raises:
        ChangedFileError: it was changed or replaced.
        OSError: it cannot be opened.
    """
    stamp = trace.columns.stamp
    return storage.open_unchanged(trace.path, stamp) if stamp else storage.open_binary(trace.path)


def _raw_events(trace: Trace, part: Cut) -> Iterator[tuple[int, bytes]]:
    """Yield each event with the file's bytes from its begin to the next event's."""
    offsets = trace.columns.offset_bytes
    starts = np.sort(offsets)
    order = part.events[np.argsort(offsets[part.events], kind="stable")]
    begin = offsets[order]
    following = np.append(starts, trace.columns.inflated_bytes)
    stop = following[np.searchsorted(starts, begin, side="right")]
    stop = np.minimum(stop, begin + LONGEST_VALUE_CHARACTERS)
    with open_again(trace) as stream:
        inflater = Inflater(stream, file_limits(), IncidentLog())
        texts = _slices(inflater.inflated(), begin.tolist(), stop.tolist())
        yield from zip(order.tolist(), texts, strict=True)


def _slices(pieces: Iterator[bytes], begins: list[int], stops: list[int]) -> Iterator[bytes]:
    """Yield the bytes from each begin to its stop; begins ascend."""
    data, at = b"", 0
    for begin, stop in zip(begins, stops, strict=True):
        while at + len(data) < stop and (piece := next(pieces, b"")):
            rest = data[max(0, begin - at) :] if begin < at + len(data) else b""
            at += len(data) - len(rest)
            data = rest + piece if rest else piece
        yield data[begin - at : stop - at]


def _refuse_constant(word: str) -> None:
    msg = f"{word} is no JSON"
    raise ValueError(msg)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _as_json(raw: bytes, duration_ns: int | None) -> bytes:
    """Return an event as valid JSON, with the duration where it is given; b"" if beyond repair."""
    try:
        text = raw.decode()
        if duration_ns is None:
            _, end = _DECODER.raw_decode(text)
            return text[:end].encode()
    except (ValueError, RecursionError):
        text = raw.decode(errors="replace")
    try:
        event = repair(text).value
    except BeyondRepairError:
        return b""
    if duration_ns is not None:
        event["dur"] = microseconds(duration_ns).encode()
    return _encoded(event).encode("utf-8", "replace")


def _encoded(value: Any) -> str:  # noqa: ANN401 (a JSON value is anything)
    """Return a value as JSON; a number keeps the file's digits."""
    if isinstance(value, NumberText):
        return value.decode()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {_encoded(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_encoded, value)) + "]"
    return "null" if isinstance(value, float) and not isfinite(value) else json.dumps(value)
