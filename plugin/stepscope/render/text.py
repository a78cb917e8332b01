"""A report for a terminal: verdict, where the time goes, what to fix, then the rest in brief."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from stepscope.base.findings import Evidence, Fix, Outcome
from stepscope.base.report import Report
from stepscope.render import advice_phrases as told
from stepscope.render import job_phrases, phrases
from stepscope.render.advice_sections import Advised, Reason, Told, Unhealthy, advised
from stepscope.render.evidence_table import evidence_table
from stepscope.render.terminal import (
    INDENT,
    STYLES,
    WIDTH,
    code,
    indented,
    laid_out,
    severity_mark,
)

BAR = 22
WIDTH_FOR_BARS = 80
OWN_REASONS = 4
"""So many rules that do not apply, each for a reason of its own, are only named."""
HOW_TO_GET_MORE = "All about a rule: stepscope explain RULE"


def render(report: Report, *, width: int = WIDTH, is_coloured: bool = False) -> str:
    """Return the report in lines of at most `width` columns, where its words let it."""
    return laid_out(_parts(report, width), width=width, is_coloured=is_coloured)


def _parts(report: Report, width: int) -> Iterator[RenderableType]:
    for run in report.runs:
        yield from _run(advised(run), width)
        yield Text()
    for line in phrases.problems(report):
        yield Text.assemble(("Not read: ", "bold"), line)
    if any(run.merged or run.outcomes for run in report.runs):
        yield Text(HOW_TO_GET_MORE, style="dim")


def _run(advice: Advised, width: int) -> Iterator[RenderableType]:
    yield Rule(Text(phrases.plain(advice.run.name), style="bold"), align="left")
    yield Text(told.verdict(advice), style="bold")
    for line in job_phrases.not_recorded(advice.run):
        yield Text(line, style=STYLES["warning"])
    yield from map(_health, advice.health)
    if job := job_phrases.job(advice.run):
        yield Text(job)
    yield from _recordings(advice)
    yield Text(told.recording(advice), style="dim")
    if settings := told.settings(advice):
        yield Text(settings, style="dim")
    if verdict := told.own_verdict(advice):
        yield Text(verdict)
    yield from _budget(advice, width)
    yield Text()
    yield from _standings(advice)
    for number, each in enumerate(advice.found, start=1):
        yield from _finding(number, each, advice, width)
        yield Text()
    yield from _rejected(advice)
    yield from _suppressed(advice)
    yield from _rest(advice)


def _health(unhealthy: Unhealthy) -> Text:
    where = f" ({unhealthy.where})" if unhealthy.where else ""
    return Text.assemble(
        (f"The recording{where}: ", STYLES[unhealthy.item.severity]), phrases.health(unhealthy.item)
    )


def _recordings(advice: Advised) -> Iterator[RenderableType]:
    """Yield those recordings of several that are to be looked at."""
    rows = told.recordings(advice)
    if not rows:
        return
    grid = _grid("Recording", "step", "device busy")
    for row in rows:
        grid.add_row(*map(Text, row))
    yield Text()
    yield grid
    if left := told.more(len(advice.run.workers), len(rows), "recording"):
        yield Text(left, style="dim")
    for line in told.represented(advice):
        yield Text(line, style="dim")
    yield Text()


def _grid(first: str, *others: str) -> Table:
    """Return a table without lines: words, then numbers."""
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    grid.add_column(Text(first), min_width=8, overflow="fold")
    for heading in others:
        grid.add_column(Text(heading), justify="right", no_wrap=heading == "")
    return grid


def _budget(advice: Advised, width: int) -> Iterator[RenderableType]:
    """Yield where the time goes; of each bar the light part could be won back."""
    rows = told.budget(advice.lead) if advice.lead else ()
    if not rows or advice.lead is None:
        return
    grid = _grid("Where it goes", "", "", "could be won back")
    has_bars = width >= WIDTH_FOR_BARS
    if has_bars:
        grid.add_column("")
    for row in (*rows, told.whole(advice.lead)):
        style = "" if row.category else "bold"
        bars = [_bar(row)] if has_bars and row.category else []
        cells = (Text(cell, style=style) for cell in (row.label, row.time, row.share))
        grid.add_row(*cells, Text(row.recoverable, style=style), *bars)
    yield Text()
    yield grid


def _bar(row: told.BudgetRow) -> Text:
    length = round(row.tenths * BAR / told.TENTHS)
    light = min(length, round(row.recoverable_share * BAR))
    return Text.assemble("█" * (length - light), ("░" * light, "green"))


def _standings(advice: Advised) -> Iterator[RenderableType]:
    for stand in advice.standings:
        where = f" ({stand.where})" if stand.where else ""
        style = "bold green" if stand.state == "healthy" else "bold yellow"
        yield Text.assemble((f"{told.STATES[stand.state]}{where}: ", style), stand.message)
    if not advice.standings and not advice.found:
        yield Text(told.NOTHING_FOUND)
    if advice.standings:
        yield Text()


def _finding(number: int, each: Told, advice: Advised, width: int) -> Iterator[RenderableType]:
    outcome = each.outcome
    yield Text.assemble(
        f"{number}. ",
        severity_mark(outcome.severity or "info"),
        "  ",
        (phrases.plain(outcome.title), "bold"),
        f"  [{phrases.plain(outcome.rule)}]",
        ("".join(f" · {mark}" for mark in told.marks(outcome)), "dim"),
    )
    if each.is_covered:
        yield from map(indented, _covered(each))
        return
    yield from map(indented, _measured(each, advice, width - INDENT))
    if outcome.fix:
        yield from _fix(outcome.fix)


def _measured(each: Told, advice: Advised, width: int) -> Iterator[RenderableType]:
    outcome = each.outcome
    saving = told.savings(each, advice.per)
    if line := told.sentence(saving, told.qualities(outcome)):
        yield Text(line, style="green" if saving else "")
    if job := job_phrases.job_saving(each, advice.run.job):
        yield Text(job)
    if place := told.place(each):
        yield Text(place)
    yield Text(phrases.plain(outcome.message))
    yield from map(Text, job_phrases.related(each))
    for other in each.also[: told.ALSO_SHOWN]:
        yield Text(f"Also: {phrases.plain(other.message)}")
    if left := told.more(len(each.also), told.ALSO_SHOWN, "of the same"):
        yield Text(left, style="dim")
    if why := phrases.doubt(outcome):
        yield Text.assemble(("Doubtful: ", STYLES["warning"]), why)
    if outcome.claim and outcome.claim.method:
        yield Text(f"Reckoned: {phrases.plain(outcome.claim.method)}", style="dim")
    yield from _proof(outcome, width)


def _covered(each: Told) -> Iterator[RenderableType]:
    """Yield what is said of a finding whose time others claim already: their fix is its own."""
    yield Text(phrases.plain(each.outcome.message))
    if each.outcome.claim:
        yield Text(f"{told.COVERED}. {phrases.plain(each.outcome.claim.method)}", style="dim")


def _proof(outcome: Outcome, width: int) -> Iterator[RenderableType]:
    if outcome.evidence:
        yield _facts(outcome.evidence)
    for table in outcome.tables:
        yield from evidence_table(table, width=width)
    for reference in outcome.events[: told.EVENTS_SHOWN]:
        yield Text(f"Seen: {phrases.event(reference)}", style="dim")
    if outcome.locations:
        lines = map(told.source_line, outcome.locations[: told.LINES_SHOWN])
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
    yield indented(Text.assemble(("Fix: ", "bold"), phrases.plain(fix.summary)))
    if fix.code:
        yield code(fix.code, fix.language)
    if fix.verify:
        yield indented(Text.assemble(("Check: ", "bold"), phrases.plain(fix.verify)))
    for caveat in fix.caveats:
        yield indented(Text.assemble(("Mind: ", "bold"), phrases.plain(caveat)))


def _rejected(advice: Advised) -> Iterator[RenderableType]:
    """Yield what looks like a fault and costs nothing, with the numbers that acquit it."""
    if advice.rejected:
        yield Text(f"{told.REJECTED} ({len(advice.rejected)}):", style="bold")
    for each in advice.rejected:
        where = f" ({each.where})" if each.where else ""
        title = phrases.plain(each.outcome.title)
        yield indented(Text(f"{title}  [{phrases.plain(each.outcome.rule)}]{where}"))
        for part in (
            Text(phrases.plain(each.outcome.message)),
            *([_facts(each.outcome.evidence)] if each.outcome.evidence else ()),
        ):
            yield indented(indented(part))
    if advice.rejected:
        yield Text()


def _suppressed(advice: Advised) -> Iterator[RenderableType]:
    if advice.suppressed:
        yield Text(f"Suppressed ({len(advice.suppressed)}):", style="bold")
    for each in advice.suppressed:
        saving = told.savings(each, advice.per)
        about = phrases.sentences(told.aside(each.outcome), told.sentence(saving))
        where = f" ({each.where})" if each.where else ""
        yield indented(Text(f"{phrases.plain(each.outcome.rule)}{where}: {about}"))


def _rest(advice: Advised) -> Iterator[RenderableType]:
    for status, label in told.GROUPS.items():
        reasons = advice.reasons.get(status, ())
        if reasons:
            yield Text(f"{label} ({sum(len(each.rules) for each in reasons)}):", style="bold")
        own = [each for each in reasons if status == "not-applicable" and len(each.rules) == 1]
        for reason in reasons:
            if len(own) < OWN_REASONS or reason not in own:
                yield from _reason(reason)
        if len(own) >= OWN_REASONS:
            names = ", ".join(rule for reason in own for rule in reason.rules)
            yield indented(
                Text(f"{names}: each for its own reason, which --format markdown tells.")
            )
    for passed in advice.passed:
        yield Text.assemble((f"{passed.label}: ", "bold"), ", ".join(passed.rules))
        if passed.why:
            yield indented(Text(passed.why))


def _reason(reason: Reason) -> Iterator[RenderableType]:
    where = f" ({reason.where})" if reason.where else ""
    yield indented(Text(f"{', '.join(reason.rules)}{where}: {reason.text}"))
    if reason.remedy:
        yield code(reason.remedy, "python")
