"""A table as one JSON object: description, columns with units, and an object per row.

`rows` has a line per row; unknown values are null. Integers are exact: read nanoseconds as 64-bit
integers.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

import pandas as pd

from stepscope.model.frames import Column, Schema
from stepscope.model.table import AnyTable, RunTable
from stepscope.render.json import encoded, indented
from stepscope.render.table_file import CHUNK_ROWS, SCHEMA_VERSION, TableHeader, cells, copy_part

BETWEEN = b",\n"


def write_part(frame: pd.DataFrame, schema: Schema, sink: BinaryIO) -> None:
    """Write one trace's rows, a line each."""
    names = [column.name for column in schema]
    between = b""
    for row in _rows(frame, names):
        sink.write(between + encoded(row))
        between = BETWEEN


def join(about: TableHeader, parts: Iterable[BinaryIO], sink: BinaryIO) -> None:
    """Write the object with all traces' rows; each part has rows."""
    header = encoded(_header(about))
    sink.write(header[:-1] + b',"rows":[\n')
    between = b""
    for part in parts:
        sink.write(between)
        copy_part(part, sink)
        between = BETWEEN
    sink.write(b"\n]}\n")


def _header(about: TableHeader) -> dict[str, Any]:
    return {
        "schema": SCHEMA_VERSION,
        "version": about.version,
        "table": about.table,
        "title": about.title,
        "meaning": about.meaning,
        "columns": [column_object(column) for column in about.schema],
        "withheld": about.withheld,
    }


def column_object(column: Column) -> dict[str, str]:
    """Return a column's description as an object."""
    return {
        "name": column.name,
        "dtype": column.dtype,
        "unit": column.unit,
        "meaning": column.meaning,
    }


def _rows(frame: pd.DataFrame, names: list[str]) -> Iterator[dict[str, Any]]:
    for begin in range(0, len(frame), CHUNK_ROWS):
        chunk = frame.iloc[begin : begin + CHUNK_ROWS]
        for row in zip(*(cells(chunk[name]) for name in names), strict=True):
            yield dict(zip(names, row, strict=True))


def table_list(tables: Mapping[str, AnyTable]) -> str:
    """Return all tables and their columns as JSON."""
    objects = [
        {
            "table": name,
            "title": table.title,
            "meaning": table.meaning,
            "scope": "run" if isinstance(table, RunTable) else "recording",
            "columns": [column_object(column) for column in table.schema],
        }
        for name, table in tables.items()
    ]
    document = {"schema": SCHEMA_VERSION, "tables": objects}
    return indented(document)
