"""The input of frames: the events of one file with their kinds, threads and arguments."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.dialects import (
    BARE_EXPORT_PROCESS,
    Dialect,
    Kind,
    detect,
    kind_arguments,
    kind_of,
    kind_of_argument,
)
from stepscope.ingest import ArgumentColumn, EventColumns
from stepscope.ingest.columns import MISSING
from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.model.arrays import Floats, Ints, Mask

DEVICE_KINDS = (Kind.KERNEL, Kind.COPY, Kind.MEMORY_SET)
COMPLETE_PHASE, METADATA_PHASE = "X", "M"
INSTANT_KINDS = frozenset({Kind.MEMORY})
NO_CONNECTION = 2**32 - 1
"""msprof's value for a task without a call."""
MOST_SIGNS = 4096
"""Maximum number of calls whose `category/name` is matched with vendors' signatures."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """One file's events, classified by kind."""

    columns: EventColumns
    kinds: NDArray[np.int8]
    dialect: Dialect

    @cached_property
    def is_lost(self) -> Mask:
        """Events with time 0 and duration 0, which the profiler did not fill in (kineto#109)."""
        stamp_ns = self.columns.start_ns + self.columns.origin_ns
        return np.asarray((stamp_ns == 0) & (self.columns.duration_ns <= 0))

    @cached_property
    def threads(self) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        """Each event's thread as an index, and the threads' names `pid/tid`."""
        columns = self.columns
        index, distinct = pd.factorize(_paired(self._processes(), columns.tid), sort=True)
        strings = columns.strings
        names = [
            f"{strings[pid] if pid >= 0 else ''}/{strings[tid] if tid >= 0 else ''}"
            for pid, tid in map(_pair, distinct.tolist())
        ]
        return index.astype(np.int32), _unique_names(names)

    def _processes(self) -> NDArray[np.int32]:
        """Return each event's process; a vendor's layers of a process are merged into it."""
        pid, strings, bits = self.columns.pid, self.columns.strings, self.dialect.layer_bits
        if not bits:
            return pid
        used = {strings[code]: code for code in np.unique(pid[pid >= 0]).tolist()}
        real = np.arange(-1, len(strings), dtype=np.int32)
        for text, code in used.items():
            real[code + 1] = used.get(str(_as_whole(text) >> bits), code)
        return real[pid + 1]

    def rows(self, *kinds: Kind) -> Ints:
        """Return the events of these kinds that have a time, by start."""
        is_selected = np.zeros(len(self.kinds), dtype=bool)
        for kind in kinds:
            is_selected |= self.kinds == int(kind)
        is_selected &= self.columns.start_ns != NO_TIME
        if not INSTANT_KINDS.intersection(kinds):
            is_selected &= self.columns.duration_ns != NO_TIME
            is_selected &= ~self.is_lost
        rows = np.flatnonzero(is_selected)
        return rows[np.argsort(self.columns.start_ns[rows], kind="stable")]

    def timing(self, rows: Ints) -> dict[str, Any]:
        """Return the columns of `frames.TIMING` for these events."""
        start_ns = self.columns.start_ns[rows]
        duration_ns = np.maximum(self.columns.duration_ns[rows], 0)
        return {
            "event": rows,
            "name": self.text(self.columns.name[rows]),
            "start_ns": start_ns,
            "duration_ns": duration_ns,
            "end_ns": start_ns + duration_ns,
        }

    def thread(self, rows: Ints) -> pd.Categorical:
        """Return the events' threads; equal codes mean the same thread in all frames."""
        index, names = self.threads
        return pd.Categorical.from_codes(
            index[rows], categories=pd.Index(list(names), dtype=object)
        )

    def text(self, codes: NDArray[np.int32]) -> pd.Categorical:
        """Return text codes as a categorical with only the texts that occur."""
        return _categorical(codes, self.columns.strings)

    def label(self, key: str, rows: Ints, *aliases: str) -> pd.Categorical:
        """Return an argument as text; missing for events without it."""
        column = self._argument(key, *aliases)
        if column is None:
            return _categorical(np.full(len(rows), MISSING, dtype=np.int32), ())
        at, has = self._indices(column, rows)
        texts, codes = column.texts, column.values
        if texts is None:
            distinct, codes = np.unique(column.values, return_inverse=True)
            texts = tuple(str(value) for value in distinct.tolist())
        return _categorical(np.where(has, codes[at], MISSING), texts)

    def number(self, key: str, rows: Ints, *aliases: str) -> Floats:
        """Return an argument as float64, NaN for events without a number."""
        column = self._argument(key, *aliases)
        numbers = np.full(len(rows), np.nan)
        if column is None:
            return numbers
        at, has = self._indices(column, rows)
        values = column.values
        if column.texts is not None:
            parsed = np.array([as_number(text) for text in column.texts])
            values = parsed[column.values]
        numbers[has] = values[at[has]]
        return numbers

    def whole(self, key: str, rows: Ints, *aliases: str) -> Ints:
        """Return an argument as int64, exact to 63 bits; -1 for events without it."""
        column = self._argument(key, *aliases)
        if column is not None and column.values.dtype.kind == "i":
            values = column.values
            if column.texts is not None:
                parsed = np.array([_as_whole(text) for text in column.texts], dtype=np.int64)
                values = parsed[column.values]
            at, has = self._indices(column, rows)
            integers = np.full(len(rows), MISSING, dtype=np.int64)
            np.copyto(integers, values[at], where=has)
            return integers
        values = self.number(key, rows, *aliases)
        fits = np.abs(values) < 2.0**63
        return np.where(fits, values, MISSING).astype(np.int64)

    def correlation(self, rows: Ints) -> Ints:
        """Return the number that host call and device event share; -1 if missing."""
        shared = self.whole("correlation", rows, "connection_id")
        return np.where(shared == NO_CONNECTION, MISSING, shared)

    def has(self, key: str, *aliases: str) -> bool:
        """Return whether any event has this argument."""
        return self._argument(key, *aliases) is not None

    def _indices(self, column: ArgumentColumn, rows: Ints) -> tuple[NDArray[np.int32], Mask]:
        """Return the index of each event's value in the column, and whether it has one."""
        index_of = np.full(len(self.columns), MISSING, dtype=np.int32)
        index_of[column.rows] = np.arange(len(column.rows), dtype=np.int32)
        at = index_of[rows]
        return at, at != MISSING

    def _argument(self, *keys: str) -> ArgumentColumn | None:
        for key in keys:
            if (column := self.columns.arguments.get(key)) is not None:
                return column
        return None


