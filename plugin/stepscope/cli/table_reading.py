"""Reading of tables by commands: of the traces below paths, into files of rows."""

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.cli.file_reading import Effort, read, request_to, result_of
from stepscope.cli.input_files import as_problems, files_at, show_tracebacks
from stepscope.cli.output import write_message
from stepscope.cli.selection import Selection

if TYPE_CHECKING:
    from stepscope.base.config import Settings
    from stepscope.base.errors import UnreadableError
    from stepscope.readers.requests import ReadRequest, ReadResult
    from stepscope.render.table_export import Form, GatheredTable, TableResult
    from stepscope.storage.discover import TraceFile


@dataclass(frozen=True, kw_only=True)
class TableRequest:
    """Names of tables, and the form of their rows."""

    names: tuple[str, ...]
    form: "Form"


def read_tables(
    paths: Sequence[str], request: TableRequest, selection: Selection, effort: Effort, folder: str
) -> "tuple[list[GatheredTable], list[UnreadableError]]":
    """Return the tables, reading files one by one; rows are written to the folder."""
    from stepscope.base.errors import UnreadableError
    from stepscope.render.table_export import gather

    settings = effort.settings()
    files, problems = files_at(paths)
    files = selection.of(files)
    results: dict[str, list[tuple[str, TableResult]]] = {name: [] for name in request.names}
    requests = [_read_request(file, request, settings, folder) for file in files]
    outcomes = read(requests, settings, functools.partial(_with_stored_rows, folder=folder))
    for file, outcome in zip(files, outcomes, strict=True):
        if isinstance(outcome, UnreadableError):
            problems.append(outcome)
            continue
        for name, result in result_of(file, outcome).items():
            results[name].append((file.run, result))
    tables = [gather(name, of_name, request.form, folder) for name, of_name in results.items()]
    return tables, problems


def _read_request(
    file: "TraceFile", request: TableRequest, settings: "Settings", folder: str
) -> "ReadRequest":
    from stepscope.readers.tasks import tabulate
    from stepscope.render.table_export import Request

    table_request = Request(
        tables=request.names,
        form=request.form,
        run=file.run,
        folder=folder,
        is_sent=bool(settings.scheduler),
    )
    task = functools.partial(tabulate, request=table_request)
    return request_to(task, file, settings)


def _with_stored_rows(result: "ReadResult", folder: str) -> "ReadResult":
    """Write rows that came from a cluster to the folder."""
    from stepscope.render import table_export

    prepared = result.prepared
    tables = table_export.store_sent_rows(prepared.result, folder)
    return dataclasses.replace(result, prepared=dataclasses.replace(prepared, result=tables))


def print_problems(tables: "Iterable[GatheredTable]", problems: "list[UnreadableError]") -> None:
    """Print missing tables and unreadable files to standard error."""
    from stepscope.base.report import Report
    from stepscope.render import phrases, table_listing

    tables = list(tables)
    failed = {str(error): error for table in tables for error in table.failed}
    problems = [*problems, *failed.values()]
    show_tracebacks(problems)
    for line in phrases.problems(Report(runs=(), problems=as_problems(problems))):
        write_message(line)
    for table in tables:
        for line in table_listing.withheld_lines(table.name, table.withheld):
            write_message(line)
