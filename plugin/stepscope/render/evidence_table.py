"""A table of evidence for a terminal: in columns where they fit, else a paragraph a row."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from stepscope.base.findings import EvidenceColumn, EvidenceTable
from stepscope.render.advice_phrases import ROWS_SHOWN, more
from stepscope.render.phrases import cut, plain, value

GAP = 2
LEAST_TEXT = 16
"""Columns of the terminal that a text needs to be read."""
MOST_CELL = 90


def evidence_table(table: EvidenceTable, *, width: int) -> Iterator[RenderableType]:
    """Yield its heading, and its first rows."""
    rows = [_cells(table, row.cells) for row in table.rows[:ROWS_SHOWN]]
    if not rows:
        return
    yield Text(f"{plain(table.label)}:")
    needed = sum(_needed(table, rows, place) + GAP for place in range(len(table.columns))) - GAP
    yield from [_grid(table, rows, width)] if needed <= width else _paragraphs(table, rows)
    if left := more(len(table.rows), ROWS_SHOWN, "row"):
        yield Text(left, style="dim")


def is_text(column: EvidenceColumn) -> bool:
    """Tell whether a column holds words, which stand left and may be wrapped."""
    return column.unit in ("text", "code")


def _cells(table: EvidenceTable, cells: tuple[int | float | str | None, ...]) -> list[str]:
    return [
        cut(value(cell, column.unit), MOST_CELL)
        for column, cell in zip(table.columns, cells, strict=False)
    ]


def _needed(table: EvidenceTable, rows: list[list[str]], place: int) -> int:
    """Return how wide a column must be: its numbers and its heading's words are not broken."""
    column = table.columns[place]
    heading = max(map(len, plain(column.label).split()), default=0)
    longest = max(len(row[place]) for row in rows if place < len(row))
    return max(heading, min(longest, LEAST_TEXT) if is_text(column) else longest)


def _widths(table: EvidenceTable, rows: list[list[str]], width: int) -> list[int]:
    """Return each column's width: what numbers and words need, and a share of what is left.

    Columns that want little more get it first.
    """
    places = range(len(table.columns))
    widths = [_needed(table, rows, place) for place in places]
    cells = [[row[place] for row in rows] for place in places]
    wanted = [max(map(len, (plain(table.columns[at].label), *cells[at]))) for at in places]
    left = width - sum(widths) - GAP * (len(widths) - 1)
    by_want = sorted(places, key=lambda at: wanted[at] - widths[at])
    for number, place in enumerate(by_want):
        more_width = max(0, min(wanted[place] - widths[place], left // (len(by_want) - number)))
        widths[place] += more_width
        left -= more_width
    return widths


def _grid(table: EvidenceTable, rows: list[list[str]], width: int) -> Table:
    grid = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    widths = _widths(table, rows, width)
    for place, column in enumerate(table.columns):
        grid.add_column(
            Text(plain(column.label)),
            justify="left" if is_text(column) else "right",
            overflow="fold",
            width=widths[place],
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
