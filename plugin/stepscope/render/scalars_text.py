"""Scalars over spans for a terminal: a row per tag, a column per span."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from stepscope.base.formatting import share, significant, size
from stepscope.base.plain_text import plain
from stepscope.render.terminal import WIDTH, layout

SPANS = 8
"""Latest spans that are shown."""
Named = tuple[str, Mapping[str, Mapping[str, float]]]


def render(series: Sequence[Named], *, width: int = WIDTH, is_coloured: bool = False) -> str:
    """Return the table of each series; a series is a name, and by span the values by tag."""
    return layout(_parts(series), width=width, is_coloured=is_coloured)


def _parts(series: Sequence[Named]) -> Iterator[RenderableType]:
    for name, spans in series:
        yield Rule(Text(plain(name), style="bold"), align="left")
        yield _table(dict(list(spans.items())[-SPANS:]))
        yield Text()


def _table(spans: Mapping[str, Mapping[str, float]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column()
    for _ in spans:
        grid.add_column(justify="right", no_wrap=True)
    grid.add_row(Text("span", style="dim"), *(Text(span, style="dim") for span in spans))
    for tag in dict.fromkeys(tag for values in spans.values() for tag in values):
        cells = (_cell(tag, values.get(tag)) for values in spans.values())
        grid.add_row(tag, *cells)
    return grid


def _cell(tag: str, value: float | None) -> str:
    if value is None:
        return "–"
    if "_share" in tag:
        return share(value)
    return size(value) if tag.endswith("_bytes") else significant(value)
