"""Columns from the compiled scanner, if it was built; equal to those of `column_builder`."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.ingest.column_builder import arguments_of, as_text, fits_float, timed, times_text
from stepscope.ingest.columns import (
    FIELDS,
    MISSING,
    ArgumentColumn,
    ColumnParts,
    Decoded,
    narrowest,
    readable,
)
from stepscope.ingest.document_values import Buffer, Event
from stepscope.ingest.documents import comma_excerpt
from stepscope.ingest.exact_numbers import NumberText
from stepscope.ingest.incidents import EXAMPLE_CHARACTERS, IncidentLog

try:
    from stepscope.ingest import _scanner
except ImportError:  # there was no compiler when stepscope was installed
    _scanner = None  # type: ignore[assignment]

IS_BUILT = _scanner is not None
WHOLE, DECIMAL, PLAIN, ESCAPED, CONTAINER, NUMBER, TRUE, FALSE = range(8)
"""Storage of argument values in the scanner: see `_scanner.pyx`."""
WIDTHS = {4: np.int32, 8: np.int64}
"""By bytes per value."""
DIGITS_BEHIND_BITS = 4
POWERS = np.array([float(10**power) for power in range(16)])
"""Exact, so that dividing a whole number below 2**53 rounds once, as parsing the text does."""
SCANNED_WHOLE = range(-(10**18) + 1, 10**18)
SEPARATOR = re.compile(rb"[ \t\r\n,]*")
_DECODER = json.JSONDecoder(strict=False, parse_float=str.encode, parse_constant=lambda _: None)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArgumentTexts:
    """The texts of all arguments of a file, as written, by code."""

    data: NDArray[np.uint8]
    ends: NDArray[np.int64]

    def __getitem__(self, code: int) -> bytes:
        """Return one text."""
        start = int(self.ends[code - 1]) if code else 0
        return self.data[start : self.ends[code]].tobytes()

    @property
    def nbytes(self) -> int:
        """Memory of the texts."""
        return self.data.nbytes + self.ends.nbytes


TABLE_SIZE_LIMIT = 4
"""Maximum number of table entries per value."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScannedValues:
    """One argument's values as the scanner stores them. `texts` is the same for all arguments."""

    kinds: NDArray[np.uint8]
    values: NDArray[Any]
    texts: ArgumentTexts

    @property
    def nbytes(self) -> int:
        """Memory without the texts that all arguments share."""
        return self.kinds.nbytes + self.values.nbytes

    def decoded(self) -> Decoded:
        """Return the values with the narrowest type that can hold all of them."""
        present = set(np.flatnonzero(np.bincount(self.kinds)).tolist())
        if present == {WHOLE}:
            return narrowest(self.values), None
        if present <= {WHOLE, DECIMAL, NUMBER}:
            numbers = self._numbers(present)
            if numbers is not None:
                return numbers, None
        return self._coded(present)

    @cached_property
    def _kind_per_value(self) -> NDArray[np.uint8]:
        """Return the kinds; a kind that applies to all values is stored once."""
        if len(self.kinds) == len(self.values):
            return self.kinds
        return np.broadcast_to(self.kinds, len(self.values))

    def _numbers(self, present: set[int]) -> NDArray[Any] | None:
        """Return whole numbers, or floats; None if neither holds all of them exactly."""
        written = self._written_numbers() if NUMBER in present else {}
        whole = self.values[self._kind_per_value == WHOLE]
        if DECIMAL not in present and all(type(value) is int for value in written.values()):
            return self._whole_numbers(written)
        if len(whole) and not all(fits_float(int(value)) for value in (whole.min(), whole.max())):
            return None
        if not all(fits_float(value) for value in written.values()):
            return None
        return self._floats(written)

    def _written_numbers(self) -> dict[int, int | NumberText]:
        codes = np.unique(self.values[self._kind_per_value == NUMBER]).tolist()
        return {code: _DECODER.decode(self.texts[code].decode()) for code in codes}

    def _whole_numbers(self, written: dict[int, Any]) -> NDArray[Any] | None:
        if any(not -(2**63) <= value < 2**63 for value in written.values()):
            return None  # nor can a float hold such a number exactly
        values = self.values.astype(np.int64)
        is_written = self._kind_per_value == NUMBER
        values[is_written] = [written[code] for code in self.values[is_written].tolist()]
        return narrowest(values)

    def _floats(self, written: dict[int, Any]) -> NDArray[np.float64]:
        values = self.values.astype(np.int64)
        floats = values.astype(np.float64)
        is_decimal = self._kind_per_value == DECIMAL
        digits = values[is_decimal]
        behind = digits & ((1 << DIGITS_BEHIND_BITS) - 1)
        floats[is_decimal] = (digits >> DIGITS_BEHIND_BITS) / POWERS[behind]
        is_written = self._kind_per_value == NUMBER
        floats[is_written] = [float(written[code]) for code in self.values[is_written].tolist()]
        return floats

    def _coded(self, present: set[int]) -> Decoded:
        """Return codes into texts in their order of appearance, without duplicates."""
        distinct = np.empty(len(self.values), dtype=np.int64)
        texts: list[str] = []
        for kind in sorted(present):
            is_kind = self._kind_per_value == kind
            values, index = _distinct(self.values[is_kind])
            distinct[is_kind] = index + len(texts)
            texts += [self._text(kind, value) for value in values.tolist()]
        first = np.empty(len(texts), dtype=np.int64)
        first[distinct[::-1]] = np.arange(len(distinct))[::-1]  # the last assignment remains
        codes: dict[str, int] = {}
        code_of = np.empty(len(texts), dtype=np.int32)
        for index in np.argsort(first).tolist():
            code_of[index] = codes.setdefault(texts[index], len(codes))
        return code_of[distinct], tuple(codes)

    def _text(self, kind: int, value: int) -> str:
        if kind in UNWRITTEN:
            return UNWRITTEN[kind](value)
        written = self.texts[value].decode()
        if kind == PLAIN:
            return written
        return as_text(_DECODER.decode(f'"{written}"' if kind == ESCAPED else written))


