"""`stepscope advise`: what to fix, as text, JSON or Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from stepscope.cli.files import as_problems, files_at, show_tracebacks
from stepscope.cli.printing import is_coloured, width, write
from stepscope.cli.reading import Effort, order_for, read, with_effort
from stepscope.cli.selection import Selection

if TYPE_CHECKING:
    from stepscope.advice import RecordingAdvice
    from stepscope.readers.orders import Step
    from stepscope.report import Report, RunReport, Severity

Format = Literal["text", "json", "markdown"]
SEVERITIES: "tuple[Severity, ...]" = ("critical", "warning", "info")
NOTHING_READ = 2


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What of the advice was asked for, and in which form."""

    format: Format
    workers: tuple[str, ...]
    min_severity: "Severity"
    is_coloured: bool


@click.command(short_help="Print what to fix in the traces below PATH.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="JSON is one object; `stepscope schema` prints its schema.",
)
@click.option("--output", type=click.Path(dir_okay=False), help="Write to this file.")
@click.option(
    "--worker", "workers", multiple=True, metavar="NAME", help="Only this worker; repeatable."
)
@click.option(
    "--min-severity",
    type=click.Choice(SEVERITIES),
    default="info",
    show_default=True,
    help="Leave out findings that are less serious.",
)
@click.option("--no-color", is_flag=True, help="No colours, even in a terminal.")
@with_effort
def advise(  # noqa: PLR0913 (one parameter an option)
    *,
    paths: tuple[str, ...],
    form: Format,
    output: str | None,
    workers: tuple[str, ...],
    min_severity: "Severity",
    no_color: bool,
    effort: Effort,
) -> None:
    """Print what to fix, with proof, in the traces below each PATH.

    PATH is a log directory, the folder of one run, or one trace file of any name.

    \b
    stepscope advise log/
    stepscope advise log/resnet50 --worker node1_4711
    stepscope advise trace.json.gz --format markdown --output advice.md
    stepscope advise log/ --format json | jq '.runs[].outcomes[] | select(.status == "found")'

    The exit status is 2 where nothing could be read, else 0.
    """
    from stepscope.render import words

    choice = Choice(
        format=form,
        workers=workers,
        min_severity=min_severity,
        is_coloured=not (no_color or output) and is_coloured(),
    )
    report = _report(paths, choice, effort)
    for line in words.problems(report):
        click.echo(f"stepscope: {line}", err=True)
    if report.runs or form == "json":
        write(_rendered(report, choice), output)
    if not report.runs:
        raise click.exceptions.Exit(NOTHING_READ)


def _report(paths: Sequence[str], choice: Choice, effort: Effort) -> "Report":
    """Read and advise file by file, and keep what was asked for."""
    from stepscope._version import __version__
    from stepscope.errors import UnreadableError
    from stepscope.readers.tasks import advise, analyse
    from stepscope.report import Report

    settings = effort.settings()
    files, problems = files_at(paths)
    files = Selection(workers=choice.workers).of(files)
    steps: tuple[Step, ...] = (("analysing", analyse), ("advising", advise))
    outcomes = read([order_for(file, steps, settings) for file in files], settings)
    reports: dict[str, tuple[str, list[RecordingAdvice]]] = {}
    for file, outcome in zip(files, outcomes, strict=True):
        if isinstance(outcome, UnreadableError):
            problems.append(outcome)
        else:
            reports.setdefault(file.folder, (file.run, []))[1].append(outcome.prepared)
    show_tracebacks(problems)
    return Report(
        runs=tuple(_narrowed(_run(*run), choice.min_severity) for run in reports.values()),
        problems=as_problems(problems),
        version=__version__,
    )


def _run(name: str, recordings: "Sequence[RecordingAdvice]") -> "RunReport":
    from stepscope.advice import merged

    return merged(name, recordings)


def _narrowed(run: "RunReport", least: "Severity") -> "RunReport":
    """Leave out findings that are less serious than asked for."""
    import msgspec

    wanted = SEVERITIES[: SEVERITIES.index(least) + 1]
    outcomes = tuple(
        outcome
        for outcome in run.outcomes
        if outcome.status != "found" or outcome.severity in wanted
    )
    return msgspec.structs.replace(run, outcomes=outcomes)


def _rendered(report: "Report", choice: Choice) -> str:
    from stepscope.render import json, markdown, text

    match choice.format:
        case "json":
            return json.render(report)
        case "markdown":
            return markdown.render(report)
    # The problems have just been told on standard error.
    import msgspec

    told = msgspec.structs.replace(report, problems=())
    return text.render(told, width=width(), is_coloured=choice.is_coloured)
