"""Public tables for the page: labels, units, cells, and the first rows of long tables.

Labels derive from column names: `host_self_ns` becomes *Host self*. Equal labels in a table get a
suffix by unit.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.window import window
from stepscope.api.messages import Column, Table
from stepscope.base.errors import UsageError
from stepscope.base.findings import Unit
from stepscope.base.formatting import capitalized
from stepscope.dialects import Kind
from stepscope.model import frames
from stepscope.model.table import AnyTable
from stepscope.model.trace import Trace
from stepscope.render.table_export import MOST_EXACT, with_whole_ids

DEFAULT_LIMIT = 10_000
MOST_ROWS = 200_000
"""Limit of rows; `stepscope export` writes longer tables."""
UNITS: Mapping[str, Unit] = MappingProxyType(
    {"ns": "ns", "bytes": "bytes", "bytes/s": "bytes/s", "share": "share", "count": "count"}
)
"""Units of frames that the page formats; other units are in the label."""
NAMES = frozenset({"id", "text"})
"""Units of columns that are not amounts."""
WORDY = frozenset({"text", "code"})
"""Units of the page for such columns."""
CODE_NAMES = frozenset(
    {
        "block",
        "call_stack",
        "concrete_inputs",
        "full_name",
        "grid",
        "identifier",
        "input_dims",
        "kernel_file",
        "path",
        "source_line",
        "stack",
    }
)
"""Text columns in a monospaced font."""
ENDINGS = ("_bytes_per_second", "_ns", "_bytes")
"""Endings of column names that repeat the unit."""
WORDS: Mapping[str, str] = MappingProxyType(
    {
        "cpu": "CPU",
        "dtype": "type",
        "flops": "FLOPs",
        "id": "ID",
        "mad": "MAD",
        "num": "number of",
        "ooms": "OOMs",
        "sm": "SM",
        "std": "standard deviation",
    }
)
BY_UNIT: Mapping[str, str] = MappingProxyType(
    {"ns": "time", "bytes": "size", "bytes/s": "bandwidth", "share": "share", "count": "count"}
)
"""Suffixes of equal labels."""


@dataclass(frozen=True, kw_only=True)
class RowOrder:
    """Order of a table's rows, the text that they contain, and the limit of sent rows."""

    key: str = ""
    is_descending: bool = True
    limit: int = DEFAULT_LIMIT
    search: str = ""
    """Text in any column of texts, ignoring case; empty: all rows."""

    def rows(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """Return the indices of the sent rows; missing values come last in both directions."""
        if not self.key:
            return np.arange(min(len(frame), self.limit))
        if self.key not in frame.columns:
            names = ", ".join(map(str, frame))
            msg = f"there is no column {self.key!r} to sort by; the columns are {names}"
            raise UsageError(msg)
        ordered = frame[self.key].sort_values(
            ascending=not self.is_descending, kind="stable", na_position="last", key=_comparable
        )
        return ordered.index.to_numpy()[: self.limit]


def shown_table(
    table: AnyTable, frame: pd.DataFrame, order: RowOrder, trace: Trace | None = None
) -> Table:
    """Return a public table's first rows in an order, and the number of all rows.

    Raises:
        UsageError: the sort column does not exist.
    """
    columns = columns_of(table)
    frame = with_whole_ids(frame.reset_index(drop=True), table.schema)
    all_row_count = len(frame)
    if words := order.search.strip().lower():
        frame = frame[_contains(frame, columns, words)].reset_index(drop=True)
    rows = frame.iloc[order.rows(frame)]
    return Table(
        columns=columns,
        row_count=len(rows),
        values={column.key: cells(rows[column.key], column.unit) for column in columns},
        sort=order.key,
        total_ns=window(trace).duration_ns if trace is not None else 0,
        empty="" if all_row_count else f"This trace has no such rows. {table.meaning}",
        all_row_count=all_row_count,
        match_count=len(frame) if words else None,
        title=table.title,
        meaning=table.meaning,
    )


def _contains(frame: pd.DataFrame, columns: Iterable[Column], words: str) -> NDArray[np.bool_]:
    """Return whether each row has a text, in lower case, in a column of texts."""
    has = np.zeros(len(frame), dtype=bool)
    for column in columns:
        if column.unit in WORDY:
            codes, values = pd.factorize(frame[column.key])
            texts = cells(pd.Series(values), column.unit)
            hits = np.array([*(words in str(text).lower() for text in texts), False])
            has |= hits[codes]  # a missing value has the code -1
    return has


def _comparable(values: pd.Series) -> pd.Series:
    """Return sort keys: text without case, booleans as numbers."""
    if values.dtype == bool:
        return values.astype(np.int8)
    if values.dtype.kind in "iuf" or pd.api.types.is_integer_dtype(values.dtype):
        return values
    texts = [None if _is_missing(value) else str(value).lower() for value in values.tolist()]
    return pd.Series(texts, index=values.index, dtype=object)


def _is_missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value))


