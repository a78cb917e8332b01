"""A report for a terminal: verdict, time budget, findings, then other outcomes in brief."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from stepscope.base.findings import Evidence, Fix, Outcome
from stepscope.base.plain_text import plain
from stepscope.base.report import Report
from stepscope.render import advice_phrases as labels
from stepscope.render import job_phrases, outlook_phrases, phrases
from stepscope.render.advice_sections import (
    AdviceItem,
    AdviceSections,
    HealthNote,
    Reason,
    advice_sections,
)
from stepscope.render.evidence_table import evidence_table
from stepscope.render.terminal import (
    INDENT,
    STYLES,
    WIDTH,
    code,
    indented,
    layout,
    severity_mark,
)

BAR = 22
WIDTH_FOR_BARS = 80
WIDTH_FOR_GAPS = 50
SINGLE_REASONS = 4
"""From so many inapplicable rules with different reasons on, only the names are shown."""
MORE = "Details of a rule: stepscope explain RULE"


def render(report: Report, *, width: int = WIDTH, is_coloured: bool = False) -> str:
    """Return the report for a terminal of `width` columns."""
    return layout(_parts(report, width), width=width, is_coloured=is_coloured)


def _parts(report: Report, width: int) -> Iterator[RenderableType]:
    for run in report.runs:
        yield from _run(advice_sections(run), width)
        yield Text()
    for line in phrases.problems(report):
        yield Text.assemble(("Not read: ", "bold"), line)
    if any(run.merged or run.outcomes for run in report.runs):
        yield Text(MORE, style="dim")


def _run(advice: AdviceSections, width: int) -> Iterator[RenderableType]:
    yield Rule(Text(plain(advice.run.name), style="bold"), align="left")
    yield Text(labels.verdict(advice), style="bold")
    for line in job_phrases.not_recorded(advice.run):
        yield Text(line, style=STYLES["warning"])
    yield from map(_health, advice.health)
    if job := job_phrases.job(advice.run):
        yield Text(job)
    yield from _traces(advice)
    yield Text(labels.shown_trace(advice), style="dim")
    if settings := labels.settings(advice):
        yield Text(settings, style="dim")
    if verdict := labels.lead_verdict(advice):
        yield Text(verdict)
    yield from _budget(advice, width)
    yield Text()
    yield from _status_notes(advice)
    for number, item in enumerate(advice.findings, start=1):
        yield from _finding(number, item, advice, width)
        yield Text()
    yield from _ruled_out(advice)
    yield from _suppressed(advice)
    yield from _rest(advice)
    if line := outlook_phrases.outlook(advice):
        yield Text()
        yield Text(line, style="bold")


def _health(unhealthy: HealthNote) -> Text:
    where = f" ({unhealthy.where})" if unhealthy.where else ""
    return Text.assemble(
        (f"The trace{where}: ", STYLES[unhealthy.item.severity]), phrases.health(unhealthy.item)
    )


def _traces(advice: AdviceSections) -> Iterator[RenderableType]:
    rows = labels.shown_traces(advice)
    if not rows:
        return
    grid = _grid("Trace", "step", "device busy")
    for row in rows:
        grid.add_row(*map(Text, row))
    yield Text()
    yield grid
    if left := labels.more(len(advice.run.workers), len(rows), "trace"):
        yield Text(left, style="dim")
    for line in labels.representatives(advice):
        yield Text(line, style="dim")
    yield Text()


def _grid(first: str, *others: str) -> Table:
    """Return a table without lines: a column of text, then numbers."""
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    grid.add_column(Text(first), min_width=8, overflow="fold")
    for heading in others:
        grid.add_column(Text(heading), justify="right", no_wrap=heading == "")
    return grid


def _budget(advice: AdviceSections, width: int) -> Iterator[RenderableType]:
    """Yield the time budget; the light part of item bar is the potential saving."""
    rows = labels.budget(advice.lead) if advice.lead else ()
    if not rows or advice.lead is None:
        return
    grid = _grid("Where the time goes", "", "", labels.saving_heading(advice.lead))
    if width < WIDTH_FOR_GAPS:
        grid.padding = (0, 1, 0, 0)
        grid.columns[0].width = _label_width(rows, width)
    has_bars = width >= WIDTH_FOR_BARS
    if has_bars:
        grid.add_column("")
    for row in (*rows, labels.whole(advice.lead)):
        style = "" if row.category else "bold"
        bars = [_bar(row)] if has_bars and row.category else []
        cells = (Text(cell, style=style) for cell in (row.label, row.time, row.share))
        grid.add_row(*cells, Text(row.recoverable, style=style), *bars)
    yield Text()
    yield grid


def _label_width(rows: Sequence[labels.BudgetRow], width: int) -> int:
    """Return the width that figures leave for labels, of which no word is broken."""
    figures = zip(*((row.time, row.share, row.recoverable) for row in rows), strict=True)
    left = width - sum(max(map(len, cells)) + 1 for cells in figures)
    words = (len(word) for row in rows for word in row.label.split())
    return max(*words, min(left, max(len(row.label) for row in rows)))


def _bar(row: labels.BudgetRow) -> Text:
    length = round(row.tenths * BAR / labels.TENTHS)
    light = min(length, round(row.recoverable_share * BAR))
    return Text.assemble("█" * (length - light), ("░" * light, "green"))


def _status_notes(advice: AdviceSections) -> Iterator[RenderableType]:
    for note in advice.status_notes:
        where = f" ({note.where})" if note.where else ""
        style = "bold green" if note.state == "healthy" else "bold yellow"
        yield Text.assemble((f"{labels.STATES[note.state]}{where}: ", style), note.message)
    if not advice.status_notes and not advice.findings:
        yield Text(labels.NOTHING_FOUND)
    if advice.status_notes:
        yield Text()


def _finding(
    number: int, item: AdviceItem, advice: AdviceSections, width: int
) -> Iterator[RenderableType]:
    outcome = item.outcome
    yield Text.assemble(
        f"{number}. ",
        severity_mark(outcome.severity or "info"),
        "  ",
        (plain(outcome.title), "bold"),
        f"  [{plain(outcome.rule)}]",
        ("".join(f" · {mark}" for mark in labels.marks(outcome)), "dim"),
    )
    if item.is_covered:
        yield from map(indented, _covered(item))
        return
    yield from map(indented, _measured(item, advice, width - INDENT))
    if outcome.fix:
        yield from _fix(outcome.fix)


def _measured(item: AdviceItem, advice: AdviceSections, width: int) -> Iterator[RenderableType]:
    outcome = item.outcome
    saving = labels.savings(item, advice.per)
    if line := labels.sentence(saving, labels.qualities(outcome)):
        yield Text(line, style="green" if saving else "")
    if job := job_phrases.job_saving(item, advice.run.job):
        yield Text(job)
    if extent := labels.extent(item):
        yield Text(extent)
    yield Text(plain(outcome.message))
    yield from map(Text, job_phrases.related(item))
    for other in item.also[: labels.ALSO_SHOWN]:
        yield Text(f"Also: {plain(other.message)}")
    if left := labels.more(len(item.also), labels.ALSO_SHOWN, "of the same"):
        yield Text(left, style="dim")
    if why := phrases.doubt(outcome):
        yield Text.assemble(("Doubtful: ", STYLES["warning"]), why)
    if outcome.claim and outcome.claim.method:
        yield Text(f"{labels.ESTIMATED}: {plain(outcome.claim.method)}", style="dim")
    yield from _proof(outcome, width)


def _covered(item: AdviceItem) -> Iterator[RenderableType]:
    """Yield a finding whose time other findings claim: their fix is its fix."""
    yield Text(plain(item.outcome.message))
    if item.outcome.claim:
        yield Text(f"{labels.COVERED}. {plain(item.outcome.claim.method)}", style="dim")


def _proof(outcome: Outcome, width: int) -> Iterator[RenderableType]:
    if outcome.evidence:
        yield _facts(outcome.evidence)
    for table in outcome.tables:
        yield from evidence_table(table, width=width)
    for reference in outcome.events[: labels.EVENTS_SHOWN]:
        yield Text(f"Event: {phrases.event(reference)}", style="dim")
    if outcome.locations:
        lines = map(labels.source_line, outcome.locations[: labels.LINES_SHOWN])
        yield Text(f"At: {', '.join(lines)}")


def _facts(evidence: tuple[Evidence, ...]) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for fact in evidence:
        label, value = phrases.evidence(fact)
        table.add_row(Text(f"· {label}"), Text(phrases.cut(value)))
    return table


def _fix(fix: Fix) -> Iterator[RenderableType]:
    yield indented(Text.assemble(("Fix: ", "bold"), plain(fix.summary)))
    if fix.code:
        yield code(fix.code, fix.language)
    if fix.verify:
        yield indented(Text.assemble(("Check: ", "bold"), plain(fix.verify)))
    for caveat in fix.caveats:
        yield indented(Text.assemble(("Caveat: ", "bold"), plain(caveat)))


def _ruled_out(advice: AdviceSections) -> Iterator[RenderableType]:
    if advice.ruled_out:
        yield Text(f"{labels.RULED_OUT} ({len(advice.ruled_out)}):", style="bold")
    for item in advice.ruled_out:
        where = f" ({item.where})" if item.where else ""
        title = plain(item.outcome.title)
        yield indented(Text(f"{title}  [{plain(item.outcome.rule)}]{where}"))
        for part in (
            Text(plain(item.outcome.message)),
            *([_facts(item.outcome.evidence)] if item.outcome.evidence else ()),
        ):
            yield indented(indented(part))
    if advice.ruled_out:
        yield Text()


def _suppressed(advice: AdviceSections) -> Iterator[RenderableType]:
    if advice.suppressed:
        yield Text(f"Suppressed ({len(advice.suppressed)}):", style="bold")
    for item in advice.suppressed:
        saving = labels.savings(item, advice.per)
        about = phrases.sentences(labels.suppression(item.outcome), labels.sentence(saving))
        where = f" ({item.where})" if item.where else ""
        yield indented(Text(f"{plain(item.outcome.rule)}{where}: {about}"))


def _rest(advice: AdviceSections) -> Iterator[RenderableType]:
    for status, label in labels.GROUPS.items():
        reasons = advice.reasons.get(status, ())
        if reasons:
            yield Text(f"{label} ({sum(len(reason.rules) for reason in reasons)}):", style="bold")
        single = [
            reason for reason in reasons if status == "not-applicable" and len(reason.rules) == 1
        ]
        for reason in reasons:
            if len(single) < SINGLE_REASONS or reason not in single:
                yield from _reason(reason)
        if len(single) >= SINGLE_REASONS:
            names = ", ".join(rule for reason in single for rule in reason.rules)
            yield indented(Text(f"{names}: for different reasons, see --format markdown."))
    for passed in advice.passed:
        yield Text.assemble((f"{passed.label}: ", "bold"), ", ".join(passed.rules))
        if passed.why:
            yield indented(Text(passed.why))


def _reason(reason: Reason) -> Iterator[RenderableType]:
    where = f" ({reason.where})" if reason.where else ""
    yield indented(Text(f"{', '.join(reason.rules)}{where}: {reason.text}"))
    if reason.remedy:
        yield code(reason.remedy, "python")
