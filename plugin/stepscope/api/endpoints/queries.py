"""SQL queries over the public tables, and the names that they may use."""

from typing import Annotated

import msgspec

from stepscope.api import http_errors
from stepscope.api.dispatch import ready
from stepscope.api.endpoint import Endpoint, Query, TimeRangeQuery, catalog_endpoint
from stepscope.api.messages import Response, Table
from stepscope.api.table_queries import QueriedTraces, columns_of, run_table_query, values_of
from stepscope.base.errors import UsageError
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Growing, Queued, Reading
from stepscope.model.table import RunTable
from stepscope.queries import statement
from stepscope.queries.examples import EXAMPLES
from stepscope.render.table_export import schema_of
from stepscope.tables import all_tables


class TableQueryRequest(TimeRangeQuery, frozen=True, kw_only=True):
    """A query, and the traces whose tables it reads."""

    run: str
    """The run's id."""
    sql: Annotated[str, msgspec.Meta(max_length=statement.MOST_CHARACTERS)]
    """One statement that reads, in DuckDB's SQL."""
    trace: str = ""
    """A trace of the run; empty: all of them."""


class QueryRows(Table, frozen=True, kw_only=True):
    """The first rows of a query, in its order."""

    is_counted: bool
    """False: there are more than `all_row_count` rows."""
    notes: tuple[str, ...]
    """Traces whose rows are missing, in sentences."""


class QueryColumn(msgspec.Struct, frozen=True):
    """A column that a query may use."""

    name: str
    """In double quotes where SQL needs them."""
    unit: str
    meaning: str


class QueryTable(msgspec.Struct, frozen=True):
    """A table that a query may use."""

    name: str
    title: str
    is_of_run: bool
    """True for a table of all traces of a run."""
    columns: tuple[QueryColumn, ...]


class QueryExample(msgspec.Struct, frozen=True):
    """A query to start from."""

    title: str
    sql: str


class QueryTables(Response, frozen=True, kw_only=True):
    """The tables of queries, and whether queries can run."""

    is_available: bool
    """False: DuckDB is not installed."""
    install: str
    """The command that installs it."""
    tables: tuple[QueryTable, ...]
    examples: tuple[QueryExample, ...]


def names(_: Catalog, __: Query) -> QueryTables:
    """Return the tables and columns that queries may use, and examples."""
    return QueryTables(
        is_available=statement.is_available(),
        install=statement.INSTALL,
        tables=tuple(
            QueryTable(
                name=statement.sql_name(name),
                title=table.title,
                is_of_run=isinstance(table, RunTable),
                columns=tuple(
                    QueryColumn(statement.quoted(column.name), column.unit, column.meaning)
                    for column in schema_of(table)
                ),
            )
            for name, table in all_tables().items()
        ),
        examples=tuple(QueryExample(example.title, example.sql) for example in EXAMPLES),
    )


def rows(catalog: Catalog, query: TableQueryRequest) -> QueryRows:
    """Return the rows of an SQL query over the tables of a trace, or of all traces of a run.

    Raises:
        UsageError: the trace is not one of the run, or the query cannot run.
    """
    entries = catalog.run(query.run)
    if query.trace:
        if query.trace not in {entry.file.id for entry in entries}:
            msg = "the trace does not belong to the run"
            raise UsageError(msg)
        ready(catalog.file(query.trace))
        entries = catalog.run(query.run)  # the trace may have been released meanwhile
    elif any(isinstance(entry.state, Queued | Reading | Growing) for entry in entries):
        raise http_errors.still_loading(entries[0].file.run)
    traces = QueriedTraces(
        entries=entries,
        trace=query.trace or None,
        start_ns=query.start_ns if query.trace else None,
        end_ns=query.end_ns if query.trace else None,
    )
    outcome = run_table_query(query.sql, traces, catalog.settings)
    columns = columns_of(outcome)
    result = outcome.result
    return QueryRows(
        columns=columns,
        row_count=result.rows.num_rows,
        values=values_of(outcome, columns),
        all_row_count=result.row_count if result.is_cut else None,
        empty="The query has no rows.",
        is_counted=result.is_counted,
        notes=outcome.notes,
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    catalog_endpoint("query-tables", names),
    catalog_endpoint("runs/<run>/query", rows, lane="long"),
)
