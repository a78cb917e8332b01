"""A table as CSV (RFC 4180): UTF-8, a header of column names, empty cells for unknown values.

Text that a spreadsheet would read as a formula gets an apostrophe.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import pandas as pd

from stepscope.model.frames import Schema
from stepscope.render.table_file import CHUNK_ROWS, TableHeader, cells, copy_part

FORMULA = re.compile("\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""Start of a formula, also in full-width characters."""
BOOLEANS = {True: "true", False: "false"}


def write_part(frame: pd.DataFrame, schema: Schema, sink: BinaryIO) -> None:
    """Write one trace's rows, without a header."""
    sink.writelines(_lines(frame, [column.name for column in schema]))


def join(about: TableHeader, parts: Iterable[BinaryIO], sink: BinaryIO) -> None:
    """Write the header and all traces' rows."""
    sink.write(encoded([tuple(column.name for column in about.schema)]))
    for part in parts:
        copy_part(part, sink)


def _lines(frame: pd.DataFrame, names: list[str]) -> Iterator[bytes]:
    for begin in range(0, len(frame), CHUNK_ROWS):
        chunk = frame.iloc[begin : begin + CHUNK_ROWS]
        yield encoded(zip(*(_column(chunk[name]) for name in names), strict=True))


def encoded(rows: Iterable[tuple[Any, ...]]) -> bytes:
    """Return rows as CSV."""
    written = io.StringIO(newline="")
    csv.writer(written).writerows(rows)
    return written.getvalue().encode("utf-8", "replace")


def _column(column: pd.Series) -> list[Any]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        texts = [*map(cell, column.cat.categories.tolist()), None]
        return [texts[code] for code in column.cat.codes.tolist()]
    values = cells(column)
    return values if column.dtype.kind in "iuf" else [cell(value) for value in values]


def cell(value: object) -> object:
    """Return a value as the writer of CSV takes it."""
    if isinstance(value, bool):
        return BOOLEANS[value]
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value
