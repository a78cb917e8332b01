"""A table as one JSON object: what it is, its columns with units, and an object a row.

`rows` has a line a row; what is not known is null. Whole numbers are exact: read nanoseconds with
something that holds 64 bits.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

import msgspec
import pandas as pd

from stepscope.model.frames import Column, Schema
from stepscope.model.table import AnyTable, RunTable
from stepscope.render.table_cells import CHUNK_ROWS, cells
from stepscope.render.table_file import SCHEMA_VERSION, About, copied

BETWEEN = b",\n"


def write_part(frame: pd.DataFrame, schema: Schema, sink: BinaryIO) -> None:
    """Write one recording's rows, a line each."""
    names = [column.name for column in schema]
    between = b""
    for row in _rows(frame, names):
        sink.write(between + msgspec.json.encode(row))
        between = BETWEEN


def join(about: About, parts: Iterable[BinaryIO], sink: BinaryIO) -> None:
    """Write the object around all recordings' rows; each part has some."""
    header = msgspec.json.encode(_header(about))
    sink.write(header[:-1] + b',"rows":[\n')
    between = b""
    for part in parts:
        sink.write(between)
        copied(part, sink)
        between = BETWEEN
    sink.write(b"\n]}\n")


def _header(about: About) -> dict[str, Any]:
    return {
        "schema": SCHEMA_VERSION,
        "version": about.version,
        "table": about.table,
        "title": about.title,
        "meaning": about.meaning,
        "columns": [described(column) for column in about.schema],
        "withheld": about.withheld,
    }


def described(column: Column) -> dict[str, str]:
    """Return what a column holds, as an object."""
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


def listed(tables: Mapping[str, AnyTable]) -> str:
    """Return what tables there are, and what their own columns hold."""
    found = [
        {
            "table": name,
            "title": table.title,
            "meaning": table.meaning,
            "scope": "run" if isinstance(table, RunTable) else "recording",
            "columns": [described(column) for column in table.schema],
        }
        for name, table in tables.items()
    ]
    document = {"schema": SCHEMA_VERSION, "tables": found}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
