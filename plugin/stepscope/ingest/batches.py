"""Batched reading of thousands of events at a time in Python, without the compiled scanner.

`json` decodes a list of events in half the time that it takes for single events, and lists of
values become columns at once. This works if events follow one another without irregularities, as
almost all do; others are left to `documents`, one event at a time.
"""

import json
import marshal
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.ingest.column_builder import ColumnBuilder, as_text
from stepscope.ingest.columns import FIELDS, MISSING
from stepscope.ingest.document_values import Buffer, Event
from stepscope.ingest.exact_numbers import NO_TIME, nanoseconds

FIRST_KEYS = frozenset({"ph", "name"})
"""Keys that begin an event: kineto's events begin with `ph`, thread names with `name`."""
SPACE = rb"[ \t\r\n]*"
EVENT = SPACE.join((rb"(\{)", rb'"(?:ph|name)"', rb":"))
SEPARATOR = re.compile(rb"[ \t\r\n,]*")
FIRST_EVENT = re.compile(SPACE.join((b"", rb"(,?)", EVENT)))
NEXT_EVENT = re.compile(SPACE.join((rb"\}", rb",", EVENT)))
NEAR_END_BYTES = 256
"""Distance to the data's end in which apparent non-events may become events with more data."""
LARGEST_BATCH = 8192
SMALLEST_BATCH = 16
EVENT_KEYS = frozenset({*FIELDS, "ts", "dur", "args"})
PLAIN_FIELD = frozenset({str, int, type(None)})
PLAIN_TIME = frozenset({bytes, int, type(None)})
THREE_DECIMALS = re.compile(rb"-?\d{1,15}\.\d{3}(?:,-?\d{1,15}\.\d{3})*+")
"""Times in whole nanoseconds that fit 62 bits."""

SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""An escaped half of a surrogate pair."""


class _IrregularError(Exception):
    """A batch contains an irregular sequence of events."""


def _refused(_word: str) -> None:
    raise _IrregularError  # `documents` counts NaN with its offset


_DECODE = json.JSONDecoder(strict=False, parse_float=str.encode, parse_constant=_refused).decode
_ODD = (_IrregularError, ValueError, RecursionError)


@dataclass(frozen=True, kw_only=True)
class _Batch:
    events: list[dict[str, Any]]
    offsets: Iterator[int]
    end: int
    has_surrogates: bool
    """Whether a name may be unreadable: two names may become one."""


@dataclass
class BatchedColumns(ColumnBuilder):
    """Takes many events at once, or one at a time as `ColumnBuilder` does."""

    most_events: int = 0
    is_starved: bool = True
    size: int = SMALLEST_BATCH
    """Number of events to try at once; grows with each success."""
    code_of: dict[object, int] = field(default_factory=lambda: {None: MISSING})
    """By a field's value: text or whole number."""
    texts: dict[bytes, str] = field(default_factory=dict)
    """JSON text of objects, lists and bools, by their bytes."""
    same: dict[str, str] = field(default_factory=dict)
    """Interned texts."""

    def scan(self, data: Buffer, at: int, offset: int, *, is_comma_due: bool) -> int:
        """Take events from `data[at:]`: see `document_values.Scanner`."""
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
        """Decode the next events; None if the data has no complete event followed by another."""
        first = FIRST_EVENT.match(data, at)
        if first is None:
            separator = SEPARATOR.match(data, at)
            if separator and len(data) - separator.end() > NEAR_END_BYTES:
                raise _IrregularError
            return None
        room = min(self.size, self.most_events - len(self))
        if bool(first[1]) is not is_comma_due or room <= 0:
            raise _IrregularError
        start = first.start(2)
        seams = list(islice(NEXT_EVENT.finditer(data, start), room))
        if not seams:
            return None
        end = seams[-1].start() + 1
        events = _DECODE(f"[{str(data[start:end], 'utf-8')}]")
        if len(events) != len(seams) or not all(
            next(iter(event)) in FIRST_KEYS for event in events
        ):
            raise _IrregularError  # an apparent start of an event was not one
        starts = chain((start,), (seam.start(1) for seam in seams[:-1]))
        return _Batch(
            events=events,
            offsets=(offset + position for position in starts),
            end=end,
            has_surrogates=SURROGATE.search(data, start, end) is not None,
        )

    def _take(self, batch: _Batch) -> None:
        shapes = [_columns(batch.events, places) for places in _grouped_by_keys(batch.events)]
        times = [_Times.of(shape) for shape in shapes]
        is_plain = not batch.has_surrogates and all(shape.is_plain for shape in shapes)
        if not is_plain or None in times:
            for event, offset in zip(batch.events, batch.offsets, strict=True):
                self.add(Event(fields=event, offset=offset))
            return
        row, count = len(self), len(batch.events)
        self._add_new_texts(shapes)
        for key, column in self.fields.items():
            column.frombytes(self._codes(key, shapes, count).tobytes())
        for name, times_ns in (("starts_ns", self.starts_ns), ("durations_ns", self.durations_ns)):
            in_ns = np.full(count, NO_TIME, dtype=np.int64)
            for shape, time in zip(shapes, times, strict=True):
                in_ns[shape.at] = getattr(time, name)
            times_ns.frombytes(in_ns.tobytes())
        self.offsets.extend(batch.offsets)
        for shape in shapes:
            self._add_arguments(shape, row)

    def _add_new_texts(self, shapes: list["_Shape"]) -> None:
        """Assign codes to new texts of fields, in the order of the events."""
        fresh: list[tuple[int, int, Any]] = []
        for number, key in enumerate(FIELDS):
            for shape in shapes:
                values = shape.columns.get(key, ())
                if new := set(values).difference(self.code_of):
                    first = dict(zip(reversed(values), reversed(shape.places), strict=True))
                    fresh += [(first[value], number, value) for value in new]
        for _, _, value in sorted(fresh, key=itemgetter(0, 1)):
            if value not in self.code_of:
                self.code_of[value] = self.code(value)

    def _codes(self, key: str, shapes: list["_Shape"], count: int) -> NDArray[np.int32]:
        codes = np.full(count, MISSING, dtype=np.int32)
        for shape in shapes:
            if (values := shape.columns.get(key)) is not None:
                field_codes = map(self.code_of.__getitem__, values)
                codes[shape.at] = np.fromiter(field_codes, dtype=np.int32, count=len(values))
        return codes

    def _add_arguments(self, shape: "_Shape", row: int) -> None:
        for key, values in shape.columns.items():
            if key not in EVENT_KEYS:
                self._add_argument(key, [row + index for index in shape.places], values)
        extras = shape.columns.get("args", ())
        for indices in _grouped_by_keys(extras):
            alike = _columns(extras, indices)
            rows = [row + shape.places[index] for index in indices]
            for key, values in alike.columns.items():
                self._add_argument(key, rows, values)

    def _add_argument(self, key: str, rows: list[int], values: Sequence[Any]) -> None:
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
        """Return an object, a list or a bool as JSON, computed once per value."""
        key = marshal.dumps(value, 2)
        text = self.texts.get(key)
        if text is None:
            text = self.texts[key] = as_text(value)
        return text


