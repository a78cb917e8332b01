"""A report for a terminal: the verdict, what to fix by what it saves, then the rest in brief."""

from collections.abc import Iterator
from io import StringIO
from textwrap import indent

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from stepscope.render import words
from stepscope.render.words import WorkerAdvice
from stepscope.report import Fix, HealthItem, Outcome, Report, Severity

WIDTH = 80
STYLES: dict[Severity, str] = {
    "critical": "bold red",
    "warning": "bold yellow",
    "info": "bold cyan",
}
INDENT = 3


def render(report: Report, *, width: int = WIDTH, is_coloured: bool = False) -> str:
    """Return the report in lines of at most `width` columns, where its words let it."""
    written = StringIO()
    console = Console(
        file=written,
        width=width,
        force_terminal=is_coloured,
        color_system="standard" if is_coloured else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for part in _parts(report):
        console.print(part, crop=False)  # code goes beyond the edge, since it is to be copied
    lines = written.getvalue().splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


def _parts(report: Report) -> Iterator[RenderableType]:
    for run in report.runs:
        yield Rule(Text(words.plain(run.name), style="bold"), align="left")
        for advice in words.by_worker(run):
            yield from _worker(advice)
            yield Text()
    for line in words.problems(report):
        yield Text.assemble(("Not read: ", "bold"), line)


def _indented(part: RenderableType) -> RenderableType:
    return Padding(part, (0, 0, 0, INDENT))


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
    remedy = f". {item.remedy}" if item.remedy else ""
    text = words.plain(f"{item.message}{remedy}")
    return Text.assemble(("The recording: ", STYLES[item.severity]), text)


def _finding(number: int, outcome: Outcome, per: str) -> Iterator[RenderableType]:
    severity = outcome.severity or "info"
    yield Text.assemble(
        f"{number}. ",
        (severity.upper(), STYLES[severity]),
        "  ",
        (words.plain(outcome.title), "bold"),
        f"  [{outcome.rule}]",
    )
    yield from map(_indented, _measured(outcome, per))
    if outcome.fix:
        yield from _fix(outcome.fix)


def _measured(outcome: Outcome, per: str) -> Iterator[RenderableType]:
    sureness = words.CONFIDENCE[outcome.confidence] if outcome.confidence else ""
    saving = words.saving(outcome, per)
    line = "; ".join(part for part in (saving, sureness) if part)
    if line:
        yield Text(line[0].upper() + line[1:] + ".", style="green" if saving else "")
    yield Text(words.plain(outcome.message))
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
    yield _indented(Text.assemble(("Fix: ", "bold"), words.plain(fix.summary)))
    if fix.code:
        yield _code(fix.code, fix.language)
    if fix.verify:
        yield _indented(Text.assemble(("Check: ", "bold"), words.plain(fix.verify)))
    for caveat in fix.caveats:
        yield _indented(Text.assemble(("Mind: ", "bold"), words.plain(caveat)))


def _code(code: str, language: str) -> RenderableType:
    """Return the code with its lines as they are, whatever the width."""
    shifted = indent(words.plain(code.strip("\n")), " " * 2 * INDENT)
    coloured = Syntax("", language or "text", theme="ansi_dark").highlight(shifted)
    coloured.rstrip()
    coloured.no_wrap, coloured.overflow = True, "ignore"
    return Group(coloured)  # bare, `print` would join it to a new text that wraps


def _rest(advice: WorkerAdvice) -> Iterator[RenderableType]:
    if passed := advice.of("passed"):
        yield Text.assemble((f"Passed ({len(passed)}): ", "bold"), words.rules(passed))
    for status, label in words.REST.items():
        outcomes = advice.of(status)
        if outcomes:
            yield Text(f"{label} ({len(outcomes)}):", style="bold")
        for reason in words.reasons(outcomes):
            yield _indented(Text(f"{', '.join(reason.rules)}: {reason.text}"))
            if reason.remedy:
                yield _code(reason.remedy, "python")
