"""`stepscope health`: check trace files for damage and missing data."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from stepscope.cli import completion
from stepscope.cli.file_reading import Effort, read, request_for, with_effort
from stepscope.cli.input_files import as_problems, files_at, show_tracebacks
from stepscope.cli.output import Printing, width, with_printing, write_message

if TYPE_CHECKING:
    from stepscope.base.config import Settings
    from stepscope.base.report import FileHealth, HealthReport
    from stepscope.readers.requests import ReadRequest
    from stepscope.storage.discover import TraceFile

DAMAGED = 1
NOTHING_READ = 2


@click.command(short_help="Check the traces below PATH for damage and missing data.")
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, shell_complete=completion.files
)
@with_printing("JSON is one object with the fields of `advise`.")
@click.option(
    "--fail-on",
    type=click.Choice(["damage"]),
    help="Exit with 1 if damage makes a figure unreliable, or a file cannot be read.",
)
@with_effort
def health(
    *,
    paths: tuple[str, ...],
    printing: Printing,
    fail_on: str | None,
    effort: Effort,
) -> None:
    """Print damage and missing data of the traces below each PATH, and how to record more.

    PATH is a log directory, the folder of one run, or one trace file of any name.

    For each file: its size and producer; damaged or missing events, their number and position (a
    byte of the inflated JSON), and how they were repaired; the rules and figures that are
    unreliable because of it; data that was not recorded, and a call of torch.profiler.profile that
    records it.

    \b
    critical   affected figures are meaningless, and rules are inconclusive
    warning    affected figures may be wrong, and rules have low confidence
    info       figures are reliable

    \b
    stepscope health log/
    stepscope health trace.json.gz --format markdown --output health.md
    stepscope health log/ --fail-on damage              # in CI, before `advise`
    stepscope health log/ --format json | jq '.files[].health[] | select(.effect != "none")'

    The exit status is 0 on success, 1 if --fail-on applies, and 2 if nothing could be read.
    """
    from stepscope.render import phrases

    report = _report(paths, effort)
    for line in phrases.problems(report):
        write_message(line)
    if report.files or printing.form == "json":
        printing.write(_rendered(report, printing))
    if not report.files:
        raise click.exceptions.Exit(NOTHING_READ)
    if fail_on and (report.problems or any(map(_is_damaged, report.files))):
        raise click.exceptions.Exit(DAMAGED)


def _report(paths: Sequence[str], effort: Effort) -> "HealthReport":
    """Return the health of all files, reading files one by one."""
    from stepscope._version import __version__
    from stepscope.advice.duplicate_ranks import with_duplicates
    from stepscope.base.errors import UnreadableError
    from stepscope.base.report import HealthReport

    settings = effort.settings()
    files, problems = files_at(paths)
    by_folder: dict[str, list[FileHealth]] = {}
    outcomes = read([_request(file, settings) for file in files], settings)
    for file, outcome in zip(files, outcomes, strict=True):
        if isinstance(outcome, UnreadableError):
            problems.append(outcome)
        else:
            by_folder.setdefault(file.folder, []).append(outcome.prepared)
    show_tracebacks(problems)
    return HealthReport(
        files=tuple(file for run in by_folder.values() for file in with_duplicates(run)),
        problems=as_problems(problems),
        version=__version__,
    )


def _request(file: "TraceFile", settings: "Settings") -> "ReadRequest":
    from stepscope.readers.tasks import judge

    request = request_for(file, (), settings)
    size = request.stamp.size_bytes if request.stamp else 0
    task = functools.partial(judge, run=file.run, file_bytes=size)
    return dataclasses.replace(request, steps=(("analysing", task),))


def _is_damaged(file: "FileHealth") -> bool:
    """Return whether damage makes a figure unreliable; missing data is not damage."""
    return any(item.nature == "damage" and item.effect != "none" for item in file.health)


def _rendered(report: "HealthReport", printing: Printing) -> str:
    from stepscope.render import health_report, json

    match printing.form:
        case "json":
            return json.render(report)
        case "markdown":
            return health_report.markdown(report)
    import msgspec

    report = msgspec.structs.replace(report, problems=())  # already printed to standard error
    return health_report.text(report, width=width(), is_coloured=printing.is_coloured)
