"""The list of tables, and what one of them holds, for a terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table as Grid
from rich.text import Text

from stepscope.model.frames import Schema
from stepscope.model.table import AnyTable, RunTable
from stepscope.render import phrases
from stepscope.render.table_file import Withheld
from stepscope.render.terminal import WIDTH, laid_out

OF_RUN = "one a run"


def listed(tables: Mapping[str, AnyTable], *, width: int = WIDTH, is_coloured: bool = False) -> str:
    """Return every table's name and meaning."""
    grid = _grid(2)
    for name, table in tables.items():
        note = f" ({OF_RUN})" if isinstance(table, RunTable) else ""
        grid.add_row(Text(name, style="bold"), Text(f"{table.meaning}{note}"))
    return laid_out([grid], width=width, is_coloured=is_coloured)


def described(
    name: str, table: AnyTable, schema: Schema, *, width: int = WIDTH, is_coloured: bool = False
) -> str:
    """Return what a table holds, column by column."""
    return laid_out(_description(name, table, schema), width=width, is_coloured=is_coloured)


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
    for place in range(columns):
        grid.add_column(overflow="fold", no_wrap=place < columns - 1)
    return grid


def withheld(name: str, recordings: Sequence[Withheld]) -> Iterator[str]:
    """Yield a line for each reason for which recordings cannot have a table."""
    by_reason: dict[tuple[str, str], list[Withheld]] = {}
    for each in recordings:
        by_reason.setdefault((each.reason, each.remedy), []).append(each)
    for (reason, remedy), those in by_reason.items():
        first = those[0]
        where = f"{first.run}/{first.worker} span {first.span}" if first.worker else first.run
        others = f" and {len(those) - 1} more" if len(those) > 1 else ""
        to_do = f"To record it: {remedy}" if remedy else ""
        yield phrases.sentences(f"{name}: withheld for {where}{others}: {reason}", to_do)
