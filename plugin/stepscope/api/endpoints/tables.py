"""Public tables: their list, tables of a trace, and tables of a run."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec

from stepscope.api.endpoint import (
    Endpoint,
    Group,
    GroupsEndpoint,
    Query,
    RunQuery,
    TimeRangeQuery,
    catalog_endpoint,
    run_entries,
    trace_endpoint,
)
from stepscope.api.messages import Response, Table
from stepscope.api.public_tables import DEFAULT_LIMIT, MOST_ROWS, RowOrder, shown_table
from stepscope.base.errors import UsageError
from stepscope.catalog.catalog import Catalog
from stepscope.model.table import RunTable
from stepscope.model.trace import Trace
from stepscope.tables import all_tables, find

RowCount = Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS)]


class TableQuery(TimeRangeQuery, frozen=True, kw_only=True):
    """A table of a trace, and its rows."""

    name: str
    """The table's name in `stepscope export --list`, such as `kernel-events`."""
    sort: str = ""
    """The sort column; empty: the table's order."""
    descending: bool = True
    """Whether the largest come first."""
    limit: RowCount = DEFAULT_LIMIT
    """Maximum number of rows."""
    search: str = ""
    """Text in any column of texts, ignoring case; empty: all rows."""


class RunTableQuery(RunQuery, frozen=True, kw_only=True):
    """The run, and the rows of its table."""

    sort: str = ""
    """The sort column; empty: the table's order."""
    descending: bool = True
    """Whether the largest come first."""
    limit: RowCount = DEFAULT_LIMIT
    """Maximum number of rows."""
    search: str = ""
    """Text in any column of texts, ignoring case; empty: all rows."""


class TableInfo(msgspec.Struct, frozen=True):
    """One public table."""

    name: str
    title: str
    meaning: str
    """Subject of a row and purpose of the table."""
    is_of_run: bool
    """True for a table of all traces of a run."""
    columns: tuple[str, ...]


class Tables(Response, frozen=True, kw_only=True):
    """All public tables."""

    tables: tuple[TableInfo, ...]


def listed(_: Catalog, __: Query) -> Tables:
    """Return all public tables with their columns."""
    return Tables(
        tables=tuple(
            TableInfo(
                name=name,
                title=table.title,
                meaning=table.meaning,
                is_of_run=isinstance(table, RunTable),
                columns=tuple(column.name for column in table.schema),
            )
            for name, table in all_tables().items()
        ),
    )


def of_trace(trace: Trace, query: TableQuery) -> Table:
    """Return a public table of the trace: its first rows by a sort column.

    Raises:
        UsageError: the table does not exist, or belongs to runs.
    """
    table = find(query.name)
    if isinstance(table, RunTable):
        msg = f"{query.name} is a table of a run: request runs/<run>/tables/{query.name}"
        raise UsageError(msg)
    return shown_table(table, table.build(trace), _order(query), trace)


def _of_run(table: RunTable[Any]) -> Callable[[Mapping[str, Group[Any]], RunTableQuery], Table]:
    def rows(groups: Mapping[str, Group[Any]], query: RunTableQuery) -> Table:
        return shown_table(table, table.build(groups[query.run].parts), _order(query))

    return rows


def _order(query: TableQuery | RunTableQuery) -> RowOrder:
    return RowOrder(
        key=query.sort,
        is_descending=query.descending,
        limit=query.limit,
        search=query.search,
    )


def _run_tables() -> tuple[Endpoint, ...]:
    """Return an endpoint per table of a run, because they use different parts of a trace."""
    return tuple(
        GroupsEndpoint(
            path=f"runs/<run>/tables/{name}",
            meaning=table.meaning,
            query=RunTableQuery,
            response=Table,
            part=table.part,
            entries=run_entries,
            handler=_of_run(table),
        )
        for name, table in all_tables().items()
        if isinstance(table, RunTable)
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    catalog_endpoint("tables", listed),
    trace_endpoint("tables/<name>", of_trace),
    *_run_tables(),
)
