"""`stepscope query`: an SQL query over the tables of traces."""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Literal

import click

from stepscope.cli import completion
from stepscope.cli.file_reading import Effort, with_effort
from stepscope.cli.options import MOST_SECONDS, NumberRange, with_options
from stepscope.cli.output import is_coloured, print_content, width, write_message
from stepscope.cli.selection import Selection, with_selection
from stepscope.cli.table_reading import TableRequest, print_problems, read_tables

if TYPE_CHECKING:
    from stepscope.queries.execution import QueryLimits, QueryResult

Form = Literal["text", "csv", "json", "parquet"]
TEXT_ROWS = 40
"""Rows of text by default."""
MOST_ROWS = 1_000_000
MOST_BYTES = 2**30
MEMORY_SHARE = 0.5
"""Fraction of the memory limit of traces, none of which is read meanwhile."""
TO_STDOUT = "-"
NOTHING_READ = 2


@dataclass(frozen=True, kw_only=True)
class QueryOutput:
    """The output options, and the limits of a query."""

    form: Form
    output: str
    limit: int | None
    timeout: float

    @property
    def row_count(self) -> int:
        """The maximum number of rows."""
        return self.limit or (TEXT_ROWS if self.form == "text" else MOST_ROWS)


with_output = with_options(
    "output",
    QueryOutput,
    click.option(
        "--format",
        "form",
        type=click.Choice(["text", "csv", "json", "parquet"]),
        default="text",
        show_default=True,
        help="Form of the rows.",
    ),
    click.option(
        "-o",
        "--output",
        metavar="FILE",
        default=TO_STDOUT,
        help="Write to this file.  [default: standard output]",
    ),
    click.option(
        "--limit",
        type=click.IntRange(min=1, max=MOST_ROWS),
        help=f"Maximum number of rows.  [default: {TEXT_ROWS} as text, else {MOST_ROWS:,}]",
    ),
    click.option(
        "--timeout",
        type=NumberRange(min=0, min_open=True, max=MOST_SECONDS),
        metavar="SECONDS",
        default=60,
        show_default=True,
        help="Maximum time of the query, after the traces are read.",
    ),
)


@click.command(short_help="Run an SQL query over the tables of the traces below PATH.")
@click.argument("paths", metavar="PATH...", nargs=-1, shell_complete=completion.files)
@click.argument("sql", metavar="QUERY", required=False)
@with_output
@click.option("--list", "is_list", is_flag=True, help="List the tables and exit.")
@click.option(
    "--describe",
    metavar="NAME",
    help="Describe the columns of a table and exit.",
    shell_complete=completion.tables,
)
@with_selection
@with_effort
def query(  # noqa: PLR0913 (one parameter per option)
    *,
    paths: tuple[str, ...],
    sql: str | None,
    output: QueryOutput,
    is_list: bool,
    describe: str | None,
    selection: Selection,
    effort: Effort,
) -> None:
    """Run an SQL query over the tables of the traces below each PATH, with DuckDB.

    Needs `pip install "stepscope[sql]"`. A table has the columns and units of `stepscope export`;
    its name has _ for -. It begins with the columns run, worker, span and rank, and has the rows
    of all traces. Only the tables that the query names are computed.

    \b
    stepscope query --list                        # all tables
    stepscope query --describe kernels            # columns, units, meanings
    stepscope query log/ "select name, total_ns / 1e6 as ms from kernels order by ms desc limit 5"
    stepscope query log/ "select run, avg(duration_ns) / 1e6 as step_ms from steps group by run"
    stepscope query log/ "from idle where longest_ns > 1e6" --format csv -o idle.csv

    A query is one statement that reads: SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE, SHOW, or
    EXPLAIN of one of them. It can neither read nor write files, and has no network.

    The exit status is 0 on success, and 2 if the query fails or a table that it names has no rows
    because no trace recorded the data; the message names the code that records it.
    """
    if is_list or describe:
        click.echo(
            _table_description(describe) if describe else _table_list(), nl=False, color=True
        )
        return
    _check(paths, sql, output)
    result = _run(paths, sql or "", output, selection, effort)
    _write(result, sql or "", output)


