"""`stepscope memory`: print the memory use of a trace, a snapshot or a timeline."""

import functools
from typing import TYPE_CHECKING

import click

from stepscope.cli import completion
from stepscope.cli.file_reading import Effort, read, request_to, result_of, with_local_effort
from stepscope.cli.input_files import files_at
from stepscope.cli.output import Printing, width, with_printing

if TYPE_CHECKING:
    from stepscope.analyses.memory.memory_report import MemoryReport
    from stepscope.base.config import Settings


@click.command(short_help="Print the memory use of a trace, a snapshot or a timeline.")
@click.argument("path", metavar="PATH", shell_complete=completion.files)
@with_printing("JSON and CSV have every column, with exact numbers.", "csv")
@click.option("--table", metavar="NAME", help="Write this table as CSV.  [default: the first]")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Rows to print of each table.",
)
@with_local_effort
def memory(
    *,
    path: str,
    printing: Printing,
    table: str | None,
    top: int,
    effort: Effort,
) -> None:
    """Print peak memory with its owners, its growth, and unused reserved memory.

    PATH is one of these files, gzipped or not. Code in a pickle is never run: only plain values
    are read.

    \b
    A trace, with the operators and modules that allocate:
      with torch.profiler.profile(profile_memory=True, with_stack=True,
              record_shapes=True, on_trace_ready=torch.profiler
              .tensorboard_trace_handler("log/run")) as prof:
          ...                                  # prof.step() after each step

    \b
    A snapshot of the CUDA allocator, with its segments and its history:
      torch.cuda.memory._record_memory_history(max_entries=100_000)
      ...
      torch.cuda.memory._dump_snapshot("snapshot.pickle")

    \b
    A timeline, by parameters, activations, gradients (deprecated in torch):
      prof.export_memory_timeline("memory.json.gz", device="cuda:0")
      prof.export_memory_timeline("memory.raw.json.gz", device="cuda:0")

    \b
    stepscope memory log/run/worker.pt.trace.json.gz
    stepscope memory snapshot.pickle --top 30
    stepscope memory snapshot.pickle --format csv --table holders > holders.csv

    The exit status is 0 on success, and 2 if the file has no memory data.
    """
    if table is not None and printing.form != "csv":
        msg = "--table needs --format csv"
        raise click.UsageError(msg)
    report = _report(path, top, effort.settings())
    printing.write(_rendered(report, printing, table))


def _rendered(report: "MemoryReport", printing: Printing, table: str | None) -> str:
    from stepscope.render import memory_report as rendered

    match printing.form:
        case "json":
            return rendered.json(report)
        case "markdown":
            return rendered.markdown(report)
        case "csv":
            return rendered.csv(report, table or report.tables[0].name)
    return rendered.text(report, width=width(), is_coloured=printing.is_coloured)


def _report(path: str, most_rows: int, settings: "Settings") -> "MemoryReport":
    from stepscope import storage
    from stepscope.analyses.memory import file_reports as memory_file_reports
    from stepscope.ingest import memory_files
    from stepscope.model.frames.memory_snapshot import snapshot_of
    from stepscope.model.frames.memory_timeline import timeline_of

    document = None if storage.is_folder(path) else memory_files.read(path)
    if document is None:
        return _of_trace(path, most_rows, settings)
    if document.what == "timeline":
        timeline = timeline_of(document)
        return memory_file_reports.report_of_timeline(timeline, most_rows=most_rows)
    snapshot = snapshot_of(document.content, path)
    return memory_file_reports.report_of_snapshot(snapshot, most_rows=most_rows)


def _of_trace(path: str, most_rows: int, settings: "Settings") -> "MemoryReport":
    """Return the report of a trace.

    Raises:
        UsageError: The path has several traces, or memory was not recorded.
    """
    from stepscope.analyses.memory.memory_report import report_of_trace
    from stepscope.base.errors import MissingDataError, UnreadableError, UsageError

    files, problems = files_at((path,))
    if problems:
        raise problems[0]
    if len(files) > 1:
        message = f"{path} has {len(files)} traces: specify one, such as {files[0].path}"
        raise UsageError(message)
    task = functools.partial(report_of_trace, most_rows=most_rows)
    (outcome,) = read([request_to(task, files[0], settings)], settings)
    if isinstance(outcome, UnreadableError):
        if isinstance(outcome.__cause__, MissingDataError):
            missing = outcome.__cause__
            message = f"{path}: {missing.reason}. To record it: {missing.remedy}"
            raise UsageError(message)
        raise outcome
    report: MemoryReport = result_of(files[0], outcome)
    return report
