"""A report on memory as text, Markdown, JSON, or one of its tables as CSV."""

import io
from collections.abc import Callable, Iterable

import pandas as pd
from rich.console import RenderableType
from rich.table import Table as Grid
from rich.text import Text

from stepscope._version import __version__
from stepscope.analyses.memory.memory_report import MemoryReport, MemoryTable
from stepscope.base import formatting
from stepscope.base.errors import UsageError
from stepscope.base.plain_text import plain
from stepscope.model.frames import Column
from stepscope.render import markdown_escape, table_csv
from stepscope.render.json import indented
from stepscope.render.table_file import TableHeader, cells
from stepscope.render.terminal import WIDTH, layout

SHOWN: dict[str, tuple[str, ...]] = {
    "peak": (
        *("device_type", "device", "peak_ns", "allocated_bytes", "peak_bytes", "unrecorded_bytes"),
        *("reserved_bytes", "end_bytes", "capacity_share"),
    ),
    "holders": (
        *("device_type", "device", "held_bytes", "peak_share", "held_share", "allocation_count"),
        *("origin", "holder", "stack"),
    ),
    "growth": (
        *("device_type", "device", "growth_bytes", "least_growth_bytes", "most_growth_bytes"),
        *("step_count", "confidence"),
    ),
    "leaks": ("left_bytes", "step_count", "step_share", "confidence", "operator", "stack"),
    "fragmentation": (
        *("device_type", "device", "pool", "size_class", "stream", "reserved_bytes"),
        *("most_reserved_bytes", "unused_bytes", "unused_share", "mean_unused_share"),
        *("free_bytes", "fragmented_share"),
    ),
    "allocations": ("device_type", "device", "bytes", "allocated_ns", "operator", "stack"),
    "ooms": (
        "device_type",
        "device",
        "asked_bytes",
        "device_free_bytes",
        "unused_bytes",
        "cause",
        "stack",
    ),
}
"""Columns that text and Markdown show; JSON and CSV have all."""
LIKE = {"modules": "holders", "stacks": "holders", "held": "holders", "blocks": "allocations"}
ADDED = {"held": SHOWN["allocations"], "blocks": ("requested_bytes",)}
FORMATS: dict[str, Callable[[float], str]] = {
    "bytes": formatting.size,
    "ns": formatting.duration,
    "share": formatting.share,
    "count": "{:,.0f}".format,
}
LONGEST_TEXT = 60
ENDINGS = {"_bytes": "", "_ns": " at"}
"""Endings of column names, and their text in headings."""


def text(report: MemoryReport, *, width: int = WIDTH, is_coloured: bool = False) -> str:
    """Return the report for a terminal."""
    return layout(_parts(report), width=width, is_coloured=is_coloured)


def markdown(report: MemoryReport) -> str:
    """Return the report in Markdown."""
    lines = [f"# Memory of a {report.what}", "", *map(markdown_escape.text, report.summary), ""]
    for table in report.tables:
        lines += [f"## {table.title}", ""]
        if not len(table.rows):
            lines += [markdown_escape.text(_absence(table)), ""]
            continue
        columns = _columns(table)
        lines.append(f"| {' | '.join(_heading(column) for column in columns)} |")
        lines.append("|" + " --- |" * len(columns))
        for row in _rows(table, columns):
            lines.append(f"| {' | '.join(map(markdown_escape.text, row))} |")
        lines += ["", *map(markdown_escape.text, _rest(table)), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def json(report: MemoryReport) -> str:
    """Return the report as one JSON object, each table a list of objects, numbers exact."""
    tables = {
        table.name: {
            "title": table.title,
            "missing": table.missing or None,
            "left_out": table.left_out,
            "rows": _objects(table),
        }
        for table in report.tables
    }
    document = {"what": report.what, "summary": report.summary, "tables": tables}
    return indented(document)


def csv(report: MemoryReport, name: str) -> str:
    """Return one table as CSV, with all columns.

    Raises:
        UsageError: the report has no such table.
    """
    tables = {table.name: table for table in report.tables}
    if name not in tables:
        message = f"a {report.what} has no table {name!r}; it has {', '.join(tables)}"
        raise UsageError(message)
    table, sink, part = tables[name], io.BytesIO(), io.BytesIO()
    table_csv.write_part(table.rows, table.schema, part)
    part.seek(0)
    header = TableHeader(
        table=name, title=table.title, meaning="", schema=table.schema, version=__version__
    )
    table_csv.join(header, [part], sink)
    return sink.getvalue().decode()


def _objects(table: MemoryTable) -> list[dict[str, object]]:
    names = [column.name for column in table.schema]
    columns = [cells(table.rows[name]) for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _parts(report: MemoryReport) -> Iterable[RenderableType]:
    for sentence in report.summary:
        yield Text(plain(sentence))
    for table in report.tables:
        yield Text()
        yield Text(table.title, style="bold")
        if not len(table.rows):
            yield Text(plain(_absence(table)), style="dim")
            continue
        columns = _columns(table)
        grid = Grid(box=None, pad_edge=False, header_style="dim")
        for column in columns:
            is_number = column.dtype not in {"object", "category"}
            grid.add_column(_heading(column), justify="right" if is_number else "left")
        for row in _rows(table, columns):
            grid.add_row(*map(Text, row))
        yield grid
        for line in _rest(table):
            yield Text(line, style="dim")


def _absence(table: MemoryTable) -> str:
    return f"Unknown: {table.missing}." if table.missing else "None."


def _rest(table: MemoryTable) -> list[str]:
    return [f"and {formatting.count(table.left_out, 'more row')}"] if table.left_out else []


def _columns(table: MemoryTable) -> list[Column]:
    """Return the columns of `SHOWN` that have values."""
    names = SHOWN.get(LIKE.get(table.name, table.name), ()) + ADDED.get(table.name, ())
    if table.name == "peak" and "change_bytes" in table.rows:
        names += ("change_bytes",) if table.rows["allocated_bytes"].isna().any() else ()
    return [
        column
        for column in table.schema
        if (not names or column.name in names) and table.rows[column.name].notna().any()
    ]


def _heading(column: Column) -> str:
    name = column.name
    for ending, instead in ENDINGS.items():
        name = name.removesuffix(ending) + instead if name.endswith(ending) else name
    return name.replace("_", " ")


def _rows(table: MemoryTable, columns: list[Column]) -> list[list[str]]:
    shown = [
        [_cell(value, column) for value in cells(table.rows[column.name])] for column in columns
    ]
    return [list(row) for row in zip(*shown, strict=True)]


def _cell(value: object, column: Column) -> str:
    if value is None or value is pd.NA:
        return "–"
    if column.unit == "id" or not isinstance(value, int | float) or isinstance(value, bool):
        return _shortened(plain(str(value)))
    return FORMATS.get(column.unit, formatting.significant)(value)


def _shortened(content: str) -> str:
    """Return the end of a long text: the innermost functions of a stack."""
    return content if len(content) <= LONGEST_TEXT else "…" + content[1 - LONGEST_TEXT :]
