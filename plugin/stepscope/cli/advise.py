"""`stepscope advise`: what to fix, as text, JSON or Markdown."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from stepscope.discover import TraceFile
    from stepscope.errors import UnreadableError
    from stepscope.ingest.reader import Progress
    from stepscope.read import FileProgress
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
def advise(  # noqa: PLR0913 (one parameter an option)
    *,
    paths: tuple[str, ...],
    form: Format,
    output: str | None,
    workers: tuple[str, ...],
    min_severity: "Severity",
    no_color: bool,
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
        is_coloured=not (no_color or output) and _is_coloured(),
    )
    report = _report(paths, choice)
    for line in words.problems(report):
        click.echo(f"stepscope: {line}", err=True)
    if report.runs or form == "json":
        _write(_rendered(report, choice), output)
    if not report.runs:
        raise click.exceptions.Exit(NOTHING_READ)


def _is_coloured() -> bool:
    """Tell whether standard output is a terminal that wants colour (NO_COLOR, TERM)."""
    from rich.console import Console

    console = Console()
    return console.is_terminal and not console.no_color and console.color_system is not None


def _report(paths: Sequence[str], choice: Choice) -> "Report":
    """Read, advise, and keep what was asked for."""
    from stepscope._version import __version__
    from stepscope.advice import advise_each
    from stepscope.read import read_runs
    from stepscope.report import Problem, Report

    files, problems = _files(paths)
    with _progress() as progress:
        reading = read_runs(_of_workers(files, choice.workers), progress)
        advised = [advise_each(run) for run in reading.runs]
    problems += (*reading.problems, *(error for _, failed in advised for error in failed))
    _show_tracebacks(problems)
    return Report(
        runs=tuple(_narrowed(run, choice.min_severity) for run, _ in advised if run.workers),
        problems=tuple(
            Problem(path=error.path, message=error.message, remedy=error.remedy)
            for error in problems
        ),
        version=__version__,
    )


def _show_tracebacks(problems: "Sequence[UnreadableError]") -> None:
    """With `--traceback`, show where a failure that nobody foresaw came from."""
    import traceback

    if click.get_current_context().find_root().params["traceback"]:
        for error in problems:
            if error.__cause__ is not None:
                traceback.print_exception(error.__cause__)


def _files(paths: Sequence[str]) -> "tuple[list[TraceFile], list[UnreadableError]]":
    from stepscope import discover, storage
    from stepscope.errors import UnreadableError

    files: dict[str, TraceFile] = {}
    """By real path: a file that several paths lead to counts once."""
    problems: list[UnreadableError] = []
    for path in paths:
        try:
            for file in discover.at(path):
                files.setdefault(storage.real_path(file.path), file)
        except UnreadableError as problem:
            problems.append(problem)
    return discover.arranged(files.values()), problems


def _of_workers(files: "list[TraceFile]", workers: Sequence[str]) -> "list[TraceFile]":
    from stepscope.errors import UsageError

    if not workers or not files:
        return files
    known = sorted({file.worker for file in files})
    if unknown := sorted(set(workers) - set(known)):
        msg = f"there is no worker {unknown[0]!r}; there is {', '.join(known)}"
        raise UsageError(msg)
    return [file for file in files if file.worker in workers]


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
    return text.render(told, width=_width(), is_coloured=choice.is_coloured)


def _width() -> int:
    """Return the terminal's width within reason; 80 where there is none."""
    from rich.console import Console

    console = Console()
    return max(40, min(console.width, 120)) if console.is_terminal else 80


def _write(text: str, output: str | None) -> None:
    if output is None:
        click.echo(text, nl=False, color=True)
    else:
        Path(output).write_text(text, encoding="utf-8")


@contextmanager
def _progress() -> "Iterator[FileProgress]":
    """Show how far reading has come, on standard error, where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn
    from rich.progress import Progress as Bar

    from stepscope.addresses import shown
    from stepscope.render.words import plain

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def told(bytes_done: int, bytes_total: int, _events: int) -> None:
            bar.update(task, completed=bytes_done, total=bytes_total)

        def begun(file: "TraceFile") -> "Progress":
            bar.reset(task, total=None, description=plain(shown(file.path)))
            return told

        yield begun
