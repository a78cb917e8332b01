"""A comparison in Markdown for a pull request."""

from collections.abc import Iterator, Sequence

from stepscope.comparison.messages import Change, Comparison, ComparisonReport, Row
from stepscope.render import comparison_phrases as labels
from stepscope.render.markdown_escape import code, text

ROWS = 8


def render(report: ComparisonReport, *, rows: int = ROWS) -> str:
    """Return the report in GitHub's Markdown."""
    lines = [line for comparison in report.comparisons for line in _comparison(comparison, rows)]
    lines += [f"{labels.NOISE} not statistically significant. {text(report.test)}"]
    return "\n".join(lines).rstrip() + "\n"


def _comparison(of: Comparison, rows: int) -> Iterator[str]:
    yield from (f"## {text(of.before.name)} {labels.ARROW} {text(of.after.name)}", "")
    heading, sentences = labels.comparability(of)
    if heading:
        yield from (f"> **{heading}:** {text(' '.join(sentences))}", "")
    yield from (f"**{text(labels.headline(of))}**", "")
    if interval := labels.interval(of):
        yield from (f"{text(interval)}.", "")
    for name, side in (("Before", of.before), ("After", of.after)):
        yield f"- {name}: {text(labels.side(side))}"
    yield ""
    if of.settings:
        yield "Recorded settings that differ:"
        yield ""
        yield from (f"- {text(labels.setting(change))}" for change in of.settings)
        yield ""
    for warning in of.warnings:
        yield from (f"> {text(warning)}", "")
    changes = [(part.label, part.change) for part in labels.parts(of.waterfall)]
    yield from _table("Where the change comes from", [*changes, ("Step", of.step)])
    yield from _advice(of)
    others = [*labels.parts(of.figures), *labels.parts(of.idle)]
    rows_of_others = [(part.label, part.change) for part in others]
    yield from _table("Device metrics and causes of idle time", rows_of_others)
    yield from _rows("Operators", of.operators, of, rows)
    yield from _rows("Work on the device", of.device_work, of, rows)


def _table(heading: str, rows: Sequence[tuple[str, Change]]) -> Iterator[str]:
    if not rows:
        return
    yield from (f"| {heading} | before | after | change |", "|---|---:|---:|---:|")
    for label, change in rows:
        before, after = (labels.amount(value, change) for value in (change.before, change.after))
        yield f"| {text(label)} | {before} | {after} | {_delta(change)} |"
    yield ""


def _delta(change: Change) -> str:
    is_noise = change.delta and change.verdict == "same"
    return labels.delta(change) + (f" {labels.NOISE}" if is_noise else "")


def _advice(of: Comparison) -> Iterator[str]:
    for change in of.advice:
        subject = f" ({text(change.subject)})" if change.subject else ""
        detail = f": {text(labels.advice(change))}" if labels.advice(change) else ""
        status = labels.advice_status(change, of).capitalize()
        yield f"- **{status}**: {text(change.title)}{subject} {code(change.rule)}{detail}"
    if of.advice:
        yield ""
    followed = labels.followed_savings(of.savings)
    if not followed:
        return
    yield "| followed advice | estimated per step | median step shorter by | mean step shorter by |"
    yield "|---|---:|---:|---:|"
    for saving in followed:
        saved = (labels.realised(ns) for ns in (saving.realised_median_ns, saving.realised_mean_ns))
        cells = [text(labels.saving_name(saving)), labels.predicted(saving), *saved]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _rows(heading: str, rows: Sequence[Row], of: Comparison, most: int) -> Iterator[str]:
    shown, more = labels.changed_rows(rows, most)
    if not shown:
        return
    yield f"| {heading} | | calls | before | after | change |"
    yield "|---|---|---:|---:|---:|---:|"
    for row in shown:
        _, change = labels.main_change(row)
        before, after = (labels.amount(value, change) for value in (change.before, change.after))
        calls = labels.amount(row.calls.after, row.calls)
        if row.calls.delta:
            calls = f"{labels.amount(row.calls.before, row.calls)} {labels.ARROW} {calls}"
        name = code(labels.row_name(row))
        if detail := labels.row_detail(row):
            name += f" {text(detail)}"
        status = labels.status(row, of)
        yield f"| {name} | {status} | {calls} | {before} | {after} | {_delta(change)} |"
    yield from ([f"| … and {more} more | | | | | |"] if more else [])
    yield ""