def _check(paths: Sequence[str], sql: str | None, output: QueryOutput) -> None:
    from stepscope.queries.statement import require

    if not paths or sql is None:
        msg = "give a PATH and a query: stepscope query log/ 'select * from steps'"
        raise click.UsageError(msg)
    require()
    if output.form == "parquet" and output.output == TO_STDOUT and sys.stdout.isatty():
        msg = "Parquet cannot be printed: --output FILE"
        raise click.UsageError(msg)


def _run(
    paths: Sequence[str], sql: str, output: QueryOutput, selection: Selection, effort: Effort
) -> "QueryResult":
    """Check the query on empty tables, read those that it names, and run it."""
    from stepscope.queries.execution import check_query, run_query

    limits = _limits(output, effort)
    names = check_query(sql, limits)
    if not names:
        return run_query(sql, limits)
    request = TableRequest(names=names, form="parquet")
    with tempfile.TemporaryDirectory(prefix="stepscope-", ignore_cleanup_errors=True) as folder:
        tables, problems = read_tables(paths, request, selection, effort, folder)
        print_problems(tables, problems)
        if not all(table.rows for table in tables):
            raise click.exceptions.Exit(NOTHING_READ)
        files = {table.name: [rows.path for rows in table.rows] for table in tables}
        return run_query(sql, limits, files)


def _limits(output: QueryOutput, effort: Effort) -> "QueryLimits":
    from stepscope.queries.execution import QueryLimits

    settings = effort.settings()
    return QueryLimits(
        row_count=output.row_count,
        seconds=output.timeout,
        size_bytes=MOST_BYTES,
        memory_bytes=int(settings.memory_bytes * MEMORY_SHARE),
        threads=settings.jobs,
    )


def _write(result: "QueryResult", sql: str, output: QueryOutput) -> None:
    from stepscope.storage.output_files import atomic_output

    if result.is_cut:
        write_message(_cut_note(result))
    if output.output != TO_STDOUT:
        with atomic_output(output.output) as sink:
            _write_form(result, sql, output, sink)
    else:
        print_content(partial(_write_form, result, sql, output), is_text=output.form != "parquet")


def _cut_note(result: "QueryResult") -> str:
    every = f"{result.row_count:,}" if result.is_counted else f"more than {MOST_ROWS:,}"
    return f"the first {result.rows.num_rows:,} of {every} rows; --limit NUMBER shows more"


def _write_form(result: "QueryResult", sql: str, output: QueryOutput, sink: BinaryIO) -> None:
    from stepscope.render import query_rows

    match output.form:
        case "csv":
            query_rows.write_csv(result.rows, sink)
        case "json":
            query_rows.write_json(result.rows, sink, sql=sql, row_count=result.row_count)
        case "parquet":
            query_rows.write_parquet(result.rows, sink)
        case "text":
            shown = width() if output.output == TO_STDOUT and sys.stdout.isatty() else None
            sink.write(query_rows.text(result.rows, width=shown).encode())


def _table_list() -> str:
    from stepscope.queries.statement import sql_name
    from stepscope.render import table_listing
    from stepscope.tables import all_tables

    tables = {sql_name(name): table for name, table in all_tables().items()}
    return table_listing.table_list(tables, width=width(), is_coloured=is_coloured())


def _table_description(name: str) -> str:
    from stepscope.queries.statement import sql_name, table_names
    from stepscope.render import table_listing
    from stepscope.render.table_export import schema_of
    from stepscope.tables import find

    table = find(table_names().get(name.lower(), name))
    return table_listing.table_description(
        sql_name(name), table, schema_of(table), width=width(), is_coloured=is_coloured()
    )
