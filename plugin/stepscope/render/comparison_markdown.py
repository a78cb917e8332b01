"""A comparison in Markdown, fit for a pull request."""

from collections.abc import Iterator, Sequence

from stepscope.comparison.messages import Change, Comparison, ComparisonReport, Row
from stepscope.render import comparison_phrases as told
from stepscope.render.markdown_escape import code, text

ROWS = 8


def render(report: ComparisonReport, *, rows: int = ROWS) -> str:
    """Return the report in GitHub's Markdown."""
    lines = [line for each in report.comparisons for line in _comparison(each, rows)]
    lines += [f"{told.NOISE} not told from noise. {text(report.test)}"]
    return "\n".join(lines).rstrip() + "\n"


def _comparison(of: Comparison, rows: int) -> Iterator[str]:
    yield from (f"## {text(of.before.name)} {told.ARROW} {text(of.after.name)}", "")
    yield from (f"**{text(told.headline(of))}**", "")
    for name, side in (("Before", of.before), ("After", of.after)):
        yield f"- {name}: {text(told.side(side))}"
    yield ""
    if of.settings:
        yield "Settings that differ, as they were recorded:"
        yield ""
        yield from (f"- {text(told.setting(change))}" for change in of.settings)
        yield ""
    for warning in of.warnings:
        yield from (f"> {text(warning)}", "")
    changes = [(part.label, part.change) for part in told.parts(of.waterfall)]
    yield from _table("Where the change comes from", [*changes, ("Step", of.step)])
    yield from _advice(of)
    others = [*told.parts(of.figures), *told.parts(of.idle)]
    yield from _table("Device, and why it was idle", [(each.label, each.change) for each in others])
    yield from _rows("Operators", of.operators, rows)
    yield from _rows("Work on the device", of.device_work, rows)


def _table(heading: str, rows: Sequence[tuple[str, Change]]) -> Iterator[str]:
    if not rows:
        return
    yield from (f"| {heading} | before | after | change |", "|---|---:|---:|---:|")
    for label, change in rows:
        before, after = (told.amount(each, change) for each in (change.before, change.after))
        yield f"| {text(label)} | {before} | {after} | {_delta(change)} |"
    yield ""


def _delta(change: Change) -> str:
    is_noise = change.delta and change.verdict == "same"
    return told.delta(change) + (f" {told.NOISE}" if is_noise else "")


def _advice(of: Comparison) -> Iterator[str]:
    for change in of.advice:
        subject = f" ({text(change.subject)})" if change.subject else ""
        detail = f": {text(told.advice(change))}" if told.advice(change) else ""
        status = told.ADVICE[change.status].capitalize()
        yield f"- **{status}**: {text(change.title)}{subject} {code(change.rule)}{detail}"
    if of.advice:
        yield ""
    followed = told.followed(of.savings)
    if not followed:
        return
    yield "| advice that was followed | promised a step | median step less | mean step less |"
    yield "|---|---:|---:|---:|"
    for saving in followed:
        won = (told.realised(ns) for ns in (saving.realised_median_ns, saving.realised_mean_ns))
        cells = [text(told.saving_name(saving)), told.predicted(saving), *won]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _rows(heading: str, rows: Sequence[Row], most: int) -> Iterator[str]:
    shown, more = told.worth_telling(rows, most)
    if not shown:
        return
    yield f"| {heading} | | calls | before | after | change |"
    yield "|---|---|---:|---:|---:|---:|"
    for row in shown:
        _, change = told.main_change(row)
        before, after = (told.amount(each, change) for each in (change.before, change.after))
        calls = told.amount(row.calls.after, row.calls)
        if row.calls.delta:
            calls = f"{told.amount(row.calls.before, row.calls)} {told.ARROW} {calls}"
        name = code(told.row_name(row))
        if detail := told.row_detail(row):
            name += f" {text(detail)}"
        status = told.STATUS[row.status]
        yield f"| {name} | {status} | {calls} | {before} | {after} | {_delta(change)} |"
    yield from ([f"| … and {more} more | | | | | |"] if more else [])
    yield ""