def _distinct(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.integer]]:
    """Return `np.unique` with the inverse, computed with a table, since codes are dense."""
    lowest, highest = int(values.min()), int(values.max())
    if highest - lowest > TABLE_SIZE_LIMIT * len(values):
        return np.unique(values, return_inverse=True)
    occurs = np.zeros(highest - lowest + 1, dtype=bool)
    offset = values - lowest if lowest else values
    occurs[offset] = True
    index = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(occurs) + lowest, index[offset]


def _decimal_text(value: int) -> str:
    """Return a number as written, from its digits and the number of decimals."""
    digits = value >> DIGITS_BEHIND_BITS
    behind = value & ((1 << DIGITS_BEHIND_BITS) - 1)
    text = str(abs(digits)).rjust(behind + 1, "0")
    return f"{'-' if digits < 0 else ''}{text[:-behind]}.{text[-behind:]}"


UNWRITTEN: Mapping[int, Callable[[int], str]] = {
    WHOLE: str,
    DECIMAL: _decimal_text,
    TRUE: lambda _: "true",
    FALSE: lambda _: "false",
}
"""The text of values that are stored as numbers."""


def _times_excerpt(data: memoryview) -> str:
    event, _ = _DECODER.raw_decode(str(data, "utf-8"))
    return times_text(event.get("ts"), event.get("dur"))


def _event_excerpt(data: memoryview) -> str:
    """Return the beginning of an event, at most up to its end."""
    start = str(data[: EXAMPLE_CHARACTERS * 4], "utf-8", "ignore")[:EXAMPLE_CHARACTERS]
    try:
        _, end = _DECODER.raw_decode(start)
    except (ValueError, RecursionError):
        return start
    return start[:end]


def _comma_excerpt(data: memoryview) -> str:
    separator = SEPARATOR.match(data)
    return comma_excerpt(separator[0].count(b",") if separator else 0)


EXCERPTS: Mapping[str, Callable[[memoryview], str]] = {
    "text-times": _times_excerpt,
    "missing-comma": _event_excerpt,
    "extra-comma": _comma_excerpt,
}
"""Example text of each kind of the scanner's incidents, from the data there."""