@dataclass(frozen=True, kw_only=True, eq=False)
class _Shape:
    """Objects with the same keys in the same order, as columns."""

    places: list[int]
    at: NDArray[np.int64]
    """The same as an array."""
    columns: dict[str, tuple[Any, ...]]

    @property
    def is_plain(self) -> bool:
        """True if every field has its usual type."""
        fields = (self.columns[key] for key in FIELDS if key in self.columns)
        extras = self.columns.get("args", ())
        extra_keys = self.columns.keys() - EVENT_KEYS
        return (
            all(PLAIN_FIELD.issuperset(map(type, values)) for values in fields)
            and {dict}.issuperset(map(type, extras))
            and not (extra_keys and any(extra_keys & extra.keys() for extra in extras))
        )

    def times_ns(self, key: str) -> list[int] | None:
        """Return times in nanoseconds; None if a value has another type."""
        written = self.columns.get(key)
        if written is None:
            return [NO_TIME] * len(self.places)
        if not PLAIN_TIME.issuperset(map(type, written)):
            return None
        in_ns = _exact_ns(written)
        return in_ns if in_ns.count(NO_TIME) == written.count(None) else None


@dataclass(frozen=True, kw_only=True)
class _Times:
    starts_ns: list[int]
    durations_ns: list[int]

    @classmethod
    def of(cls, shape: _Shape) -> "_Times | None":
        """Return the times of events; None if an event has none."""
        starts_ns, durations_ns = shape.times_ns("ts"), shape.times_ns("dur")
        if starts_ns is None or durations_ns is None:
            return None
        return cls(starts_ns=starts_ns, durations_ns=durations_ns)


def _grouped_by_keys(objects: Sequence[dict[str, Any]]) -> Iterable[list[int]]:
    """Return the indices of objects with the same keys in the same order, grouped."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for index, item in enumerate(objects):
        keys = tuple(item)
        group = groups.get(keys)
        if group is None:
            group = groups[keys] = []
        group.append(index)
    return groups.values()


def _columns(objects: Sequence[dict[str, Any]], indices: list[int]) -> _Shape:
    values = zip(*[objects[index].values() for index in indices], strict=True)
    columns = dict(zip(objects[indices[0]], values, strict=True))
    return _Shape(places=indices, at=np.array(indices, dtype=np.int64), columns=columns)


def _exact_ns(times: Sequence[Any]) -> list[int]:
    """Return times in nanoseconds; fast for kineto's three decimals."""
    written = [time for time in times if time is not None]
    try:
        joined = b",".join(written)
    except TypeError:  # some are whole numbers
        joined = b""
    if not THREE_DECIMALS.fullmatch(joined):
        return [nanoseconds(time) for time in times]
    exact = map(int, joined.replace(b".", b"").split(b","))
    if len(written) == len(times):
        return list(exact)
    return [NO_TIME if time is None else next(exact) for time in times]
