"""The list of tables, and the description of one table, for a terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table as Grid
from rich.text import Text

from stepscope.model.frames import Schema
from stepscope.model.table import AnyTable, RunTable
from stepscope.render import phrases
from stepscope.render.table_file import Withheld
from stepscope.render.terminal import WIDTH, layout

OF_RUN = "one per run"


def table_list(
    tables: Mapping[str, AnyTable], *, width: int = WIDTH, is_coloured: bool = False
) -> str:
    """Return every table's name and meaning."""
    grid = _grid(2)
    for name, table in tables.items():
        note = f" ({OF_RUN})" if isinstance(table, RunTable) else ""
        grid.add_row(Text(name, style="bold"), Text(f"{table.meaning}{note}"))
    return layout([grid], width=width, is_coloured=is_coloured)


def table_description(
    name: str, table: AnyTable, schema: Schema, *, width: int = WIDTH, is_coloured: bool = False
) -> str:
    """Return the description of a table and its columns."""
    return layout(_description(name, table, schema), width=width, is_coloured=is_coloured)


def _description(name: str, table: AnyTable, schema: Schema) -> Iterable[RenderableType]:
    yield Text.assemble((name, "bold"), f": {table.title}")
    yield Text(table.meaning)
    yield Text()
    grid = _grid(4)
    grid.add_row(*(Text(word, style="dim") for word in ("column", "type", "unit", "meaning")))
    for column in schema:
        cells = (column.dtype, column.unit or "–", column.meaning)
        grid.add_row(Text(column.name, style="bold"), *map(Text, cells))
    yield grid


def _grid(columns: int) -> Grid:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    for index in range(columns):
        grid.add_column(overflow="fold", no_wrap=index < columns - 1)
    return grid


def withheld_lines(name: str, traces: Sequence[Withheld]) -> Iterator[str]:
    """Yield a line per reason for which traces cannot have a table."""
    by_reason: dict[tuple[str, str], list[Withheld]] = {}
    for trace in traces:
        by_reason.setdefault((trace.reason, trace.remedy), []).append(trace)
    for (reason, remedy), group in by_reason.items():
        first = group[0]
        where = f"{first.run}/{first.worker} span {first.span}" if first.worker else first.run
        others = f" and {len(group) - 1} more" if len(group) > 1 else ""
        to_do = f"To record it: {remedy}" if remedy else ""
        yield phrases.sentences(f"{name}: withheld for {where}{others}: {reason}", to_do)
