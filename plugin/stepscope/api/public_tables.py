"""Any public table as the page shows it: labels, units, cells, and the first rows where it is long.

What a column is called follows from its name: `host_self_ns` is *Host self*, and where two columns
of a table would be called the same, what they measure tells them apart.
"""

from collections import Counter
from collections.abc import Mapping
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
from stepscope.base.report import SCHEMA_VERSION
from stepscope.dialects import Kind
from stepscope.model import frames
from stepscope.model.table import AnyTable
from stepscope.model.trace import Trace
from stepscope.render.table_export import MOST_EXACT, with_whole_ids

DEFAULT_LIMIT = 10_000
MOST_ROWS = 200_000
"""More than that is for a file: `stepscope export`."""
UNITS: Mapping[str, Unit] = MappingProxyType(
    {"ns": "ns", "bytes": "bytes", "bytes/s": "bytes/s", "share": "share", "count": "count"}
)
"""Units of frames that the page knows; others are told in the label."""
NAMES = frozenset({"id", "text"})
"""Units of what is no amount."""
WORDY = frozenset({"text", "code"})
"""The same as the page knows them."""
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
"""Columns of text that are read letter by letter."""
ENDINGS = ("_bytes_per_second", "_ns", "_bytes")
"""Units at the end of a column's name that its values show."""
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
"""What tells two columns apart whose names are otherwise the same."""


@dataclass(frozen=True, kw_only=True)
class RowOrder:
    """Which rows of a table come first, and how many of them are sent."""

    key: str = ""
    is_descending: bool = True
    limit: int = DEFAULT_LIMIT

    def rows(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """Return the places of the rows to send; without a key they keep their order.

        What is not recorded comes last either way.
        """
        if not self.key:
            return np.arange(min(len(frame), self.limit))
        if self.key not in frame.columns:
            names = ", ".join(map(str, frame))
            msg = f"there is no column {self.key!r} to sort by; there are {names}"
            raise UsageError(msg)
        ordered = frame[self.key].sort_values(
            ascending=not self.is_descending, kind="stable", na_position="last", key=_comparable
        )
        return ordered.index.to_numpy()[: self.limit]


def shown_table(
    table: AnyTable, frame: pd.DataFrame, order: RowOrder, trace: Trace | None = None
) -> Table:
    """Return a public table's first rows in an order, and how many there are in all.

    Raises:
        UsageError: it has no column of the name to sort by.
    """
    columns = columns_of(table)
    frame = with_whole_ids(frame.reset_index(drop=True), table.schema)
    rows = frame.iloc[order.rows(frame)]
    return Table(
        schema=SCHEMA_VERSION,
        columns=columns,
        row_count=len(rows),
        values={each.key: cells(rows[each.key], each.unit) for each in columns},
        sort=order.key,
        groups=(),
        group="",
        total_ns=window(trace).device_duration_ns if trace is not None else 0,
        empty="" if len(frame) else f"This recording has no such rows. {table.meaning}",
        all_row_count=len(frame),
        title=table.title,
        meaning=table.meaning,
    )


def _comparable(values: pd.Series) -> pd.Series:
    """Return what can be compared: text of any case, truth as a number."""
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
    # the name is what stays in sight when the others are scrolled
    schema = sorted(table.schema, key=lambda each: each.name != "name")
    return tuple(Column(each.name, labels[each.name], _unit(each), each.meaning) for each in schema)


def _labels(schema: frames.Schema) -> dict[str, str]:
    plain = {each.name: _label(each) for each in schema}
    counts = Counter(plain.values())
    return {
        each.name: f"{plain[each.name]} {BY_UNIT[each.unit]}"
        if counts[plain[each.name]] > 1 and each.unit in BY_UNIT
        else plain[each.name]
        for each in schema
    }


def _label(column: frames.Column) -> str:
    """Return a column's name in words: `is_users` is *Users*, `host_self_ns` is *Host self*."""
    name = column.name.removeprefix("is_")
    ending = next((each for each in ENDINGS if name.endswith(each)), "")
    words = [WORDS.get(word, word) for word in name.removesuffix(ending).split("_")]
    if ending == "_bytes_per_second":
        words.append("bandwidth")
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def _unit(column: frames.Column) -> Unit:
    if column.unit in UNITS:
        return UNITS[column.unit]
    if column.unit in NAMES or column.dtype in {"bool", "object", "int8", "category"}:
        return "code" if column.name in CODE_NAMES else "text"
    return "count"


def cells(values: pd.Series, unit: str) -> list[Any]:
    """Return a column for JSON: None where nothing is known, times and sizes in whole numbers."""
    if values.dtype == bool:
        return ["yes" if value else "no" for value in values.tolist()]
    kind = values.dtype.kind
    if kind == "f":
        return _numbers(values.to_numpy(), is_whole=unit in {"ns", "bytes"})
    if kind not in "iu" or not isinstance(values.dtype, np.dtype):
        return list(map(_word, values.tolist()))
    is_kind = values.dtype == np.int8
    return _kinds(values) if is_kind else _whole_numbers(values.to_numpy(), is_id=unit in WORDY)


def _kinds(values: pd.Series) -> list[str]:
    """Return kinds of events in words; nothing else is of so small a type."""
    return [Kind(value).name.lower().replace("_", " ") for value in values.tolist()]


def _whole_numbers(values: NDArray[np.integer[Any]], *, is_id: bool) -> list[int | str]:
    """Return numbers; those that name something as text where a browser would round any of them."""
    found: list[int | str] = values.tolist()
    if not is_id or not len(values):
        return found
    is_exact = -MOST_EXACT < int(values.min()) <= int(values.max()) < MOST_EXACT
    return found if is_exact else [str(value) for value in found]


def _numbers(values: NDArray[np.float64], *, is_whole: bool) -> list[float | int | None]:
    if is_whole:
        values = np.round(values)
    known = np.isfinite(values)
    found = values.tolist()
    if is_whole and known.all() and (np.abs(values) < MOST_EXACT).all():
        return list(values.astype(np.int64).tolist())
    kind = int if is_whole else float
    return [kind(value) if has else None for value, has in zip(found, known.tolist(), strict=True)]


def _word(value: object) -> object:
    if _is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return value