def source(columns: EventColumns) -> Source:
    """Classify the events of a file by kind, and detect the vendor."""
    kinds = _kinds(columns)
    has_device = bool(np.isin(kinds, [int(kind) for kind in DEVICE_KINDS]).any())
    return Source(
        columns=columns, kinds=kinds, dialect=detect(_signs(columns, kinds), has_device=has_device)
    )


def _paired(first: NDArray[np.int32], second: NDArray[np.int32]) -> Ints:
    """Return two codes, either of which may be missing, as one number, preserving their order."""
    key: Ints = first.astype(np.int64)
    key <<= 32
    key += second
    return key


def _pair(key: int) -> tuple[int, int]:
    """Return the two codes of a number of `_paired`."""
    second = (key + 1 & 0xFFFFFFFF) - 1
    return key - second >> 32, second


def _kinds(columns: EventColumns) -> NDArray[np.int8]:
    index, distinct = pd.factorize(_paired(columns.category, columns.name))
    strings = (*columns.strings, "")  # the last one is for MISSING, -1
    pairs = map(_pair, distinct.tolist())
    of_pair = [kind_of(strings[category], strings[name]) for category, name in pairs]
    kinds = np.array(of_pair, dtype=np.int8)[index]
    kinds[columns.phase == _code(columns, METADATA_PHASE)] = int(Kind.OTHER)
    is_complete = columns.phase == _code(columns, COMPLETE_PHASE)
    kinds[is_complete & (kinds == int(Kind.FLOW))] = int(Kind.OTHER)
    _fill_missing_kinds(columns, kinds)
    return kinds


