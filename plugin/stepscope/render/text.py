"""A report for a terminal: the verdict, what to fix by what it saves, then the rest in brief."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from stepscope.render import words
from stepscope.render.terminal import STYLES, WIDTH, code, indented, laid_out, severity_mark
from stepscope.render.words import WorkerAdvice
from stepscope.report import Fix, HealthItem, Outcome, Report


def render(report: Report, *, width: int = WIDTH, is_coloured: bool = False) -> str:
    """Return the report in lines of at most `width` columns, where its words let it."""
    return laid_out(_parts(report), width=width, is_coloured=is_coloured)


def _parts(report: Report) -> Iterator[RenderableType]:
    for run in report.runs:
        yield Rule(Text(words.plain(run.name), style="bold"), align="left")
        for advice in words.by_worker(run):
            yield from _worker(advice)
            yield Text()
    for line in words.problems(report):
        yield Text.assemble(("Not read: ", "bold"), line)


def _worker(advice: WorkerAdvice) -> Iterator[RenderableType]:
    worker = advice.worker
    yield Text(words.recording(worker), style="dim")
    yield Text(words.plain(worker.verdict), style="bold")
    if parts := words.breakdown(worker):
        yield Text(f"{'Mean step' if worker.step.count else 'Time'}: {parts}")
    yield from (_health(item) for item in worker.health if item.severity != "info")
    yield Text()
    found = advice.of("found")
    if not found:
        yield Text(words.NOTHING_FOUND)
    for number, outcome in enumerate(found, start=1):
        yield from _finding(number, outcome, advice.per)
        yield Text()
    yield from _rest(advice)


def _health(item: HealthItem) -> Text:
    return Text.assemble(("The recording: ", STYLES[item.severity]), words.health(item))


def _finding(number: int, outcome: Outcome, per: str) -> Iterator[RenderableType]:
    severity = outcome.severity or "info"
    yield Text.assemble(
        f"{number}. ",
        severity_mark(severity),
        "  ",
        (words.plain(outcome.title), "bold"),
        f"  [{outcome.rule}]",
    )
    yield from map(indented, _measured(outcome, per))
    if outcome.fix:
        yield from _fix(outcome.fix)


def _measured(outcome: Outcome, per: str) -> Iterator[RenderableType]:
    sureness = words.CONFIDENCE[outcome.confidence] if outcome.confidence else ""
    saving = words.saving(outcome, per)
    line = "; ".join(part for part in (saving, sureness) if part)
    if line:
        yield Text(line[0].upper() + line[1:] + ".", style="green" if saving else "")
    yield Text(words.plain(outcome.message))
    if why := words.doubt(outcome):
        yield Text.assemble(("Doubtful: ", STYLES["warning"]), why)
    if outcome.claim and outcome.claim.method:
        yield Text(f"Reckoned: {words.plain(outcome.claim.method)}", style="dim")
    if outcome.evidence:
        yield _evidence(outcome)
    for reference in outcome.events[: words.EVENTS_SHOWN]:
        yield Text(f"Seen: {words.event(reference)}", style="dim")


def _evidence(outcome: Outcome) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for fact in outcome.evidence:
        label, value = words.evidence(fact)
        table.add_row(Text(f"· {label}"), Text(value))
    return table


def _fix(fix: Fix) -> Iterator[RenderableType]:
    yield indented(Text.assemble(("Fix: ", "bold"), words.plain(fix.summary)))
    if fix.code:
        yield code(fix.code, fix.language)
    if fix.verify:
        yield indented(Text.assemble(("Check: ", "bold"), words.plain(fix.verify)))
    for caveat in fix.caveats:
        yield indented(Text.assemble(("Mind: ", "bold"), words.plain(caveat)))


def _rest(advice: WorkerAdvice) -> Iterator[RenderableType]:
    for passed in words.passed(advice.of("passed")):
        yield Text.assemble((f"{passed.label}: ", "bold"), ", ".join(passed.rules))
        if passed.why:
            yield indented(Text(passed.why))
    for status, label in words.REST.items():
        outcomes = advice.of(status)
        if outcomes:
            yield Text(f"{label} ({len(outcomes)}):", style="bold")
        for reason in words.reasons(outcomes):
            yield indented(Text(f"{', '.join(reason.rules)}: {reason.text}"))
            if reason.remedy:
                yield code(reason.remedy, "python")
