"""A comparison for a terminal: the step, where the change comes from, advice, then row by row."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from stepscope.base.plain_text import plain
from stepscope.comparison.messages import AdviceStatus, Change, Comparison, ComparisonReport, Row
from stepscope.render import comparison_phrases as labels
from stepscope.render.terminal import WIDTH, indented, layout

ROWS = 8
BAR = 26
MARGIN = 0.15
"""Of the step before: distance of the bars' base below the lowest level, so that changes show."""
EIGHTHS = "▏▎▍▌▋▊▉"
COLOURS = ("red", "green")
NEUTRAL = ("", "")
ADVICE_STYLES: dict[AdviceStatus, str] = {
    "fixed": "bold green",
    "better": "green",
    "new": "bold yellow",
    "worse": "yellow",
}


def render(
    report: ComparisonReport, *, width: int = WIDTH, is_coloured: bool = False, rows: int = ROWS
) -> str:
    """Return the report for a terminal of `width` columns."""
    return layout(_parts(report, rows), width=width, is_coloured=is_coloured)


def _parts(report: ComparisonReport, rows: int) -> Iterator[RenderableType]:
    for comparison in report.comparisons:
        yield from _comparison(comparison, rows)
        yield Text()
    yield Text(f"{labels.NOISE} not statistically significant. {report.test}", style="dim")


def _comparison(of: Comparison, rows: int) -> Iterator[RenderableType]:
    title = f"{plain(of.before.name)} {labels.ARROW} {plain(of.after.name)}"
    yield Rule(Text(title, style="bold"), align="left")
    for name, side in (("before", of.before), ("after", of.after)):
        yield Text(f"{name:<7} {labels.side(side)}", style="dim")
    yield Text()
    yield from _comparability(of)
    yield Text(labels.headline(of), style="bold")
    if interval := labels.interval(of):
        yield Text(f"{interval}.", style="dim")
    for change in of.settings:
        yield indented(Text.assemble(("Setting: ", "bold"), plain(labels.setting(change))))
    for warning in of.warnings:
        yield indented(Text.assemble(("Caveat: ", "bold"), plain(warning)))
    yield Text()
    yield _heading("Where the change comes from")
    yield _waterfall(of)
    if others := [*labels.parts(of.figures), *labels.parts(of.idle)]:
        yield Text()
        yield _heading("Device metrics and causes of idle time")
        yield _figures([(part.label, part.change) for part in others])
    yield Text()
    yield from _advice(of)
    yield from _rows("Operators", of.operators, of, rows)
    yield from _rows("Work on the device", of.device_work, of, rows)


def _comparability(of: Comparison) -> Iterator[RenderableType]:
    heading, sentences = labels.comparability(of)
    if heading:
        yield Text(f"{heading}:", style="bold yellow")
        yield from (indented(Text(plain(sentence))) for sentence in sentences)
        yield Text()


def _tone(change: Change, of: Comparison) -> str:
    """Return the colour of a change for the worse or the better; none if not comparable."""
    worse, better = COLOURS if labels.is_comparable(of) else NEUTRAL
    return worse if change.delta > 0 else better


def _heading(text: str) -> Text:
    return Text(text, style="bold underline")


def _grid(*justify: str) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for side in justify:  # only columns "f" wrap
        grid.add_column(justify="right" if side == "r" else "left", no_wrap=side != "f")
    return grid


def _waterfall(of: Comparison) -> Table:
    """Return a row a category; its bar begins where the one above ends."""
    grid = _grid("l", "r", "r", "r", "l")
    parts = labels.parts(of.waterfall)
    level = of.step.before
    levels = list(accumulate((part.change.delta for part in parts), initial=level))
    base = max(0.0, min(levels) - MARGIN * level)
    scale = BAR / max(1.0, max(levels) - base)
    grid.add_row(
        "before", labels.amount(of.step.before, of.step), "", "", _bar(base, level, base, scale)
    )
    for part in parts:
        change = part.change
        end = level + change.delta
        bar = _bar(min(level, end), max(level, end), base, scale)
        bar.stylize(_tone(change, of) if labels.is_significant(change) else "dim")
        grid.add_row(
            part.label,
            labels.amount(change.before, change),
            labels.amount(change.after, change),
            _delta(change, of),
            bar,
        )
        level = end
    grid.add_row(
        "after",
        "",
        labels.amount(of.step.after, of.step),
        _delta(of.step, of),
        _bar(base, level, base, scale),
    )
    return grid


