"""Thousands of events at a time in Python: what reads where the scanner was not compiled.

`json` decodes a list of events in half the time that it takes for each alone, and lists of values
become columns at once. That works where events follow one another plainly, as almost all do; what
stands between them is left to `documents`, one event at a time.
"""

import json
import marshal
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from stepscope.ingest.builder import ColumnBuilder, as_text
from stepscope.ingest.columns import FIELDS, MISSING
from stepscope.ingest.documents import Buffer, Event
from stepscope.ingest.exact import NO_TIME, nanoseconds

FIRST_KEYS = frozenset({"ph", "name"})
"""Kineto begins its events with `ph`, and those that name threads with `name`."""
SPACE = rb"[ \t\r\n]*"
EVENT = SPACE.join((rb"(\{)", rb'"(?:ph|name)"', rb":"))
SEPARATOR = re.compile(rb"[ \t\r\n,]*")
FIRST_EVENT = re.compile(SPACE.join((b"", rb"(,?)", EVENT)))
NEXT_EVENT = re.compile(SPACE.join((rb"\}", rb",", EVENT)))
NEAR_END_BYTES = 256
"""So near the data's end, what is no event may become one with more data."""
LARGEST_BATCH = 8192
SMALLEST_BATCH = 16
PLAIN_FIELD = frozenset({str, int, type(None)})
PLAIN_TIME = frozenset({bytes, int, type(None)})
THREE_PLACES = re.compile(rb"-?\d{1,15}\.\d{3}(?:,-?\d{1,15}\.\d{3})*+")
"""Times that are whole nanoseconds, and surely fit 62 bits."""


class _OddError(Exception):
    """The events of a batch do not follow one another plainly."""


def _refused(_word: str) -> None:
    raise _OddError  # NaN is counted where it stands: by `documents`


_DECODE = json.JSONDecoder(strict=False, parse_float=str.encode, parse_constant=_refused).decode
_ODD = (_OddError, ValueError, RecursionError)


@dataclass(frozen=True, kw_only=True)
class _Batch:
    events: list[dict[str, Any]]
    offsets: Iterator[int]
    end: int


