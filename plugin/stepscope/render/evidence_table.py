"""A table of evidence for a terminal: in columns where they fit, else a paragraph per row."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from stepscope.base.findings import EvidenceColumn, EvidenceTable
from stepscope.base.plain_text import plain
from stepscope.render.advice_phrases import ROWS_SHOWN, more
from stepscope.render.phrases import cut, value

GAP = 2
LEAST_TEXT = 16
"""Least width of a column of text."""
MOST_WORD = 24
"""Longer words, such as kernels' names, may be broken."""
MOST_CELL = 90


def evidence_table(table: EvidenceTable, *, width: int) -> Iterator[RenderableType]:
    """Yield the table's heading and first rows."""
    rows = [_cells(table, row.cells) for row in table.rows[:ROWS_SHOWN]]
    if not rows:
        return
    yield Text(f"{plain(table.label)}:")
    needed = sum(_needed(table, rows, index) + GAP for index in range(len(table.columns))) - GAP
    yield from [_grid(table, rows, width)] if needed <= width else _paragraphs(table, rows)
    if left := more(len(table.rows), ROWS_SHOWN, "row"):
        yield Text(left, style="dim")


def is_text(column: EvidenceColumn) -> bool:
    """Check whether a column holds text, which is left-aligned and may wrap."""
    return column.unit in ("text", "code")


def _cells(table: EvidenceTable, cells: tuple[int | float | str | None, ...]) -> list[str]:
    return [
        cut(value(cell, column.unit), MOST_CELL)
        for column, cell in zip(table.columns, cells, strict=False)
    ]


def _needed(table: EvidenceTable, rows: list[list[str]], index: int) -> int:
    """Return a column's least width: numbers, the heading's and most other words stay whole."""
    column = table.columns[index]
    cells = [row[index] for row in rows if index < len(row)]
    heading = max(map(len, plain(column.label).split()), default=0)
    longest = max(map(len, cells))
    if not is_text(column):
        return max(heading, longest)
    words = (len(word) for cell in cells for word in cell.split() if len(word) <= MOST_WORD)
    return max(heading, min(longest, LEAST_TEXT), *words)


def _widths(table: EvidenceTable, rows: list[list[str]], width: int) -> list[int]:
    """Return each column's width: its least width, and a part of the width that is left.

    Columns that need least more come first.
    """
    indices = range(len(table.columns))
    widths = [_needed(table, rows, index) for index in indices]
    cells = [[row[index] for row in rows] for index in indices]
    full = [max(map(len, (plain(table.columns[at].label), *cells[at]))) for at in indices]
    left = width - sum(widths) - GAP * (len(widths) - 1)
    by_need = sorted(indices, key=lambda at: full[at] - widths[at])
    for number, index in enumerate(by_need):
        more_width = max(0, min(full[index] - widths[index], left // (len(by_need) - number)))
        widths[index] += more_width
        left -= more_width
    return widths


def _grid(table: EvidenceTable, rows: list[list[str]], width: int) -> Table:
    grid = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    widths = _widths(table, rows, width)
    for column, column_width in zip(table.columns, widths, strict=True):
        grid.add_column(
            Text(plain(column.label)),
            justify="left" if is_text(column) else "right",
            overflow="fold",
            width=column_width,
        )
    for row in rows:
        grid.add_row(*map(Text, row))
    return grid


def _paragraphs(table: EvidenceTable, rows: list[list[str]]) -> Iterator[Text]:
    for row in rows:
        facts = (
            f"{plain(column.label)} {cell}" for column, cell in zip(table.columns, row, strict=True)
        )
        yield Text(f"· {', '.join(facts)}")
