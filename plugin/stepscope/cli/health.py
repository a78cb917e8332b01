"""`stepscope health`: what the files are worth, before anything is made of them."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from stepscope.cli.file_reading import Effort, order_for, read, with_effort
from stepscope.cli.input_files import as_problems, files_at, show_tracebacks
from stepscope.cli.output import Printing, width, with_printing

if TYPE_CHECKING:
    from stepscope.base.config import Settings
    from stepscope.base.report import FileHealth, HealthReport
    from stepscope.readers.requests import ReadRequest
    from stepscope.storage.discover import TraceFile

DAMAGED = 1
NOTHING_READ = 2


@click.command(short_help="Print what the traces below PATH are worth, and what to record next.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@with_printing("JSON is one object with the fields of `advise`.")
@click.option(
    "--fail-on",
    type=click.Choice(["damage"]),
    help="Exit with 1 where damage makes a figure unreliable, or a file cannot be read.",
)
@with_effort
def health(
    *,
    paths: tuple[str, ...],
    printing: Printing,
    fail_on: str | None,
    effort: Effort,
) -> None:
    """Print what each trace below each PATH is worth, and what to record next time.

    PATH is a log directory, the folder of one run, or one trace file of any name.

    Of each file: what was read; what is damaged or missing, how often, at which byte of the
    (inflated) JSON, and what was done about it; which rules and figures that makes unreliable;
    what was not recorded, and one call of torch.profiler.profile that records it all.

    \b
    critical   figures that rest on it mean nothing; rules that do are withheld
    warning    they are in doubt; rules have low confidence
    info       they stand as they are

    \b
    stepscope health log/
    stepscope health trace.json.gz --format markdown --output health.md
    stepscope health log/ --fail-on damage              # in CI, before `advise`
    stepscope health log/ --format json | jq '.files[].health[] | select(.effect != "none")'

    The exit status is 2 where nothing could be read, 1 where --fail-on asks for it, else 0.
    """
    from stepscope.render import phrases

    report = _report(paths, effort)
    for line in phrases.problems(report):
        click.echo(f"stepscope: {line}", err=True)
    if report.files or printing.form == "json":
        printing.write(_rendered(report, printing))
    if not report.files:
        raise click.exceptions.Exit(NOTHING_READ)
    if fail_on and (report.problems or any(map(_is_damaged, report.files))):
        raise click.exceptions.Exit(DAMAGED)


def _report(paths: Sequence[str], effort: Effort) -> "HealthReport":
    """Read each file, look at it, and keep nothing else of it."""
    from stepscope._version import __version__
    from stepscope.base.errors import UnreadableError
    from stepscope.base.report import HealthReport

    settings = effort.settings()
    files, problems = files_at(paths)
    found: dict[str, list[FileHealth]] = {}
    outcomes = read([_order(file, settings) for file in files], settings)
    for file, outcome in zip(files, outcomes, strict=True):
        if isinstance(outcome, UnreadableError):
            problems.append(outcome)
        else:
            found.setdefault(file.folder, []).append(outcome.prepared)
    show_tracebacks(problems)
    return HealthReport(
        files=tuple(each for run in found.values() for each in _of_run(run)),
        problems=as_problems(problems),
        version=__version__,
    )


def _order(file: "TraceFile", settings: "Settings") -> "ReadRequest":
    from stepscope.readers.tasks import judge

    order = order_for(file, (), settings)
    size = order.stamp.size_bytes if order.stamp else 0
    task = functools.partial(judge, run=file.run, file_bytes=size)
    return dataclasses.replace(order, steps=(("analysing", task),))


def _of_run(files: "Sequence[FileHealth]") -> "tuple[FileHealth, ...]":
    from stepscope.advice.duplicate_ranks import with_duplicates

    return with_duplicates(files)


def _is_damaged(file: "FileHealth") -> bool:
    """Tell whether damage makes any figure unreliable; what was only not recorded is none."""
    return any(item.nature == "damage" and item.effect != "none" for item in file.health)


def _rendered(report: "HealthReport", printing: Printing) -> str:
    from stepscope.render import health_report, json

    match printing.form:
        case "json":
            return json.render(report)
        case "markdown":
            return health_report.markdown(report)
    # The problems have just been told on standard error.
    import msgspec

    told = msgspec.structs.replace(report, problems=())
    return health_report.text(told, width=width(), is_coloured=printing.is_coloured)