@dataclass
class BatchedColumns(ColumnBuilder):
    """Takes many events at once, or one at a time as `ColumnBuilder` does."""

    most_events: int = 0
    is_starved: bool = True
    size: int = SMALLEST_BATCH
    """How many events are tried at once: more while all goes well."""
    code_of: dict[object, int] = field(default_factory=lambda: {None: MISSING})
    """By a field's value: text or whole number."""
    texts: dict[bytes, str] = field(default_factory=dict)
    """Objects, lists and truths that were met, by their bytes, as JSON."""
    same: dict[str, str] = field(default_factory=dict)
    """Texts that were met, so that each is kept once."""

    def scan(self, data: Buffer, at: int, offset: int, *, is_comma_due: bool) -> int:
        """Take events from `data[at:]`: see `documents.Scanner`."""
        self.is_starved = True
        while True:
            try:
                batch = self._decoded(data, at, offset, is_comma_due=is_comma_due)
            except _ODD:
                if self.size == SMALLEST_BATCH:
                    self.is_starved = False
                    return at
                self.size = max(SMALLEST_BATCH, self.size // 8)
                continue
            if batch is None:
                return at
            self._take(batch)
            self.size = min(LARGEST_BATCH, self.size * 2)
            at, is_comma_due = batch.end, True

    def _decoded(self, data: Buffer, at: int, offset: int, *, is_comma_due: bool) -> _Batch | None:
        """Decode the next events; None where the data holds no whole one that another follows."""
        first = FIRST_EVENT.match(data, at)
        if first is None:
            separator = SEPARATOR.match(data, at)
            if separator and len(data) - separator.end() > NEAR_END_BYTES:
                raise _OddError
            return None
        room = min(self.size, self.most_events - len(self))
        if bool(first[1]) is not is_comma_due or room <= 0:
            raise _OddError
        start = first.start(2)
        seams = list(islice(NEXT_EVENT.finditer(data, start), room))
        if not seams:
            return None
        end = seams[-1].start() + 1
        events = _DECODE(f"[{str(data[start:end], 'utf-8')}]")
        if len(events) != len(seams) or not all(
            next(iter(event)) in FIRST_KEYS for event in events
        ):
            raise _OddError  # what looked like the start of an event was none
        starts = chain((start,), (seam.start(1) for seam in seams[:-1]))
        return _Batch(events=events, offsets=(offset + place for place in starts), end=end)

    def _take(self, batch: _Batch) -> None:
        row = len(self)
        fields = [[event.pop(key, None) for event in batch.events] for key in FIELDS]
        times = [[event.pop(key, None) for event in batch.events] for key in ("ts", "dur")]
        if not (
            all(PLAIN_FIELD.issuperset(map(type, values)) for values in fields)
            and all(PLAIN_TIME.issuperset(map(type, values)) for values in times)
            and self._add_times(times)
        ):
            self._take_one_by_one(batch, fields + times)
            return
        self._add_codes(fields)
        self.offsets.extend(batch.offsets)
        self._add_arguments(row, batch.events)

    def _add_times(self, times: list[list[Any]]) -> bool:
        """Append the times; False, and nothing, where one is none."""
        times_ns = [_exact_ns(values) for values in times]
        for values, in_ns in zip(times, times_ns, strict=True):
            if in_ns.count(NO_TIME) != values.count(None):
                return False
        self.starts_ns.extend(times_ns[0])
        self.durations_ns.extend(times_ns[1])
        return True

    def _take_one_by_one(self, batch: _Batch, taken: list[list[Any]]) -> None:
        for event, offset, *values in zip(batch.events, batch.offsets, *taken, strict=True):
            fields = dict(zip((*FIELDS, "ts", "dur"), values, strict=True))
            self.add(Event(fields=fields | event, offset=offset))

    def _add_codes(self, fields: list[list[Any]]) -> None:
        """Append the codes of six fields; new texts get theirs in the order of the events."""
        fresh: list[tuple[int, int, Any]] = []
        for number, values in enumerate(fields):
            new = set(values).difference(self.code_of)
            first = {value: place for place, value in enumerate(reversed(values))} if new else {}
            fresh += [(-first[value], number, value) for value in new]
        for _, _, value in sorted(fresh):
            self.code_of[value] = self.code(value)
        for column, values in zip(self.fields.values(), fields, strict=True):
            column.extend(map(self.code_of.__getitem__, values))

    def _add_arguments(self, row: int, events: list[dict[str, Any]]) -> None:
        """Append the arguments of events from a row on: at once for those with the same keys."""
        groups: dict[tuple[str, ...], tuple[list[int], list[dict[str, Any]]]] = {}
        for place, event in enumerate(events, start=row):
            extra = event.pop("args", None)
            if type(extra) is not dict:
                extra = event if extra is None else event | {"args": extra}
            elif event:
                extra = event | extra
            keys = tuple(extra)
            group = groups.get(keys)
            if group is None:
                group = groups[keys] = ([], [])
            group[0].append(place)
            group[1].append(extra)
        for keys, (rows, extras) in groups.items():
            for key in keys:
                self._add_argument(key, rows, [extra[key] for extra in extras])

    def _add_argument(self, key: str, rows: list[int], values: list[Any]) -> None:
        kinds = set(map(type, values))
        if not kinds <= {int, bytes}:
            if type(None) in kinds:
                rows = [row for row, value in zip(rows, values, strict=True) if value is not None]
                values = [value for value in values if value is not None]
            keep = self.same.setdefault
            values = [
                keep(value, value)
                if type(value) is str
                else value
                if type(value) in {int, bytes}
                else self._text(value)
                for value in values
            ]
        if values:
            argument = self.arguments.get(key)
            if argument is None:
                argument = self.arguments[key] = self.new_argument()
            argument[0].extend(rows)
            argument[1].extend(values)

    def _text(self, value: Any) -> str:  # noqa: ANN401 (a JSON value is anything)
        """Return an object, a list or a truth as JSON, worked out once for each."""
        key = marshal.dumps(value, 2)
        text = self.texts.get(key)
        if text is None:
            text = self.texts[key] = as_text(value)
        return text


def _exact_ns(times: list[Any]) -> list[int]:
    """Return times in nanoseconds; fast for what kineto writes, three places behind the point."""
    written = [time for time in times if time is not None]
    try:
        joined = b",".join(written)
    except TypeError:  # there are whole numbers among them
        joined = b""
    if not THREE_PLACES.fullmatch(joined):
        return [nanoseconds(time) for time in times]
    exact = map(int, joined.replace(b".", b"").split(b","))
    if len(written) == len(times):
        return list(exact)
    return [NO_TIME if time is None else next(exact) for time in times]
