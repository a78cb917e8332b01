"""Events as columns: integer codes for text, integer nanoseconds for times, sparse arguments."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING = -1
"""The code of an absent text."""
NO_TIME = np.iinfo(np.int64).min
"""A time or duration that the event does not have."""
_INT64 = range(-(2**63), 2**63)
_TIMES_NS = range(-(2**62), 2**62)
"""146 years before and after 1970, so that a difference of two still fits."""
_EXACT_FLOATS = range(-(2**53), 2**53 + 1)
_LARGEST_EXPONENT = 30


class NumberText(str):
    """A JSON number with a fraction or exponent, as it was written: nothing is rounded."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class Incident:
    """Something in the file that was repaired, skipped or is missing."""

    kind: str
    count: int
    message: str
    remedy: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class ArgumentColumn:
    """The values of one argument: `values[i]` belongs to event `rows[i]`; rows ascend.

    `values` is int64 where all are whole numbers, float64 where all are numbers that it can hold,
    else int32 codes into `texts` (containers and booleans as JSON, numbers as they were written).
    """

    rows: NDArray[np.int64]
    values: NDArray[Any]
    texts: tuple[str, ...] | None


@dataclass(frozen=True, kw_only=True, eq=False)
class EventColumns:
    """One row an event, in the file's order. Text columns hold codes into `strings`, or -1.

    `start_ns` and `duration_ns` are int64, `NO_TIME` where the event has none; `start_ns` counts
    from `origin_ns`, the first event's stamp. `base_time_ns` added to `origin_ns` is Unix time
    where the file says so, else `base_time_ns` is 0.
    """

    phase: NDArray[np.int32]
    category: NDArray[np.int32]
    name: NDArray[np.int32]
    pid: NDArray[np.int32]
    tid: NDArray[np.int32]
    identifier: NDArray[np.int32]
    start_ns: NDArray[np.int64]
    duration_ns: NDArray[np.int64]
    origin_ns: int
    base_time_ns: int
    strings: tuple[str, ...]
    arguments: Mapping[str, ArgumentColumn]
    metadata: Mapping[str, Any]
    incidents: tuple[Incident, ...]

    def __len__(self) -> int:
        """Return how many events there are."""
        return len(self.phase)


def nanoseconds(microseconds: object) -> int:
    """Return a time in microseconds, as JSON gives it, in whole nanoseconds.

    Fractions are read from their text, since a float cannot hold an absolute stamp exactly.
    Anything that is no number gives `NO_TIME`.
    """
    if type(microseconds) is int:
        return microseconds * 1000
    if not isinstance(microseconds, str):
        return NO_TIME
    whole, _, fraction = microseconds.partition(".")
    if len(fraction) <= 3 and fraction.isdecimal() and whole.isdecimal() and len(whole) <= 20:
        return int(whole) * 1000 + int(fraction.ljust(3, "0"))
    return _rounded(microseconds)


def _rounded(microseconds: str) -> int:
    """Read a time written in an unusual way: negative, finer than 1 ns, with an exponent."""
    try:
        exact = Decimal(microseconds)
    except InvalidOperation:
        return NO_TIME
    if not exact.is_finite() or exact.adjusted() > _LARGEST_EXPONENT:
        return NO_TIME
    return int((exact * 1000).to_integral_value())


def _bounded(time_ns: int) -> int:
    return time_ns if time_ns in _TIMES_NS else NO_TIME


def readable(text: str) -> str:
    """Return the text with halves of surrogate pairs replaced: UTF-8 cannot hold them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return readable(str(value))
    return json.dumps(value, separators=(",", ":"), default=str)


def _fits_float(value: int | NumberText) -> bool:
    return value in _EXACT_FLOATS if isinstance(value, int) else math.isfinite(float(value))


def argument_column(rows: list[int], values: list[Any]) -> ArgumentColumn:
    """Return one argument's values with the narrowest type that holds all of them."""
    kinds = {type(value) for value in values}
    at = np.array(rows, dtype=np.int64)
    if kinds == {int} and all(value in _INT64 for value in (min(values), max(values))):
        return ArgumentColumn(rows=at, values=np.array(values, dtype=np.int64), texts=None)
    if kinds <= {int, NumberText} and all(_fits_float(value) for value in values):
        floats = np.array([float(value) for value in values], dtype=np.float64)
        return ArgumentColumn(rows=at, values=floats, texts=None)
    codes: dict[str, int] = {}
    coded = [codes.setdefault(_as_text(value), len(codes)) for value in values]
    return ArgumentColumn(rows=at, values=np.array(coded, dtype=np.int32), texts=tuple(codes))