def columns_of(table: AnyTable) -> tuple[Column, ...]:
    """Return a public table's columns as the page shows them."""
    labels = _labels(table.schema)
    # the first column stays visible when the others are scrolled
    schema = sorted(table.schema, key=lambda column: column.name != "name")
    return tuple(
        Column(column.name, labels[column.name], unit_of(column), column.meaning)
        for column in schema
    )


def _labels(schema: frames.Schema) -> dict[str, str]:
    plain = {column.name: _label(column) for column in schema}
    counts = Counter(plain.values())
    return {
        column.name: f"{plain[column.name]} {BY_UNIT[column.unit]}"
        if counts[plain[column.name]] > 1 and column.unit in BY_UNIT
        else plain[column.name]
        for column in schema
    }


def _label(column: frames.Column) -> str:
    """Return a column's label: `is_users` becomes *Users*, `host_self_ns` *Host self*."""
    name = column.name.removeprefix("is_")
    ending = next((suffix for suffix in ENDINGS if name.endswith(suffix)), "")
    words = [WORDS.get(word, word) for word in name.removesuffix(ending).split("_")]
    if ending == "_bytes_per_second":
        words.append("bandwidth")
    return capitalized(" ".join(words))


def unit_of(column: frames.Column) -> Unit:
    """Return a column's unit on the page."""
    if column.unit in UNITS:
        return UNITS[column.unit]
    if column.unit in NAMES or column.dtype in {"bool", "object", "int8", "category"}:
        return "code" if column.name in CODE_NAMES else "text"
    return "count"


def cells(values: pd.Series, unit: str) -> list[Any]:
    """Return a column for JSON: None for missing values, whole numbers for times and sizes."""
    if values.dtype == bool:
        return ["yes" if value else "no" for value in values.tolist()]
    kind = values.dtype.kind
    if kind == "f":
        return _numbers(values.to_numpy(), is_whole=unit in {"ns", "bytes"})
    if kind not in "iu" or not isinstance(values.dtype, np.dtype):
        return list(map(_cell, values.tolist()))
    is_kind = values.dtype == np.int8
    return _kinds(values) if is_kind else _whole_numbers(values.to_numpy(), is_id=unit in WORDY)


def _kinds(values: pd.Series) -> list[str]:
    """Return the names of event kinds, the only columns of this type."""
    return [Kind(value).name.lower().replace("_", " ") for value in values.tolist()]


def _whole_numbers(values: NDArray[np.integer[Any]], *, is_id: bool) -> list[int | str]:
    """Return integers; ids as text where a browser would round any of them."""
    numbers: list[int | str] = values.tolist()
    if not is_id or not len(values):
        return numbers
    is_exact = -MOST_EXACT < int(values.min()) <= int(values.max()) < MOST_EXACT
    return numbers if is_exact else [str(value) for value in numbers]


def _numbers(values: NDArray[np.float64], *, is_whole: bool) -> list[float | int | None]:
    if is_whole:
        values = np.round(values)
    is_finite = np.isfinite(values)
    numbers = values.tolist()
    if is_whole and is_finite.all() and (np.abs(values) < MOST_EXACT).all():
        return list(values.astype(np.int64).tolist())
    kind = int if is_whole else float
    return [
        kind(value) if has else None for value, has in zip(numbers, is_finite.tolist(), strict=True)
    ]


def _cell(value: object) -> object:
    if _is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return value
