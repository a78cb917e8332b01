"""The health of trace files for a terminal and in Markdown: damage, then missing data."""

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from stepscope.analyses.settings.record_command import COMMAND
from stepscope.base import formatting
from stepscope.base.formatting import capitalized
from stepscope.base.plain_text import plain
from stepscope.base.report import Effect, FileHealth, HealthExample, HealthItem, HealthReport
from stepscope.base.urls import redacted
from stepscope.render import markdown_escape, phrases, settings_text, terminal

VERDICTS: dict[Effect, str] = {
    "withheld": "Some of its figures mean nothing, and advice that rests on them is withheld.",
    "low": "Some of its figures are in doubt, and advice that rests on them has low confidence.",
    "none": "Its figures are reliable.",
}
EFFECTS: dict[Effect, str] = {"withheld": "Withheld", "low": "In doubt", "none": ""}
NEXT_TIME = "To record all of it next time"


def text(report: HealthReport, *, width: int = terminal.WIDTH, is_coloured: bool = False) -> str:
    """Return the report for a terminal of `width` columns."""
    return terminal.layout(_terminal_parts(report), width=width, is_coloured=is_coloured)


def markdown(report: HealthReport) -> str:
    """Return the report in GitHub's Markdown."""
    lines = [line for file in report.files for line in _markdown_file(file)]
    if problems := phrases.problems(report):
        escaped = map(markdown_escape.text, problems)
        lines += ["## Not read", "", *(f"- {line}" for line in escaped), ""]
    return "\n".join(lines).rstrip() + "\n"


# Phrases of both


def _verdict(file: FileHealth) -> str:
    effects = {item.effect for item in file.health}
    worst: Effect = next(effect for effect in VERDICTS if effect in effects | {"none"})
    return VERDICTS[worst]


def _facts(file: FileHealth) -> str:
    """Return the file's size, events, vendor, producer and reader."""
    size = formatting.size(file.file_bytes)
    if file.inflated_bytes not in {0, file.file_bytes}:
        size += f", {formatting.size(file.inflated_bytes)} of JSON"
    events = formatting.count(file.events, "event")
    origin = " (synthetic, not recorded)" if file.synthetic else ""
    return plain(
        f"{size} · {events} · {file.dialect} · written by {file.producer}{origin} · "
        f"read by the {file.reader}"
    )


def _identity(file: FileHealth) -> str:
    """Return the file's run, worker, rank and span."""
    rank = f", rank {file.rank}" if file.rank is not None else ""
    return plain(f"{file.run}: {file.name}{rank}, span {file.span}")


def _items(file: FileHealth) -> tuple[HealthItem, ...]:
    """Return the health items, without those that `record_next` lists with their line of code."""
    flags = {f"no-{missing.flag}" for missing in file.record_next}
    return tuple(item for item in file.health if item.kind not in flags)


def _count(item: HealthItem) -> str:
    """Return the number of occurrences, and the size of the lost part of the file."""
    of_all = f" of {item.of_count:,}" if item.of_count is not None else ""
    lost = f", {formatting.size(item.lost_bytes)} lost" if item.lost_bytes else ""
    return f"{item.count:,}{of_all}{lost}"


def _affected(item: HealthItem) -> str:
    return f"{EFFECTS[item.effect]}: {', '.join(item.affects)}" if item.affects else ""


def _example(example: HealthExample) -> str:
    content = " ".join(example.text.split())
    return plain(f"At byte {example.offset_bytes:,}{f': {content}' if content else ''}")


# Terminal


def _terminal_parts(report: HealthReport) -> Iterator[RenderableType]:
    for file in report.files:
        yield from _terminal_file(file)
        yield Text()
    for line in phrases.problems(report):
        yield Text.assemble(("Not read: ", "bold"), line)


def _terminal_file(file: FileHealth) -> Iterator[RenderableType]:
    yield Rule(Text(plain(redacted(file.path)), style="bold", overflow="fold"), align="left")
    yield Text(_identity(file), style="dim")
    yield Text(_facts(file), style="dim")
    if file.settings:
        yield _grid(settings_text.groups(file.settings), style="dim")
    else:
        yield Text(f"{settings_text.NOT_RECORDED} {settings_text.HOW_TO_RECORD}", style="dim")
    yield Text(_verdict(file), style="bold")
    for item in _items(file):
        yield Text()
        yield from _terminal_item(item)
    if file.record_next:
        yield from (Text(), Text("Not recorded:", style="bold"))
        yield terminal.indented(
            _grid((missing.flag, plain(missing.why)) for missing in file.record_next)
        )
        yield Text(f"{NEXT_TIME}:", style="bold")
        yield terminal.code(file.profile_call, _language(file))


def _grid(rows: Iterable[tuple[str, str]], style: str = "") -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style=style)
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))
    return grid


def _terminal_item(item: HealthItem) -> Iterator[RenderableType]:
    yield Text.assemble(
        terminal.severity_mark(item.severity),
        "  ",
        (plain(item.kind), "bold"),
        f"  {_count(item)}",
    )
    yield terminal.indented(Text(capitalized(phrases.health(item))))
    if affected := _affected(item):
        yield terminal.indented(Text(f"{affected}."))
    for example in item.examples:
        yield terminal.indented(Text(_example(example), style="dim"))


# Markdown


def _markdown_file(file: FileHealth) -> Iterator[str]:
    escaped, code = markdown_escape.text, markdown_escape.code
    yield from (f"## {escaped(redacted(file.path))}", "")
    yield from (escaped(_identity(file)), "", escaped(_facts(file)), "")
    for name, values in settings_text.groups(file.settings):
        yield f"- {escaped(name)}: {escaped(values)}"
    if not file.settings:
        yield f"{escaped(settings_text.NOT_RECORDED)} {code(settings_text.HOW_TO_RECORD)}"
    yield from ("", f"**{escaped(_verdict(file))}**", "")
    for item in _items(file):
        yield from _markdown_item(item)
    if file.record_next:
        yield from ("### Not recorded", "", "| data | purpose |", "|---|---|")
        for missing in file.record_next:
            yield f"| {escaped(missing.flag)} | {escaped(missing.why)} |"
        yield from ("", f"{NEXT_TIME}:", "")
        yield from markdown_escape.fenced(file.profile_call, _language(file))


def _language(file: FileHealth) -> str:
    """Return the language of what records more: of traces of `stepscope record`, its command."""
    return "shell" if file.profile_call.startswith(COMMAND) else "python"


def _markdown_item(item: HealthItem) -> Iterator[str]:
    escaped, code = markdown_escape.text, markdown_escape.code
    yield from (f"### {capitalized(item.severity)}: {code(item.kind)}, {_count(item)}", "")
    yield from (escaped(capitalized(phrases.health(item))), "")
    if affected := _affected(item):
        yield from (f"{escaped(affected)}.", "")
    yield from (f"- {escaped(_example(example))}" for example in item.examples)
    if item.examples:
        yield ""
