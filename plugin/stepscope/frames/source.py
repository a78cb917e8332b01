"""What frames are built from: the events of one file with their kinds, threads and arguments."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.dialects import Dialect, Kind, detect, kind_of
from stepscope.ingest import ArgumentColumn, EventColumns
from stepscope.ingest.columns import MISSING, NO_TIME

Rows = NDArray[np.int64]
DEVICE_KINDS = (Kind.KERNEL, Kind.COPY, Kind.MEMORY_SET)
TIMELESS_PHASES = frozenset({"M"})
INSTANT_KINDS = frozenset({Kind.MEMORY})
SIGNS_LOOKED_AT = 4096
"""Distinct `category/name` pairs that are looked at for a vendor's signature: more than enough."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """One file's events, told apart by kind."""

    columns: EventColumns
    kinds: NDArray[np.int8]
    dialect: Dialect

    @cached_property
    def is_lost(self) -> NDArray[np.bool_]:
        """Events with stamp 0 and duration 0: the profiler never filled them (kineto#109)."""
        stamp_ns = self.columns.start_ns + self.columns.origin_ns
        return np.asarray((stamp_ns == 0) & (self.columns.duration_ns <= 0))

    @cached_property
    def threads(self) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        """Each event's thread as an index, and the threads' names `pid/tid`."""
        columns = self.columns
        key = columns.pid.astype(np.int64) << 32 | columns.tid.astype(np.int64) & 0xFFFFFFFF
        distinct, index = np.unique(key, return_inverse=True)
        strings = columns.strings
        names = [
            f"{strings[pid] if pid >= 0 else ''}/{strings[tid] if tid < len(strings) else ''}"
            for pid, tid in ((int(k) >> 32, int(k) & 0xFFFFFFFF) for k in distinct)
        ]
        return index.astype(np.int64), _told_apart(names)

    def rows(self, *kinds: Kind) -> Rows:
        """Return the events of these kinds that have a time, in the order they began."""
        wanted = np.isin(self.kinds, [int(kind) for kind in kinds])
        timed = wanted & (self.columns.start_ns != NO_TIME)
        if not INSTANT_KINDS.intersection(kinds):
            timed &= (self.columns.duration_ns != NO_TIME) & ~self.is_lost
        rows = np.flatnonzero(timed)
        return rows[np.argsort(self.columns.start_ns[rows], kind="stable")]

    def timing(self, rows: Rows) -> dict[str, Any]:
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

    def thread(self, rows: Rows) -> pd.Categorical:
        """Return the events' threads; the codes mean the same thread in all frames."""
        index, names = self.threads
        return pd.Categorical.from_codes(
            index[rows], categories=pd.Index(list(names), dtype=object)
        )

    def text(self, codes: NDArray[np.int32]) -> pd.Categorical:
        """Return text codes as a categorical with only the texts that occur."""
        return _categorical(codes, self.columns.strings)

    def label(self, key: str, rows: Rows, *aliases: str) -> pd.Categorical:
        """Return an argument as text, missing where an event does not have it."""
        column = self._argument(key, *aliases)
        if column is None:
            return _categorical(np.full(len(rows), MISSING, dtype=np.int32), ())
        at, has = _places(column, rows)
        texts, codes = column.texts, column.values
        if texts is None:
            distinct, codes = np.unique(column.values, return_inverse=True)
            texts = tuple(str(value) for value in distinct.tolist())
        return _categorical(np.where(has, codes[at], MISSING), texts)

    def number(self, key: str, rows: Rows, *aliases: str) -> NDArray[np.float64]:
        """Return an argument as float64, NaN where an event has none or it is no number."""
        column = self._argument(key, *aliases)
        found = np.full(len(rows), np.nan)
        if column is None:
            return found
        at, has = _places(column, rows)
        values = column.values
        if column.texts is not None:
            parsed = np.array([_as_number(text) for text in column.texts])
            values = parsed[column.values]
        found[has] = values[at[has]]
        return found

    def whole(self, key: str, rows: Rows, *aliases: str) -> NDArray[np.int64]:
        """Return an argument as int64, exact to 63 bits; -1 where there is none."""
        column = self._argument(key, *aliases)
        if column is not None and column.values.dtype == np.int64:
            at, has = _places(column, rows)
            return np.where(has, column.values[at], MISSING)
        if column is not None and column.texts is not None:
            at, has = _places(column, rows)
            parsed = np.array([_as_whole(text) for text in column.texts], dtype=np.int64)
            return np.where(has, parsed[column.values[at]], MISSING)
        values = self.number(key, rows, *aliases)
        fits = np.abs(values) < 2.0**63
        return np.where(fits, values, MISSING).astype(np.int64)

    def has(self, key: str, *aliases: str) -> bool:
        """Tell whether any event has this argument."""
        return self._argument(key, *aliases) is not None

    def _argument(self, *keys: str) -> ArgumentColumn | None:
        for key in keys:
            if (column := self.columns.arguments.get(key)) is not None:
                return column
        return None


def source(columns: EventColumns) -> Source:
    """Tell the events of a file apart by kind, and find the vendor whose words it speaks."""
    kinds = _kinds(columns)
    has_device = bool(np.isin(kinds, [int(kind) for kind in DEVICE_KINDS]).any())
    return Source(
        columns=columns, kinds=kinds, dialect=detect(_signs(columns, kinds), has_device=has_device)
    )


def _pairs(columns: EventColumns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    key = (columns.category.astype(np.int64) + 1) << 32 | columns.name.astype(np.int64) + 1
    distinct, index = np.unique(key, return_inverse=True)
    return distinct, index


def _pair(columns: EventColumns, key: int) -> tuple[str, str]:
    category, name = (key >> 32) - 1, (key & 0xFFFFFFFF) - 1
    strings = columns.strings
    return strings[category] if category >= 0 else "", strings[name] if name >= 0 else ""


def _kinds(columns: EventColumns) -> NDArray[np.int8]:
    distinct, index = _pairs(columns)
    of_pair = np.array([kind_of(*_pair(columns, int(key))) for key in distinct], dtype=np.int8)
    kinds = of_pair[index] if len(of_pair) else np.zeros(0, dtype=np.int8)
    timeless = [i for i, text in enumerate(columns.strings) if text in TIMELESS_PHASES]
    kinds[np.isin(columns.phase, timeless)] = int(Kind.OTHER)
    is_flow = kinds == int(Kind.FLOW)
    complete = {text: i for i, text in enumerate(columns.strings)}.get("X", MISSING - 1)
    kinds[is_flow & (columns.phase == complete)] = int(Kind.OTHER)
    return kinds


def _signs(columns: EventColumns, kinds: NDArray[np.int8]) -> list[str]:
    calls = np.flatnonzero(kinds == int(Kind.RUNTIME_CALL))
    pairs = {
        (int(columns.category[i]), int(columns.name[i]))
        for i in calls[:: max(1, len(calls) // SIGNS_LOOKED_AT)]
    }
    strings = columns.strings
    signs = [f"{strings[category]}/{strings[name]}" for category, name in pairs if name >= 0]
    return signs + [f"metadata/{key}" for key in columns.metadata]


def _told_apart(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names, with a number behind one that another thread has: `a/b` + `c`, `a` + `b/c`.

    A category must be unique, and two threads must not become one.
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
    used, index = np.unique(codes, return_inverse=True)
    present = used[used >= 0]
    shift = len(used) - len(present)  # 1 where some are missing: np.unique puts -1 first
    categories = pd.Index([texts[code] for code in present], dtype=object)
    return pd.Categorical.from_codes(index - shift, categories=categories)


def _places(column: ArgumentColumn, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    at = np.searchsorted(column.rows, rows)
    at[at == len(column.rows)] = 0
    return at, np.asarray(column.rows[at] == rows)


_NUMBER = re.compile(r"^\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*$")


_WHOLE_NUMBER = re.compile(r"^\s*[-+]?\d{1,19}\s*$", re.ASCII)


def _as_whole(text: str) -> int:
    """Return a whole number without a detour over floats: some exporters write ids as text."""
    if _WHOLE_NUMBER.match(text):
        number = int(text)
        return number if -(2**63) <= number < 2**63 else MISSING
    value = _as_number(text)
    return int(value) if abs(value) < 2**63 else MISSING


def _as_number(text: str) -> float:
    number = float(text) if _NUMBER.match(text) else float("nan")
    return number if np.isfinite(number) else float("nan")  # "1e400" is beyond what a float holds