def _fill_missing_kinds(columns: EventColumns, kinds: NDArray[np.int8]) -> None:
    """Fill in the kinds of events without a category from their arguments or process."""
    is_complete = columns.phase == _code(columns, COMPLETE_PHASE)
    is_unknown = is_complete & (kinds == int(Kind.OTHER)) & _has_no_category(columns)
    if not is_unknown.any():
        return
    kinds[is_unknown & (columns.pid == _code(columns, BARE_EXPORT_PROCESS))] = int(Kind.ANNOTATION)
    for key in kind_arguments():
        column = columns.arguments.get(key)
        if column is None or column.texts is None:
            continue
        kind_of_text = np.array(
            [kind_of_argument(key, text) for text in column.texts], dtype=np.int8
        )
        is_row_unknown = is_unknown[column.rows]
        kinds[column.rows[is_row_unknown]] = kind_of_text[column.values[is_row_unknown]]


def _has_no_category(columns: EventColumns) -> Mask:
    """Return a mask of the events whose category is missing or empty."""
    return np.asarray((columns.category < 0) | (columns.category == _code(columns, "")))


def _code(columns: EventColumns, text: str) -> int:
    """Return a text's code, or a code that no event has."""
    try:
        return columns.strings.index(text)
    except ValueError:
        return MISSING - 1


def _signs(columns: EventColumns, kinds: NDArray[np.int8]) -> list[str]:
    calls = np.flatnonzero(kinds == int(Kind.RUNTIME_CALL))
    pairs = {
        (int(columns.category[i]), int(columns.name[i]))
        for i in calls[:: max(1, len(calls) // MOST_SIGNS)]
    }
    strings = (*columns.strings, "")  # the last one is for -1, no category
    signs = [f"{strings[category]}/{strings[name]}" for category, name in pairs if name >= 0]
    signs += [f"argument/{key}" for key in columns.arguments]
    return signs + [f"metadata/{key}" for key in columns.metadata]


def _unique_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names with a number appended to duplicates: `a/b` + `c`, `a` + `b/c`.

    Categories must be unique, and two threads must not be merged.
    """
    taken: dict[str, None] = {}
    for name in names:
        unique, number = name, 1
        while unique in taken:
            number += 1
            unique = f"{name} ({number})"
        taken[unique] = None
    return tuple(taken)


def _categorical(codes: NDArray[Any], texts: tuple[str, ...]) -> pd.Categorical:
    """Return codes as a categorical of the texts that occur, in their order."""
    occurs = np.zeros(len(texts) + 1, dtype=bool)
    occurs[codes] = True  # the last one is for MISSING, -1
    present = np.flatnonzero(occurs[:-1])
    index_of = np.full(len(occurs), MISSING, dtype=np.int32)
    index_of[present] = np.arange(len(present), dtype=np.int32)
    categories = pd.Index([texts[code] for code in present.tolist()], dtype=object)
    return pd.Categorical.from_codes(index_of[codes], categories=categories)


_NUMBER = re.compile(r"^\s*[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?\s*$")


_WHOLE_NUMBER = re.compile(r"^\s*[-+]?\d{1,19}\s*$", re.ASCII)
_HEXADECIMAL = re.compile(r"^\s*0x[0-9a-f]{1,16}\s*$", re.ASCII | re.IGNORECASE)


def _as_whole(text: str) -> int:
    """Return an integer that may be written as text, without conversion to float."""
    if _WHOLE_NUMBER.match(text) or _HEXADECIMAL.match(text):
        number = int(text, 0 if "x" in text.lower() else 10)
        return number if -(2**63) <= number < 2**63 else MISSING
    value = as_number(text)
    return int(value) if abs(value) < 2**63 else MISSING


def as_number(text: str) -> float:
    """Return a finite number from a text, NaN if the text is not a number."""
    number = float(text) if _NUMBER.match(text) else float("nan")
    return number if np.isfinite(number) else float("nan")  # "1e400" exceeds the range of floats