@dataclass
class ColumnBuilder:
    """Takes events one at a time; `finish` gives the columns."""

    codes: dict[str, int] = field(default_factory=dict)
    """By text as the file has it, so that a text is made readable once."""
    strings: dict[str, int] = field(default_factory=dict)
    """The same by readable text: two broken texts may become the same."""
    texts: dict[str, list[int]] = field(
        default_factory=lambda: {key: [] for key in ("ph", "cat", "name", "pid", "tid", "id")}
    )
    starts_ns: list[int] = field(default_factory=list)
    durations_ns: list[int] = field(default_factory=list)
    arguments: dict[str, tuple[list[int], list[Any]]] = field(default_factory=dict)

    def code(self, value: object) -> int:
        """Return the code of a field's text; numbers are told by their text too."""
        if value is None:
            return MISSING
        text = value if type(value) is str else _as_text(value)
        code = self.codes.get(text)
        if code is None:
            code = self.strings.setdefault(readable(text), len(self.strings))
            self.codes[text] = code
        return code

    def add(self, event: dict[str, Any]) -> None:
        """Append one event; fields that have no column of their own are kept as arguments."""
        row = len(self.starts_ns)
        take = event.pop
        for key, column in self.texts.items():
            column.append(self.code(take(key, None)))
        self.starts_ns.append(nanoseconds(take("ts", None)))
        self.durations_ns.append(nanoseconds(take("dur", None)))
        extra = take("args", None)
        if isinstance(extra, dict):
            event.update(extra)
        elif extra is not None:
            event["args"] = extra
        for key, value in event.items():
            if value is None:
                continue
            argument = self.arguments.get(key)
            if argument is None:
                argument = self.arguments[key] = ([], [])
            argument[0].append(row)
            argument[1].append(value)

    def finish(self, metadata: dict[str, Any], incidents: tuple[Incident, ...]) -> EventColumns:
        """Return everything added so far as columns."""
        starts = np.array([_bounded(value) for value in self.starts_ns], dtype=np.int64)
        durations = np.array([_bounded(value) for value in self.durations_ns], dtype=np.int64)
        text = {key: np.array(column, dtype=np.int32) for key, column in self.texts.items()}
        strings = tuple(self.strings)
        origin = _origin_ns(text, starts, durations, self.strings)
        timed = starts != NO_TIME
        starts[timed] -= origin
        return EventColumns(
            phase=text["ph"],
            category=text["cat"],
            name=text["name"],
            pid=text["pid"],
            tid=text["tid"],
            identifier=text["id"],
            start_ns=starts,
            duration_ns=durations,
            origin_ns=origin,
            base_time_ns=_base_time_ns(metadata),
            strings=strings,
            arguments={key: argument_column(*column) for key, column in self.arguments.items()},
            metadata=metadata,
            incidents=incidents,
        )


def _base_time_ns(metadata: Mapping[str, Any]) -> int:
    base = metadata.get("baseTimeNanoseconds", 0)
    return base if isinstance(base, int) else 0


def _origin_ns(
    text: Mapping[str, NDArray[np.int32]],
    starts: NDArray[np.int64],
    durations: NDArray[np.int64],
    codes: Mapping[str, int],
) -> int:
    """Return the first complete event's stamp: not the profiler's own range, not a 0/0 kernel."""
    complete = (text["ph"] == codes.get("X", MISSING - 1)) & (starts != NO_TIME)
    real = complete & (text["cat"] != codes.get("Trace", MISSING - 1))
    real &= ~((starts == 0) & (durations <= 0))
    for candidates in (real, complete, starts != NO_TIME):
        if candidates.any():
            return int(starts[candidates].min())
    return 0
