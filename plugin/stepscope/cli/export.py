"""`stepscope export`: tables as CSV, JSON or Parquet."""

import dataclasses
import functools
import io
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.cli.file_reading import Effort, answer_of, order_to, read, with_effort
from stepscope.cli.input_files import as_problems, files_at, show_tracebacks
from stepscope.cli.output import is_coloured, width
from stepscope.cli.selection import Selection, with_selection

if TYPE_CHECKING:
    from stepscope.base.config import Settings
    from stepscope.base.errors import UnreadableError
    from stepscope.readers.requests import ReadRequest, ReadResult
    from stepscope.render.table_export import Form, GatheredTable, TableResult
    from stepscope.storage.discover import TraceFile

INCOMPLETE = 1
NOTHING_WRITTEN = 2
TO_STDOUT = "-"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which tables are wanted, in which form, and where."""

    names: tuple[str, ...]
    form: "Form"
    output: str


@click.command(short_help="Write tables of the traces below PATH as CSV, JSON or Parquet.")
@click.argument("paths", metavar="PATH...", nargs=-1)
@click.option("--table", "names", multiple=True, metavar="NAME", help="Repeatable.")
@click.option("--all", "is_all", is_flag=True, help="Every table.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json", "parquet"]),
    default="csv",
    show_default=True,
    help="Parquet needs the extra `parquet`.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE|FOLDER",
    default=TO_STDOUT,
    help="A file for one table, a folder for several.  [default: standard output]",
)
@click.option("--list", "is_list", is_flag=True, help="List the tables instead.")
@click.option("--describe", metavar="NAME", help="Describe a table's columns instead.")
@with_selection
@with_effort
def export(  # noqa: PLR0913 (one parameter an option)
    *,
    paths: tuple[str, ...],
    names: tuple[str, ...],
    is_all: bool,
    form: "Form",
    output: str,
    is_list: bool,
    describe: str | None,
    selection: Selection,
    effort: Effort,
) -> None:
    """Write tables of the recordings below each PATH: every number, exact, with its unit.

    A table has a row for each of its things in each recording, and begins with the columns run,
    worker, span and rank. Times are integer nanoseconds; what is not known is empty (CSV) or null.

    \b
    stepscope export --list                                       # all tables
    stepscope export --describe operators                         # columns, units, meanings
    stepscope export log/ --table operators -o operators.csv
    stepscope export log/ --table kernels --format json | jq '.rows[0]'
    stepscope export log/ --table operators --table kernels --format parquet -o tables/

    In CSV, text that a spreadsheet would run as a formula has an apostrophe before it. A recording
    that cannot have a table is told on standard error, with what would record it.

    The exit status is 2 where nothing was written, 1 where one of the tables was not, else 0.
    """
    if is_list or describe:
        as_json = form == "json"
        click.echo(_described(describe, as_json) if describe else _listed(as_json), nl=False)
        return
    wanted = _wanted(paths, names, form, output, is_all=is_all)
    with tempfile.TemporaryDirectory(prefix="stepscope-") as folder:
        tables, problems = _tables(paths, wanted, selection, effort, folder)
        _tell(tables, problems)
        there = [table for table in tables if table.rows]
        _write(there, wanted)
    if not there:
        raise click.exceptions.Exit(NOTHING_WRITTEN)
    if len(there) < len(tables):
        raise click.exceptions.Exit(INCOMPLETE)


def _wanted(
    paths: Sequence[str], names: tuple[str, ...], form: "Form", output: str, *, is_all: bool
) -> Wanted:
    from stepscope.render import table_parquet
    from stepscope.tables import all_tables, find

    chosen = tuple(all_tables()) if is_all else tuple(dict.fromkeys(names))
    if not chosen:
        msg = "name a table with --table; `stepscope export --list` shows them all"
        raise click.UsageError(msg)
    for name in chosen:
        find(name)
    if not paths:
        msg = "name a PATH: a log directory, a run's folder, or a trace file"
        raise click.UsageError(msg)
    if output == TO_STDOUT and len(chosen) > 1:
        msg = "several tables need a folder to go to: --output FOLDER"
        raise click.UsageError(msg)
    if form == "parquet":
        table_parquet.require()
        if output == TO_STDOUT and sys.stdout.isatty():
            msg = "Parquet is nothing for a terminal: --output FILE"
            raise click.UsageError(msg)
    return Wanted(names=chosen, form=form, output=output)


def _tables(
    paths: Sequence[str], wanted: Wanted, selection: Selection, effort: Effort, folder: str
) -> "tuple[list[GatheredTable], list[UnreadableError]]":
    """Read file by file; what each gives goes to files in the folder."""
    from stepscope.base.errors import UnreadableError
    from stepscope.render.table_export import gather

    settings = effort.settings()
    files, problems = files_at(paths)
    files = selection.of(files)
    given: dict[str, list[tuple[str, TableResult]]] = {name: [] for name in wanted.names}
    orders = [_order(file, wanted, settings, folder) for file in files]
    outcomes = read(orders, settings, functools.partial(_landed, folder=folder))
    for file, outcome in zip(files, outcomes, strict=True):
        if isinstance(outcome, UnreadableError):
            problems.append(outcome)
            continue
        for name, each in answer_of(file, outcome).items():
            given[name].append((file.run, each))
    tables = [gather(name, each, wanted.form, folder) for name, each in given.items()]
    return tables, problems


def _order(file: "TraceFile", wanted: Wanted, settings: "Settings", folder: str) -> "ReadRequest":
    from stepscope.readers.tasks import tabulate
    from stepscope.render.table_export import Request

    request = Request(
        tables=wanted.names,
        form=wanted.form,
        run=file.run,
        folder=folder,
        is_sent=bool(settings.scheduler),
    )
    task = functools.partial(tabulate, request=request)
    return order_to(task, file, settings)


def _landed(answer: "ReadResult", folder: str) -> "ReadResult":
    """Put what came from a cluster where what was read here is."""
    from stepscope.render import table_export

    warned = answer.prepared
    given = table_export.store_sent_rows(warned.result, folder)
    return dataclasses.replace(answer, prepared=dataclasses.replace(warned, result=given))


def _tell(tables: "Iterable[GatheredTable]", problems: "list[UnreadableError]") -> None:
    """Say what is not in the files, and why."""
    from stepscope.base.report import Report
    from stepscope.render import phrases, table_listing

    tables = list(tables)
    failed = {str(each): each for table in tables for each in table.failed}
    problems = [*problems, *failed.values()]
    show_tracebacks(problems)
    for line in phrases.problems(Report(runs=(), problems=as_problems(problems))):
        click.echo(f"stepscope: {line}", err=True)
    for table in tables:
        for line in table_listing.withheld_lines(table.name, table.withheld):
            click.echo(f"stepscope: {line}", err=True)


def _write(tables: "Sequence[GatheredTable]", wanted: Wanted) -> None:
    from stepscope.render import table_export

    if wanted.output == TO_STDOUT:
        for table in tables:
            _print(table, wanted.form)
        return
    target = Path(wanted.output)
    is_folder = len(wanted.names) > 1 or target.is_dir() or wanted.output.endswith(("/", "\\"))
    if is_folder:
        target.mkdir(parents=True, exist_ok=True)
    for table in tables:
        path = target / f"{table.name}.{wanted.form}" if is_folder else target
        table_export.write_file(table, wanted.form, path)


def _print(table: "GatheredTable", form: "Form") -> None:
    """Write to standard output; a terminal gets nothing that would act on it."""
    from stepscope.render import phrases, table_export

    if not sys.stdout.isatty():
        table_export.write(table, form, sys.stdout.buffer)
        return
    written = io.BytesIO()
    table_export.write(table, form, written)
    text = written.getvalue().decode().replace("\r\n", "\n")
    click.echo(phrases.plain(text), nl=False)


def _listed(as_json: bool) -> str:  # noqa: FBT001
    from stepscope.render import table_json, table_listing
    from stepscope.tables import all_tables

    if as_json:
        return table_json.table_list(all_tables())
    return table_listing.table_list(all_tables(), width=width(), is_coloured=is_coloured())


def _described(name: str, as_json: bool) -> str:  # noqa: FBT001
    from stepscope.render import table_json, table_listing
    from stepscope.render.table_export import schema_of
    from stepscope.tables import find

    table = find(name)
    if as_json:
        return table_json.table_list({name: table})
    return table_listing.table_description(
        name, table, schema_of(table), width=width(), is_coloured=is_coloured()
    )