class ScannedColumns:
    """Collects events with the scanner, or one at a time like `ColumnBuilder`."""

    def __init__(self, log: IncidentLog, most_events: int) -> None:
        self._log = log
        self._scanner = _scanner.Scanner(most_events)
        self._noted: dict[str, tuple[int, list[int]]] = self._scanner.notes()

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self._scanner)

    @property
    def is_starved(self) -> bool:
        """True if the last scan stopped because the data ended."""
        return bool(self._scanner.is_starved)

    def scan(self, data: Buffer, at: int, offset: int, *, is_comma_due: bool) -> int:
        """Read ordinary events: see `document_values.Scanner`."""
        end = int(self._scanner.scan(data, at, offset, is_comma_due=is_comma_due))
        notes = self._scanner.notes()
        if notes != self._noted:
            self._note(notes, memoryview(data)[:end], offset)
        return end

    def add(self, event: Event) -> None:
        """Append one event that the scanner did not read."""
        codes = [self._code(event.fields.pop(key, None)) for key in FIELDS]
        start_ns, duration_ns = timed(event, self._log)
        self._scanner.add_event(codes, start_ns, duration_ns, event.offset)
        for key, value in arguments_of(event).items():
            self._scanner.add_argument(key.encode(), *self._stored(value))

    def _code(self, value: object) -> int:
        if value is None:
            return MISSING
        return int(self._scanner.string_code(as_text(value).encode()))

    def _stored(self, value: Any) -> tuple[int, int]:  # noqa: ANN401 (a JSON value is anything)
        if value is True or value is False:
            return (TRUE if value else FALSE), 0
        if type(value) is int and value in SCANNED_WHOLE:
            return WHOLE, value
        kind = NUMBER if isinstance(value, int | NumberText) else PLAIN
        return kind, self._scanner.text_code(as_text(value).encode(), kind)

    def taken(self) -> ColumnParts:
        """Return all events so far, without copying; nothing can be added afterwards."""
        arrays = [
            np.frombuffer(column, dtype=np.int32 if index < len(FIELDS) else np.int64)
            for index, column in enumerate(self._scanner.take_columns())
        ]
        strings, code_of = _merged(*self._scanner.take_strings())
        if code_of is not None:
            arrays[: len(FIELDS)] = [code_of[codes] for codes in arrays[: len(FIELDS)]]
        return ColumnParts(arrays=arrays, strings=strings, arguments=self._arguments())

    def _note(self, notes: dict[str, tuple[int, list[int]]], data: memoryview, offset: int) -> None:
        """Log the scanner's new incidents, with their text in the data."""
        for kind, (count, positions) in notes.items():
            count_before, positions_before = self._noted[kind]
            new = positions[len(positions_before) :]
            for position in new:
                self._log.add(kind, position, EXCERPTS[kind](data[position - offset :]), count=0)
            if count > count_before:
                self._log.more(kind, count=count - count_before)
        self._noted = notes

    def _arguments(self) -> dict[str, ArgumentColumn]:
        names = self._scanner.key_names()
        taken = [self._scanner.take_arguments_of(code) for code in range(len(names))]
        data, ends = self._scanner.take_texts()
        texts = ArgumentTexts(
            data=np.frombuffer(data, dtype=np.uint8), ends=np.frombuffer(ends, dtype=np.int64)
        )
        columns: dict[str, ArgumentColumn] = {}
        for name, (rows, kinds, values, size) in zip(names, taken, strict=True):
            if rows.nbytes:
                columns[name.decode()] = ArgumentColumn(
                    rows=np.frombuffer(rows, dtype=np.int32),
                    stored=ScannedValues(
                        kinds=np.frombuffer(kinds, dtype=np.uint8),
                        values=np.frombuffer(values, dtype=WIDTHS[size]),
                        texts=texts,
                    ),
                )
        return columns


def _merged(
    data: memoryview, ends: memoryview, escaped: list[int]
) -> tuple[tuple[str, ...], NDArray[np.int32] | None]:
    """Return the fields' texts without duplicates, and the new codes if there were duplicates."""
    texts = _split(data, np.frombuffer(ends, dtype=np.int64).tolist())
    if not escaped:
        return tuple(texts), None  # the scanner stores no duplicates
    for code in escaped:
        texts[code] = readable(str(_DECODER.decode(f'"{texts[code]}"')))
    strings: dict[str, int] = {}
    codes = [strings.setdefault(text, len(strings)) for text in texts]
    return tuple(strings), np.array([*codes, MISSING], dtype=np.int32)  # the last is code -1


def _split(data: memoryview, ends: list[int]) -> list[str]:
    """Return the texts that end at these bytes."""
    starts = [0, *ends][:-1]
    whole = str(data, "utf-8")
    if whole.isascii():
        return [whole[start:end] for start, end in zip(starts, ends, strict=True)]
    return [str(data[start:end], "utf-8") for start, end in zip(starts, ends, strict=True)]
