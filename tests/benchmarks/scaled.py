"""Traces of any size: the events of a trace repeated at later times, with new ids.

Their layout is kineto's, so that readers treat them as recorded traces. From a shell, in `tests`:
`python -m benchmarks.scaled 43MB 2GB 10M`; a size is of plain JSON, or a count of events. A file is
generated once and stored in `.cache/bench`.
"""

import argparse
import gzip
import json
import os
import random
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import synthesis

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "bench"
SEED = min((ROOT / "sample_logs/language_model/long_job").glob("*.json.gz"))
SIZE = re.compile(r"(\d+)(?:(M|G)B|(k|M))")
TRACE_ENDING = re.compile(r"(\.pt)?(\.trace)?\.json(\.gz)?$")
POWERS = {"k": 10**3, "M": 10**6, "G": 10**9}
NUMBER = re.compile(
    r'(?<=")(?P<key>ts|id|correlation|[Ee]xternal id|Ev Idx|Python (?:parent )?id'
    r'|Sequence number|Record function id)": (?P<number>[1-9]\d*)|(?<="ProfilerStep#)(?P<step>\d+)'
)
"""Numbers that differ between replicas. Keys inside texts do not match: they have backslashes."""
COUNTS = {
    "Python parent id": "Python id",
    # Arrows have the correlation of the events that they link.
    **dict.fromkeys(("id", "external id", "correlation"), "External id"),
}
"""Keys that share the numbers of another key."""


@dataclass(frozen=True)
class Replicas:
    """One replica's text, with `%d` for each number, and the strides of these between replicas.

    `event_count` is that of one replica.
    """

    text: str
    numbers: NDArray[np.int64]
    strides: NDArray[np.int64]
    event_count: int

    def __getitem__(self, replica: int) -> str:
        """Return the events of one replica; 0 is the trace itself."""
        return self.text % tuple((self.numbers + replica * self.strides).tolist())


def replicas(events: Sequence[Mapping[str, Any]], period_us: int) -> Replicas:
    """Return replicas of the events, each `period_us` after the previous one."""
    text = events_text(events)
    matches = list(NUMBER.finditer(text))
    keys = np.array([COUNTS.get(match["key"], match["key"] or "step") for match in matches])
    numbers = np.array([int(match["number"] or match["step"]) for match in matches], dtype=np.int64)
    strides = np.full_like(numbers, period_us)
    for key in set(keys.tolist()) - {"ts"}:
        of_key = keys == key
        lowest = numbers[of_key].min() if key == "step" else 0
        strides[of_key] = numbers[of_key].max() - lowest + 1
    pieces, end = [], 0
    for match in matches:
        start, stop = match.span("number" if match["key"] else "step")
        pieces.append(text[end:start].replace("%", "%%"))
        end = stop
    pieces.append(text[end:].replace("%", "%%"))
    return Replicas("%d".join(pieces), numbers, strides, len(events))


def events_text(events: Sequence[Mapping[str, Any]]) -> str:
    """Return events as in a file, without the brackets of their list."""
    whole = synthesis.text({"traceEvents": list(events)})
    return whole[whole.index("[") + 1 : whole.rindex("]")].strip("\n ")


def is_written_once(event: Mapping[str, Any]) -> bool:
    """Return whether an event is about the whole trace: metadata, its span, its marks."""
    return event.get("ph") == "M" or event.get("cat") in {None, "Trace"}


def period_us(events: Sequence[Mapping[str, Any]]) -> int:
    """Return the time from the first event's start to the last one's end, rounded up."""
    starts = [Decimal(event["ts"]) for event in events]
    ends = [Decimal(event["ts"]) + Decimal(event.get("dur", 0)) for event in events]
    return int(max(ends) - min(starts)) + 1


