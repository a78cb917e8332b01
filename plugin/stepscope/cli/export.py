"""`stepscope export`: write tables as CSV, JSON or Parquet."""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.cli import completion
from stepscope.cli.file_reading import Effort, with_effort
from stepscope.cli.output import is_coloured, print_content, width
from stepscope.cli.selection import Selection, with_selection
from stepscope.cli.table_reading import TableRequest, print_problems, read_tables

if TYPE_CHECKING:
    from stepscope.render.table_export import Form, GatheredTable

INCOMPLETE = 1
NOTHING_WRITTEN = 2
TO_STDOUT = "-"


@dataclass(frozen=True, kw_only=True)
class ExportRequest(TableRequest):
    """The tables to write, their form and their file or folder."""

    output: str


@click.command(short_help="Write tables of the traces below PATH as CSV, JSON or Parquet.")
@click.argument("paths", metavar="PATH...", nargs=-1, shell_complete=completion.files)
@click.option(
    "--table",
    "names",
    multiple=True,
    metavar="NAME",
    help="Write this table; repeatable.",
    shell_complete=completion.tables,
)
@click.option("--all", "is_all", is_flag=True, help="Write every table.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json", "parquet"]),
    default="csv",
    show_default=True,
    help="File format; Parquet needs `pip install 'stepscope[parquet]'`.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE|FOLDER",
    default=TO_STDOUT,
    help="Write to this file (one table) or folder (several).  [default: standard output]",
)
@click.option("--list", "is_list", is_flag=True, help="List the tables and exit.")
@click.option(
    "--describe",
    metavar="NAME",
    help="Describe the columns of a table and exit.",
    shell_complete=completion.tables,
)
@with_selection
@with_effort
def export(  # noqa: PLR0913 (one parameter per option)
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
    """Write tables of the traces below each PATH, with exact numbers and their units.

    A table begins with the columns run, worker, span and rank. Times are integer nanoseconds;
    unknown values are empty (CSV) or null.

    \b
    stepscope export --list                           # all tables
    stepscope export --describe operators             # columns, units, meanings
    stepscope export log/ --table operators -o operators.csv
    stepscope export log/ --table kernels --format json | jq '.rows[0]'
    stepscope export log/ --table operators --table kernels --format parquet -o tables/

    In CSV, text that a spreadsheet would read as a formula gets an apostrophe. Traces that cannot
    have a table are listed on standard error, with the code that records the missing data.

    The exit status is 0 on success, 1 if one of the tables is missing, and 2 if all are.
    """
    if is_list or describe:
        as_json = form == "json"
        click.echo(
            _table_description(describe, as_json) if describe else _table_list(as_json),
            nl=False,
            color=True,
        )
        return
    request = _request(paths, names, form, output, is_all=is_all)
    with tempfile.TemporaryDirectory(prefix="stepscope-", ignore_cleanup_errors=True) as folder:
        tables, problems = read_tables(paths, request, selection, effort, folder)
        print_problems(tables, problems)
        complete = [table for table in tables if table.rows]
        _write(complete, request)
    if not complete:
        raise click.exceptions.Exit(NOTHING_WRITTEN)
    if len(complete) < len(tables):
        raise click.exceptions.Exit(INCOMPLETE)


def _request(
    paths: Sequence[str], names: tuple[str, ...], form: "Form", output: str, *, is_all: bool
) -> ExportRequest:
    from stepscope.render import table_parquet
    from stepscope.tables import all_tables, find

    selected = tuple(all_tables()) if is_all else tuple(dict.fromkeys(names))
    if not selected:
        msg = "give a table with --table; `stepscope export --list` shows all tables"
        raise click.UsageError(msg)
    for name in selected:
        find(name)
    if not paths:
        msg = "give a PATH: a log directory, a run's folder, or a trace file"
        raise click.UsageError(msg)
    if output == TO_STDOUT and len(selected) > 1:
        msg = "several tables need a folder: --output FOLDER"
        raise click.UsageError(msg)
    if form == "parquet":
        table_parquet.require()
        if output == TO_STDOUT and sys.stdout.isatty():
            msg = "Parquet cannot be printed: --output FILE"
            raise click.UsageError(msg)
    return ExportRequest(names=selected, form=form, output=output)


def _write(tables: "Sequence[GatheredTable]", request: ExportRequest) -> None:
    from stepscope.render import table_export

    if request.output == TO_STDOUT:
        for table in tables:
            print_content(
                partial(table_export.write, table, request.form), is_text=request.form != "parquet"
            )
        return
    target = Path(request.output)
    is_folder = len(request.names) > 1 or target.is_dir() or request.output.endswith(("/", "\\"))
    if is_folder:
        target.mkdir(parents=True, exist_ok=True)
    for table in tables:
        path = target / f"{table.name}.{request.form}" if is_folder else target
        table_export.write_file(table, request.form, path)


def _table_list(as_json: bool) -> str:  # noqa: FBT001
    from stepscope.render import table_json, table_listing
    from stepscope.tables import all_tables

    if as_json:
        return table_json.table_list(all_tables())
    return table_listing.table_list(all_tables(), width=width(), is_coloured=is_coloured())


def _table_description(name: str, as_json: bool) -> str:  # noqa: FBT001
    from stepscope.render import table_json, table_listing
    from stepscope.render.table_export import schema_of
    from stepscope.tables import find

    table = find(name)
    if as_json:
        return table_json.table_list({name: table})
    return table_listing.table_description(
        name, table, schema_of(table), width=width(), is_coloured=is_coloured()
    )