def _bar(begin: float, end: float, base: float, scale: float) -> Text:
    """Return a bar between two levels; a thin bar is a line."""
    first, last = (max(0.0, level - base) * scale for level in (begin, end))
    left = int(first)
    blocks = round((last - left) * 8) if last > first else 0
    whole, eighths = divmod(max(blocks, 1 if end > begin else 0), 8)
    return Text(" " * left + "█" * whole + (EIGHTHS[eighths - 1] if eighths else ""))


def _delta(change: Change, of: Comparison) -> Text:
    """Return a change, marked where it is not statistically significant."""
    mark = "" if labels.is_significant(change) or not change.delta else f" {labels.NOISE}"
    style = "" if mark or not change.delta else _tone(change, of)
    return Text(labels.delta(change) + (mark or "  "), style=style)


def _figures(rows: Sequence[tuple[str, Change]]) -> Table:
    grid = _grid("l", "r", "r", "r")
    for label, change in rows:
        before, after = (labels.amount(value, change) for value in (change.before, change.after))
        grid.add_row(label, before, after, labels.delta(change))
    return grid


def _advice(of: Comparison) -> Iterator[RenderableType]:
    if not of.advice:
        return
    yield _heading("Advice")
    grid = _grid("l", "f")
    for change in of.advice:
        subject = f" ({plain(change.subject)})" if change.subject else ""
        name = Text.assemble((plain(change.title), "bold"), f"{subject}  [{change.rule}]")
        detail = labels.advice(change)
        style = ADVICE_STYLES.get(change.status, "") if labels.is_comparable(of) else ""
        grid.add_row(Text(labels.advice_status(change, of), style=style), name)
        if detail:
            grid.add_row("", detail)
    yield grid
    yield Text()
    if labels.followed_savings(of.savings):
        yield _heading("Estimated and achieved saving of followed advice")
        yield _savings(of)
        yield Text()


def _savings(of: Comparison) -> Table:
    grid = _grid("l", "r", "r", "r")
    grid.add_row(
        "per step", "estimated", "median step shorter by", "mean step shorter by", style="dim"
    )
    for saving in labels.followed_savings(of.savings):
        grid.add_row(
            labels.saving_name(saving),
            labels.predicted(saving),
            labels.realised(saving.realised_median_ns),
            labels.realised(saving.realised_mean_ns),
        )
    return grid


def _rows(heading: str, rows: Sequence[Row], of: Comparison, most: int) -> Iterator[RenderableType]:
    shown, more = labels.changed_rows(rows, most)
    if not shown:
        return
    sides = {labels.main_change(row)[0] for row in shown}
    grid = _grid("l", "f", "r", "r", "r")
    where = f"{sides.pop()} " if len(sides) == 1 else ""
    yield _heading(f"{heading} that changed ({len(shown) + more}): {where}self time per step")
    grid.add_row("", "", "calls", "time", "change", style="dim")
    for row in shown:
        _add_row(grid, row, of, is_mixed=not where)
    yield grid
    if more:
        yield Text(f"… and {more} more: --rows {len(shown) + more}", style="dim")
    yield Text()


def _add_row(grid: Table, row: Row, of: Comparison, *, is_mixed: bool) -> None:
    where, change = labels.main_change(row)
    calls = labels.amount(row.calls.before, row.calls)
    if row.calls.delta:
        calls += f" {labels.ARROW} {labels.amount(row.calls.after, row.calls)}"
    before, after = (labels.amount(value, change) for value in (change.before, change.after))
    time = f"{before} {labels.ARROW} {after}"
    name = _one_line(labels.row_name(row), "bold")
    grid.add_row(labels.status(row, of), name, calls, time, _delta(change, of))
    detail = labels.row_detail(row)
    if is_mixed:
        detail = ", ".join(filter(None, [detail, f"on the {where}"]))
    if detail:
        grid.add_row("", _one_line(detail, "dim"), "", "", "")


def _one_line(text: str, style: str) -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")
