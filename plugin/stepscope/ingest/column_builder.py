"""Columns from single events in Python: slow, the reference for the compiled scanner."""

import json
import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stepscope.ingest.columns import (
    FIELDS,
    MISSING,
    ArgumentColumn,
    ColumnParts,
    Plain,
    narrowest,
    readable,
)
from stepscope.ingest.document_values import Event
from stepscope.ingest.exact_numbers import NO_TIME, NumberText, as_written, nanoseconds
from stepscope.ingest.incidents import IncidentLog

HASHABLE = frozenset({int, str, bytes})
"""Types that are distinct as keys: a bool would equal a number."""
_INT64 = range(-(2**63), 2**63)
_EXACT_FLOATS = range(-(2**53), 2**53 + 1)


def as_text(value: object) -> str:
    """Return any JSON value as text: text unchanged, other values as compact JSON."""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, NumberText):
        return as_written(value)
    try:
        return json.dumps(value, separators=(",", ":"), default=as_written)
    except RecursionError:  # `json` parsed it at a lower call depth
        return "".join(_deep_json(value))


def _deep_json(value: object) -> Iterator[str]:
    """Yield a value as compact JSON, piece by piece, at any depth."""
    rest: list[tuple[bool, object]] = [(False, value)]
    """Pending items, the next one last, and whether each is already JSON text."""
    while rest:
        is_written, item = rest.pop()
        if is_written:
            yield str(item)
        elif isinstance(item, dict | list):
            rest += reversed(list(_members(item)))
        else:
            yield json.dumps(item, default=as_written)


def _members(container: dict[str, Any] | list[Any]) -> Iterator[tuple[bool, object]]:
    """Yield the items of a container and the text around them."""
    is_object = isinstance(container, dict)
    yield True, "{" if is_object else "["
    for index, item in enumerate(container):
        yield True, "," if index else ""
        if isinstance(container, dict):
            yield True, f"{json.dumps(item)}:"
        yield False, container[item] if isinstance(container, dict) else item
    yield True, "}" if is_object else "]"


def fits_float(value: int | NumberText) -> bool:
    """Return whether a float can hold the number: exactly if whole, otherwise by range."""
    return value in _EXACT_FLOATS if isinstance(value, int) else math.isfinite(float(value))


Argument = tuple["array[int]", list[Any]]
"""The rows of its events, and their values."""


def argument_column(rows: "array[int]", values: list[Any]) -> ArgumentColumn:
    """Return one argument's values with the narrowest type that can hold all of them."""
    at = np.array(rows)
    if (at[1:] < at[:-1]).any():  # events with the same keys were processed together
        order = np.argsort(at, kind="stable")
        at = at[order]
        values = [values[index] for index in order.tolist()]
    return ArgumentColumn(rows=at, stored=_stored(values))


def _stored(values: list[Any]) -> Plain:
    kinds = set(map(type, values))
    if kinds == {int} and all(value in _INT64 for value in (min(values), max(values))):
        return Plain(values=narrowest(np.array(values, dtype=np.int64)), texts=None)
    if kinds <= {int, NumberText} and all(map(fits_float, values)):
        return Plain(values=np.array(list(map(float, values)), dtype=np.float64), texts=None)
    codes: dict[str, int] = {}
    code_of: dict[Any, int] = {}
    """By the value in the file, so that a text is made readable once."""
    coded = array("i")
    for value in values if kinds <= HASHABLE else map(as_text, values):
        code = code_of.get(value)
        if code is None:
            code = code_of[value] = codes.setdefault(as_text(value), len(codes))
        coded.append(code)
    return Plain(values=np.array(coded), texts=tuple(codes))


def timed(event: Event, log: IncidentLog) -> tuple[int, int]:
    """Return `ts` and `dur` of an event, in nanoseconds; log irregular values."""
    written = (event.fields.pop("ts", None), event.fields.pop("dur", None))
    times_ns = (nanoseconds(written[0]), nanoseconds(written[1]))
    for kind, is_so in (
        ("text-times", any(isinstance(time, str) for time in written)),
        (
            "impossible-times",
            any(
                time is not None and ns == NO_TIME
                for time, ns in zip(written, times_ns, strict=True)
            ),
        ),
    ):
        if is_so:
            log.add(kind, event.offset, times_text(*written))
    return times_ns


def times_text(start: object, duration: object) -> str:
    """Return an event's times as written, for display."""
    return as_text([start, duration])


def arguments_of(event: Event) -> dict[str, Any]:
    """Return the arguments of an event without its other fields, with `args` merged.

    Every reader takes names that may be unreadable from here.
    """
    rest = event.fields
    extra = rest.pop("args", None)
    if isinstance(extra, dict):
        rest.update(extra)
    elif extra is not None:
        rest["args"] = extra
    return {readable(key): value for key, value in rest.items() if value is not None}


@dataclass
class ColumnBuilder:
    """Collects events one at a time; `taken` returns the columns."""

    log: IncidentLog
    codes: dict[str, int] = field(default_factory=dict)
    """By the text in the file, so that a text is made readable once."""
    strings: dict[str, int] = field(default_factory=dict)
    """By the readable text: two broken texts may become equal."""
    fields: dict[str, "array[int]"] = field(
        default_factory=lambda: {key: array("i") for key in FIELDS}
    )
    starts_ns: "array[int]" = field(default_factory=lambda: array("q"))
    durations_ns: "array[int]" = field(default_factory=lambda: array("q"))
    offsets: "array[int]" = field(default_factory=lambda: array("q"))
    arguments: dict[str, "Argument"] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.offsets)

    def code(self, value: object) -> int:
        """Return the code of a field's text; numbers are converted to text."""
        if value is None:
            return MISSING
        text = value if type(value) is str else as_text(value)
        code = self.codes.get(text)
        if code is None:
            code = self.strings.setdefault(readable(text), len(self.strings))
            self.codes[text] = code
        return code

    def add(self, event: Event) -> None:
        """Append one event; fields without a column become arguments."""
        row = len(self.offsets)
        for key, column in self.fields.items():
            column.append(self.code(event.fields.pop(key, None)))
        start_ns, duration_ns = timed(event, self.log)
        self.starts_ns.append(start_ns)
        self.durations_ns.append(duration_ns)
        self.offsets.append(event.offset)
        for key, value in arguments_of(event).items():
            argument = self.arguments.get(key)
            if argument is None:
                argument = self.arguments[key] = self.new_argument()
            argument[0].append(row)
            argument[1].append(value)

    @staticmethod
    def new_argument() -> "Argument":
        """Return an empty column for an argument: rows and values."""
        return array("i"), []

    def taken(self) -> ColumnParts:
        """Return all events added so far."""
        times = (self.starts_ns, self.durations_ns, self.offsets)
        return ColumnParts(
            arrays=[np.array(column) for column in (*self.fields.values(), *times)],
            strings=tuple(self.strings),
            arguments={key: argument_column(*column) for key, column in self.arguments.items()},
        )


class OneByOne(ColumnBuilder):
    """Processes events one by one: slow and simple, the reference for all other readers."""
