"""A comparison for a terminal: the step, where the change comes from, advice, then row by row."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from stepscope.comparison.messages import AdviceStatus, Change, Comparison, ComparisonReport, Row
from stepscope.render import comparison_phrases as told
from stepscope.render.phrases import plain
from stepscope.render.terminal import WIDTH, indented, laid_out

ROWS = 8
BAR = 26
MARGIN = 0.15
"""Of the step before: bars begin so far below the lowest level, so that small changes show."""
EIGHTHS = "▏▎▍▌▋▊▉"
WORSE, BETTER = "red", "green"
ADVICE_STYLES: dict[AdviceStatus, str] = {
    "fixed": "bold green",
    "better": "green",
    "new": "bold yellow",
    "worse": "yellow",
}


def render(
    report: ComparisonReport, *, width: int = WIDTH, is_coloured: bool = False, rows: int = ROWS
) -> str:
    """Return the report in lines of at most `width` columns, where its words let it."""
    return laid_out(_parts(report, rows), width=width, is_coloured=is_coloured)


def _parts(report: ComparisonReport, rows: int) -> Iterator[RenderableType]:
    for comparison in report.comparisons:
        yield from _comparison(comparison, rows)
        yield Text()
    yield Text(f"{told.NOISE} not told from noise. {report.test}", style="dim")


def _comparison(of: Comparison, rows: int) -> Iterator[RenderableType]:
    title = f"{plain(of.before.name)} {told.ARROW} {plain(of.after.name)}"
    yield Rule(Text(title, style="bold"), align="left")
    for name, side in (("before", of.before), ("after", of.after)):
        yield Text(f"{name:<7} {told.side(side)}", style="dim")
    yield Text()
    yield Text(told.headline(of), style="bold")
    for change in of.settings:
        yield indented(Text.assemble(("Setting: ", "bold"), plain(told.setting(change))))
    for warning in of.warnings:
        yield indented(Text.assemble(("Mind: ", "bold"), plain(warning)))
    yield Text()
    yield _heading("Where the change comes from")
    yield _waterfall(of)
    if others := [*told.parts(of.figures), *told.parts(of.idle)]:
        yield Text()
        yield _heading("How the device was used, and why it was idle")
        yield _figures([(part.label, part.change) for part in others])
    yield Text()
    yield from _advice(of)
    for heading, those in (("Operators", of.operators), ("Work on the device", of.device_work)):
        yield from _rows(heading, those, rows)


def _heading(text: str) -> Text:
    return Text(text, style="bold underline")


def _grid(*justify: str) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for each in justify:  # "f" is what gives way to the others
        grid.add_column(justify="right" if each == "r" else "left", no_wrap=each != "f")
    return grid


def _waterfall(of: Comparison) -> Table:
    """Return a row a category; its bar begins where the one above ends."""
    grid = _grid("l", "r", "r", "r", "l")
    parts = told.parts(of.waterfall)
    level = of.step.before
    levels = [
        level,
        *(
            level + sum(each.change.delta for each in parts[: place + 1])
            for place in range(len(parts))
        ),
    ]
    base = max(0.0, min(levels) - MARGIN * level)
    scale = BAR / max(1.0, max(levels) - base)
    grid.add_row(
        "before", told.amount(of.step.before, of.step), "", "", _bar(base, level, base, scale)
    )
    for part in parts:
        change = part.change
        end = level + change.delta
        style = WORSE if change.delta > 0 else BETTER
        bar = _bar(min(level, end), max(level, end), base, scale)
        bar.stylize(style if told.is_real(change) else "dim")
        grid.add_row(
            part.label,
            told.amount(change.before, change),
            told.amount(change.after, change),
            _delta(change),
            bar,
        )
        level = end
    grid.add_row(
        "after",
        "",
        told.amount(of.step.after, of.step),
        _delta(of.step),
        _bar(base, level, base, scale),
    )
    return grid


def _bar(begin: float, end: float, base: float, scale: float) -> Text:
    """Return a bar between two levels; one that is there but thin is a line."""
    first, last = (max(0.0, level - base) * scale for level in (begin, end))
    left = int(first)
    blocks = round((last - left) * 8) if last > first else 0
    whole, eighths = divmod(max(blocks, 1 if end > begin else 0), 8)
    return Text(" " * left + "█" * whole + (EIGHTHS[eighths - 1] if eighths else ""))


def _delta(change: Change) -> Text:
    """Return a change, marked where it is not told from noise."""
    mark = "" if told.is_real(change) or not change.delta else f" {told.NOISE}"
    style = "" if mark or not change.delta else WORSE if change.delta > 0 else BETTER
    return Text(told.delta(change) + (mark or "  "), style=style)


def _figures(rows: Sequence[tuple[str, Change]]) -> Table:
    grid = _grid("l", "r", "r", "r")
    for label, change in rows:
        before, after = (told.amount(each, change) for each in (change.before, change.after))
        grid.add_row(label, before, after, told.delta(change))
    return grid


def _advice(of: Comparison) -> Iterator[RenderableType]:
    if not of.advice:
        return
    yield _heading("Advice")
    grid = _grid("l", "f")
    for change in of.advice:
        subject = f" ({plain(change.subject)})" if change.subject else ""
        name = Text.assemble((plain(change.title), "bold"), f"{subject}  [{change.rule}]")
        detail = told.advice(change)
        style = ADVICE_STYLES.get(change.status, "")
        grid.add_row(Text(told.ADVICE[change.status], style=style), name)
        if detail:
            grid.add_row("", detail)
    yield grid
    yield Text()
    if told.followed(of.savings):
        yield _heading("What the advice that was followed promised, and what came of it")
        yield _savings(of)
        yield Text()


def _savings(of: Comparison) -> Table:
    grid = _grid("l", "r", "r", "r")
    grid.add_row("a step", "promised", "median step less", "mean step less", style="dim")
    for saving in told.followed(of.savings):
        grid.add_row(
            told.saving_name(saving),
            told.predicted(saving),
            told.realised(saving.realised_median_ns),
            told.realised(saving.realised_mean_ns),
        )
    return grid


def _rows(heading: str, rows: Sequence[Row], most: int) -> Iterator[RenderableType]:
    shown, more = told.worth_telling(rows, most)
    if not shown:
        return
    places = {told.main_change(row)[0] for row in shown}
    grid = _grid("l", "f", "r", "r", "r")
    where = f"{places.pop()} " if len(places) == 1 else ""
    yield _heading(f"{heading} that changed ({len(shown) + more}): {where}self time a step")
    grid.add_row("", "", "calls", "time", "change", style="dim")
    for row in shown:
        _add_row(grid, row, is_mixed=not where)
    yield grid
    if more:
        yield Text(f"… and {more} more: --rows {len(shown) + more}", style="dim")
    yield Text()


def _add_row(grid: Table, row: Row, *, is_mixed: bool) -> None:
    where, change = told.main_change(row)
    calls = told.amount(row.calls.before, row.calls)
    if row.calls.delta:
        calls += f" {told.ARROW} {told.amount(row.calls.after, row.calls)}"
    before, after = (told.amount(each, change) for each in (change.before, change.after))
    time = f"{before} {told.ARROW} {after}"
    name = _one_line(told.row_name(row), "bold")
    grid.add_row(told.STATUS[row.status], name, calls, time, _delta(change))
    detail = told.row_detail(row)
    if is_mixed:
        detail = ", ".join(filter(None, [detail, f"on the {where}"]))
    if detail:
        grid.add_row("", _one_line(detail, "dim"), "", "", "")


def _one_line(text: str, style: str) -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")
