"""A part of a recording as a Chrome trace: its events as the file has them, byte for byte.

The file is gone through once more, and only what one event takes is in memory. An event that was
no valid JSON is written as it was read; one that was shortened differs in `dur` alone.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, BinaryIO

import numpy as np

from stepscope import storage
from stepscope.analyses.core.trace_cut import Cut
from stepscope.ingest.cursor import LONGEST_VALUE_CHARACTERS
from stepscope.ingest.exact_numbers import NumberText
from stepscope.ingest.incidents import IncidentLog
from stepscope.ingest.inflate import Inflater
from stepscope.ingest.reader import Limits
from stepscope.ingest.repair import BeyondRepairError, repair
from stepscope.model.trace import Trace

NOTE = "stepscopeCut"
"""The top-level key that says what was cut out."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """What came of it."""

    event_count: int
    shortened_count: int
    lost_count: int
    """Events that could not be read again."""


def _refused(word: str) -> None:
    msg = f"{word} is no JSON"
    raise ValueError(msg)


_DECODER = json.JSONDecoder(parse_constant=_refused)


def write(trace: Trace, cut: Cut, sink: BinaryIO) -> Written:
    """Write a part of a recording.

    Raises:
        OSError: the recording cannot be read again, or nothing can be written.
    """
    note = {
        "start_ns": cut.start_ns,
        "end_ns": cut.end_ns,
        "shortened_count": len(cut.shortened),
    }
    metadata = {**trace.metadata, NOTE: note}
    sink.write(b"{\n")
    for key, value in metadata.items():
        sink.write(f"{json.dumps(key)}: {_encoded(value)},\n".encode("utf-8", "replace"))
    sink.write(b'"traceEvents": [')
    durations = dict(zip(cut.shortened.tolist(), cut.duration_ns.tolist(), strict=True))
    count = 0
    for event, raw in _raw_events(trace, cut):
        text = _as_json(raw, durations.get(event))
        if text:
            sink.write(b",\n" if count else b"\n")
            sink.write(text)
            count += 1
    sink.write(b"\n]}\n")
    return Written(
        event_count=count,
        shortened_count=len(durations),
        lost_count=len(cut.events) - count,
    )


def _raw_events(trace: Trace, cut: Cut) -> Iterator[tuple[int, bytes]]:
    """Yield each event with the file's text from its first byte up to the next event's."""
    offsets = trace.columns.offset_bytes
    starts = np.sort(offsets)
    order = cut.events[np.argsort(offsets[cut.events], kind="stable")]
    begin = offsets[order]
    following = np.append(starts, trace.columns.inflated_bytes)
    stop = following[np.searchsorted(starts, begin, side="right")]
    stop = np.minimum(stop, begin + LONGEST_VALUE_CHARACTERS)
    with storage.open_binary(trace.path) as stream:
        inflater = Inflater(stream, Limits().inflated_bytes, IncidentLog())
        texts = _slices(inflater.inflated(), begin.tolist(), stop.tolist())
        yield from zip(order.tolist(), texts, strict=True)


def _slices(pieces: Iterator[bytes], begins: list[int], stops: list[int]) -> Iterator[bytes]:
    """Yield the bytes from each beginning to its stop; beginnings ascend."""
    data, at = b"", 0
    for begin, stop in zip(begins, stops, strict=True):
        while at + len(data) < stop and (piece := next(pieces, b"")):
            keep = data[max(0, begin - at) :] if begin < at + len(data) else b""
            at += len(data) - len(keep)
            data = keep + piece if keep else piece
        yield data[begin - at : stop - at]


def _as_json(raw: bytes, duration_ns: int | None) -> bytes:
    """Return an event as valid JSON, with another duration if one is given; b"" if none is."""
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
        event["dur"] = f"{duration_ns // 1000}.{duration_ns % 1000:03d}".encode()
    return _encoded(event).encode("utf-8", "replace")


def _encoded(value: Any) -> str:  # noqa: ANN401 (a JSON value is anything)
    """Return a value as JSON; a number keeps its own text."""
    if isinstance(value, NumberText):
        return value.decode()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {_encoded(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_encoded, value)) + "]"
    return "null" if isinstance(value, float) and not isfinite(value) else json.dumps(value)
