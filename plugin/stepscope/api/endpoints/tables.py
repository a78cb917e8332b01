"""Every public table: of one recording, of a run, and the list of them all."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec

from stepscope.api.endpoint import (
    CatalogEndpoint,
    Endpoint,
    Group,
    GroupsEndpoint,
    Query,
    RunQuery,
    TimeRangeQuery,
    TraceEndpoint,
    run_entries,
)
from stepscope.api.messages import Table
from stepscope.api.public_tables import DEFAULT_LIMIT, MOST_ROWS, RowOrder, shown_table
from stepscope.base.errors import UsageError
from stepscope.base.report import SCHEMA_VERSION
from stepscope.catalog.catalog import Catalog
from stepscope.model.table import RunTable
from stepscope.model.trace import Trace
from stepscope.tables import all_tables, find

RowCount = Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS)]


class Named(TimeRangeQuery, frozen=True, kw_only=True):
    """Which table, and which of its rows."""

    name: str
    """As `stepscope export --list` shows it: `kernel-events`."""
    sort: str = ""
    """The column that decides which rows come first; empty: the table's own order."""
    descending: bool = True
    """Whether the largest come first."""
    limit: RowCount = DEFAULT_LIMIT
    """How many rows are sent at the most."""


class OfRunOrdered(RunQuery, frozen=True, kw_only=True):
    """Which run, and which rows of its table."""

    sort: str = ""
    """The column that decides which rows come first; empty: the table's own order."""
    descending: bool = True
    """Whether the largest come first."""
    limit: RowCount = DEFAULT_LIMIT
    """How many rows are sent at the most."""


class TableInfo(msgspec.Struct, frozen=True):
    """One public table."""

    name: str
    title: str
    meaning: str
    """What a row is, and what the table tells."""
    is_of_run: bool
    """True where it is of all recordings of a run together."""
    columns: tuple[str, ...]


class Tables(msgspec.Struct, frozen=True):
    """Every public table."""

    schema: int
    tables: tuple[TableInfo, ...]


def listed(_: Catalog, __: Query) -> Tables:
    """Answer with the list of all tables."""
    return Tables(
        schema=SCHEMA_VERSION,
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


def of_recording(trace: Trace, query: Named) -> Table:
    """Answer with a recording's table.

    Raises:
        UsageError: there is none of the name, or it is of a run.
    """
    table = find(query.name)
    if isinstance(table, RunTable):
        msg = f"{query.name} is of a whole run: ask runs/<run>/tables/{query.name}"
        raise UsageError(msg)
    return shown_table(table, table.build(trace), _order(query), trace)


def _of_run(table: RunTable[Any]) -> Callable[[Mapping[str, Group[Any]], OfRunOrdered], Table]:
    def answer(groups: Mapping[str, Group[Any]], query: OfRunOrdered) -> Table:
        return shown_table(table, table.build(groups[query.run].parts), _order(query))

    return answer


def _order(query: Named | OfRunOrdered) -> RowOrder:
    return RowOrder(key=query.sort, is_descending=query.descending, limit=query.limit)


def _run_tables() -> tuple[Endpoint, ...]:
    """Return an endpoint for each table of a run: each has a part of its own in a recording."""
    return tuple(
        GroupsEndpoint(
            path=f"runs/<run>/tables/{name}",
            meaning=table.meaning,
            query=OfRunOrdered,
            response=Table,
            part=table.part,
            entries=run_entries,
            handler=_of_run(table),
        )
        for name, table in all_tables().items()
        if isinstance(table, RunTable)
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    CatalogEndpoint(
        path="tables", meaning="Every public table, by name.", response=Tables, handler=listed
    ),
    TraceEndpoint(
        path="tables/<name>",
        meaning="A public table of the recording: its first rows by a column of it.",
        query=Named,
        response=Table,
        handler=of_recording,
    ),
    *_run_tables(),
)
