"""What files are worth, for a terminal: what is damaged and where, then what was not recorded."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from stepscope.base.report import FileHealth, HealthItem, HealthReport
from stepscope.base.urls import redacted
from stepscope.render import health_phrases, phrases, settings_text
from stepscope.render.terminal import WIDTH, code, indented, laid_out, severity_mark


def render(report: HealthReport, *, width: int = WIDTH, is_coloured: bool = False) -> str:
    """Return the report in lines of at most `width` columns, where its words let it."""
    return laid_out(_parts(report), width=width, is_coloured=is_coloured)


def _parts(report: HealthReport) -> Iterator[RenderableType]:
    for file in report.files:
        yield from _file(file)
        yield Text()
    for line in phrases.problems(report):
        yield Text.assemble(("Not read: ", "bold"), line)


def _file(file: FileHealth) -> Iterator[RenderableType]:
    yield Rule(
        Text(phrases.plain(redacted(file.path)), style="bold", overflow="fold"), align="left"
    )
    yield Text(health_phrases.whose(file), style="dim")
    yield Text(health_phrases.facts(file), style="dim")
    yield from _settings(file)
    yield Text(health_phrases.verdict(file), style="bold")
    for item in health_phrases.told(file):
        yield Text()
        yield from _item(item)
    if file.record_next:
        yield Text()
        yield from _next(file)


def _settings(file: FileHealth) -> Iterator[RenderableType]:
    """Yield the run's settings, a group a line; or how to record them."""
    if not file.settings:
        yield Text(f"{settings_text.NOT_RECORDED} {settings_text.HOW_TO_RECORD}", style="dim")
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, told in settings_text.groups(file.settings):
        table.add_row(Text(name), Text(told))
    yield table


def _item(item: HealthItem) -> Iterator[RenderableType]:
    yield Text.assemble(
        severity_mark(item.severity),
        "  ",
        (phrases.plain(item.kind), "bold"),
        f"  {health_phrases.counted(item)}",
    )
    yield indented(Text(phrases.capitalised(phrases.health(item))))
    if affected := health_phrases.affected(item):
        yield indented(Text(f"{affected}."))
    for example in item.examples:
        yield indented(Text(health_phrases.example(example), style="dim"))


def _next(file: FileHealth) -> Iterator[RenderableType]:
    yield Text("Not recorded:", style="bold")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for missing in file.record_next:
        table.add_row(Text(missing.flag), Text(phrases.plain(missing.why)))
    yield indented(table)
    yield Text(f"{health_phrases.NEXT_TIME}:", style="bold")
    yield code(file.profile_call, "python")