def texts(recording: Mapping[str, Any], size: str, *, is_shuffled: bool = False) -> Iterator[str]:
    """Yield the text of a trace of a size, optionally with events and replicas in random order."""
    whole = [event for event in recording["traceEvents"] if is_written_once(event)]
    events = [event for event in recording["traceEvents"] if not is_written_once(event)]
    shuffler = random.Random(0)  # noqa: S311 - the same trace each time
    if is_shuffled:
        shuffler.shuffle(events)
    length_us = period_us(events)
    made = replicas(events, length_us)
    order = list(range(count_of(size, made)))
    if is_shuffled:
        shuffler.shuffle(order)
    document = synthesis.text({**recording, "traceEvents": []})
    head, tail = document.split('"traceEvents": [\n', maxsplit=1)
    yield head + '"traceEvents": [\n  '
    for replica in order:
        yield made[replica] + ",\n  "
    last_us = (len(order) - 1) * length_us
    yield events_text([_lengthened(event, last_us) for event in whole]) + tail.lstrip(" ")


def count_of(size: str, made: Replicas) -> int:
    """Return the number of replicas nearest to a size: `43MB`, `2GB`, or `10M` events."""
    match = SIZE.fullmatch(size)
    if match is None:
        msg = f"{size}: a size is like 43MB or 2GB of plain JSON, or 10M events"
        raise ValueError(msg)
    if match[3]:
        return max(1, round(int(match[1]) * POWERS[match[3]] / made.event_count))
    return max(1, round(int(match[1]) * POWERS[match[2]] / len(made[0])))


def _lengthened(event: Mapping[str, Any], by_us: int) -> Mapping[str, Any]:
    """Return the trace's span longer, its last mark later, and other events unchanged."""
    if event.get("cat") == "Trace":
        return {**event, "dur": event["dur"] + by_us}
    if event.get("name") == "Record Window End":
        return {**event, "ts": event["ts"] + by_us}
    return event


def parsed(content: bytes) -> dict[str, Any]:
    """Return a trace's document with exact times."""
    document: dict[str, Any] = json.loads(content, parse_float=Decimal)
    events = document.pop("traceEvents")
    plain: dict[str, Any] = json.loads(json.dumps(document, default=float))
    plain["traceEvents"] = [
        {**event, "args": json.loads(json.dumps(event["args"], default=float))}
        if "args" in event
        else event
        for event in events
        if "ts" in event
    ]
    return plain


def scaled(
    size: str, seed: Path = SEED, *, is_shuffled: bool = False, is_plain: bool = False
) -> Path:
    """Return a trace of a size from the events of a seed, written if missing."""
    content = seed.read_bytes()
    if seed.suffix == ".gz":
        content = gzip.decompress(content)
    stem = TRACE_ENDING.sub("", seed.name)
    order = "-shuffled" if is_shuffled else ""
    ending = ".pt.trace.json" if is_plain else ".pt.trace.json.gz"
    path = FOLDER / f"{stem}-{size}{order}-{zlib.crc32(content):08x}{ending}"
    if not path.exists():
        _write(path, texts(parsed(content), size, is_shuffled=is_shuffled))
    return path


def _write(path: Path, pieces: Iterator[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    compressor = zlib.compressobj(level=1, wbits=31) if path.suffix == ".gz" else None
    with unfinished.open("wb") as file:
        for piece in pieces:
            data = piece.encode()
            file.write(compressor.compress(data) if compressor else data)
        file.write(compressor.flush() if compressor else b"")
    unfinished.rename(path)


def main() -> None:
    """Generate the traces that the command line names; print their paths."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="+", metavar="SIZE", help="43MB, 2GB, 10M (events), ...")
    parser.add_argument("--seed", type=Path, default=SEED, help="the trace to repeat")
    parser.add_argument("--shuffled", action="store_true", help="events in random order")
    parser.add_argument("--plain", action="store_true", help="not compressed")
    options = parser.parse_args()
    for size in options.sizes:
        print(scaled(size, options.seed, is_shuffled=options.shuffled, is_plain=options.plain))


if __name__ == "__main__":
    main()
