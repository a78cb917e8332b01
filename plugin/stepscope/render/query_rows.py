"""The rows of a query as text, CSV, JSON or Parquet; `rows` is a `pyarrow.Table`."""

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, BinaryIO

import msgspec
from rich.cells import cell_len, set_cell_size

from stepscope._version import __version__
from stepscope.base import formatting
from stepscope.base.plain_text import plain
from stepscope.render import table_csv
from stepscope.render.json import encoded
from stepscope.render.phrases import cut
from stepscope.render.table_file import SCHEMA_VERSION

BATCH_ROWS = 10_000
MOST_CELL = 90
"""Longest cell in text, in characters."""
LEAST_TEXT = 16
"""Least width of a column of text that does not fit the terminal."""
GAP = "  "
EXPLAIN_COLUMNS = ["explain_key", "explain_value"]
INT64 = range(-(2**63), 2**63)
Value = int | float | str | bool | None


def plain_value(value: object) -> Value:
    """Return a value as JSON can hold it; None where unknown, text for other types."""
    match value:
        case None | str() | bool():
            return value
        case int() | float() | Decimal():
            return _number(value)
        case dt.date() | dt.time():
            return value.isoformat()
    return str(value) if not isinstance(value, list | dict) else _nested(value)


def _number(value: float | Decimal) -> Value:
    if not math.isfinite(value):
        return None
    if isinstance(value, float):
        return value
    whole = int(value)
    return whole if whole == value and whole in INT64 else str(value)


def _nested(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()


def value_rows(rows: Any) -> Iterator[tuple[Value, ...]]:  # noqa: ANN401 (pyarrow says no types)
    """Yield the rows as plain values."""
    for batch in rows.to_batches(BATCH_ROWS):
        columns = [[plain_value(value) for value in column.to_pylist()] for column in batch.columns]
        yield from zip(*columns, strict=True)


def is_number(kind: Any) -> bool:  # noqa: ANN401
    """Check whether an Arrow type is one of numbers."""
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def text(rows: Any, *, width: int | None = None) -> str:  # noqa: ANN401
    """Return the rows in columns; `width` of a terminal narrows columns of text."""
    names = list(rows.schema.names)
    if names == EXPLAIN_COLUMNS:
        return "\n".join(str(value) for value in rows.column(1).to_pylist()).strip("\n") + "\n"
    are_numbers = [is_number(kind) for kind in rows.schema.types]
    lines = [[cut(plain(name), MOST_CELL) for name in names]]
    lines += [[_cell(value) for value in row] for row in value_rows(rows)]
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    if width is not None:
        widths = _narrowed(widths, are_numbers, width)
    return "".join(f"{_line(cells, widths, are_numbers)}\n" for cells in lines)


def _cell(value: Value) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    shown = formatting.six_digits(value) if isinstance(value, float) else str(value)
    return cut(plain(shown), MOST_CELL)


def _line(cells: Sequence[str], widths: Sequence[int], are_numbers: Sequence[bool]) -> str:
    shown = []
    for cell, size, is_right in zip(cells, widths, are_numbers, strict=True):
        if (length := cell_len(cell)) > size:
            shown.append(set_cell_size(cell, size - 1) + "…")
        else:
            space = " " * (size - length)
            shown.append(space + cell if is_right else cell + space)
    return GAP.join(shown).rstrip()


def _narrowed(widths: Sequence[int], are_numbers: Sequence[bool], width: int) -> list[int]:
    """Return the widths with the widest texts narrowed until the line fits, as far as they may."""
    narrowed = list(widths)
    over = sum(widths) + len(GAP) * (len(widths) - 1) - width
    texts = [index for index, is_right in enumerate(are_numbers) if not is_right]
    while over > 0 and texts:
        widest = max(texts, key=lambda index: narrowed[index])
        if narrowed[widest] <= LEAST_TEXT:
            break
        narrowed[widest] -= 1
        over -= 1
    return narrowed


def write_csv(rows: Any, sink: BinaryIO) -> None:  # noqa: ANN401
    """Write the rows as CSV, as `stepscope export` does."""
    sink.write(table_csv.encoded([tuple(rows.schema.names)]))
    sink.write(table_csv.encoded(tuple(map(table_csv.cell, row)) for row in value_rows(rows)))


def write_json(rows: Any, sink: BinaryIO, *, sql: str, row_count: int) -> None:  # noqa: ANN401
    """Write one object: the query, its columns, the number of all rows, and a line per row."""
    names = unique_names(rows.schema.names)
    columns = [
        {"name": name, "type": str(kind)}
        for name, kind in zip(names, rows.schema.types, strict=True)
    ]
    header = encoded(
        {
            "schema": SCHEMA_VERSION,
            "version": __version__,
            "query": sql,
            "columns": columns,
            "row_count": row_count,
        }
    )
    sink.write(header[:-1] + b',"rows":[\n')
    objects = (dict(zip(names, row, strict=True)) for row in value_rows(rows))
    sink.write(b",\n".join(map(encoded, objects)))
    sink.write(b"\n]}\n")


def write_parquet(rows: Any, sink: BinaryIO) -> None:  # noqa: ANN401
    """Write the rows as a Parquet file."""
    import pyarrow.parquet as pq

    pq.write_table(rows.rename_columns(unique_names(rows.schema.names)), sink)


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the names with a number after those that occurred before: `name`, `name_2`."""
    unique: list[str] = []
    for name in names:
        count, candidate = 1, name
        while candidate in unique:
            count += 1
            candidate = f"{name}_{count}"
        unique.append(candidate)
    return unique
