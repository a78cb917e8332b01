"""SQL queries over the tables of a trace or of a run that the server has read."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepscope.analyses.core.trace_cut import slice_trace
from stepscope.api.messages import Column
from stepscope.api.public_tables import CODE_NAMES, unit_of
from stepscope.base import formatting
from stepscope.base.config import Settings
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import Unit
from stepscope.catalog.file_state import Entry, Ready, Summarised
from stepscope.model.table import RunTable
from stepscope.model.trace import Trace
from stepscope.queries import statement
from stepscope.queries.execution import QueryLimits, QueryResult, check_query, run_query
from stepscope.render import query_rows, table_listing
from stepscope.render.table_export import (
    GatheredTable,
    Request,
    RunPart,
    TableResult,
    gather,
    schema_of,
    tabulate,
)
from stepscope.tables import find

MOST_ROWS = 10_000
MOST_SECONDS = 10
MOST_BYTES = 32 * 2**20
MOST_MEMORY_BYTES = 2**30
MEMORY_SHARE = 0.25
"""Fraction of the server's memory limit for a query."""
UNIT_ENDINGS: tuple[tuple[str, Unit], ...] = (
    ("_ns", "ns"),
    ("_bytes_per_second", "bytes/s"),
    ("_bytes", "bytes"),
    ("_share", "share"),
)


@dataclass(frozen=True, kw_only=True)
class QueriedTraces:
    """The traces of a query."""

    entries: Sequence[Entry]
    """All traces of the run: tables of runs are built from them."""
    trace: str | None = None
    """The trace whose tables are queried; None: those of all traces."""
    start_ns: int | None = None
    end_ns: int | None = None

    def trace_of(self, entry: Entry) -> Trace | None:
        """Return a trace, clipped to the time range; None if its events are not in memory."""
        if not isinstance(entry.state, Ready):
            return None
        if entry.file.id != self.trace:
            return entry.state.trace
        return slice_trace(entry.state.trace, self.start_ns, self.end_ns)


@dataclass(frozen=True, kw_only=True)
class TableQueryResult:
    """The rows of a query, the public tables that it reads, and traces that are not in them."""

    result: QueryResult
    names: tuple[str, ...]
    notes: tuple[str, ...]


def run_table_query(sql: str, traces: QueriedTraces, settings: Settings) -> TableQueryResult:
    """Run a query.

    Raises:
        QueryError: the query cannot run.
        MissingDataError: no trace has the data of one of its tables.
    """
    statement.require()
    limits = _limits(settings)
    names = check_query(sql, limits)
    with tempfile.TemporaryDirectory(prefix="stepscope-", ignore_cleanup_errors=True) as folder:
        tables = _tables(names, traces, folder)
        paths = {table.name: [rows.path for rows in table.rows] for table in tables}
        result = run_query(sql, limits, paths)
    notes = (*_missing_traces(names, traces), *_missing_tables(tables))
    return TableQueryResult(result=result, names=names, notes=notes)


def _limits(settings: Settings) -> QueryLimits:
    return QueryLimits(
        row_count=MOST_ROWS,
        seconds=MOST_SECONDS,
        size_bytes=MOST_BYTES,
        memory_bytes=min(int(settings.memory_bytes * MEMORY_SHARE), MOST_MEMORY_BYTES),
        threads=min(settings.jobs, 2),
    )


def _tables(names: Sequence[str], traces: QueriedTraces, folder: str) -> list[GatheredTable]:
    """Return the tables, with their rows in files of the folder.

    Raises:
        MissingDataError: a table has no rows because the data was not recorded.
    """
    results: dict[str, list[tuple[str, TableResult]]] = {name: [] for name in names}
    for entry in traces.entries:
        for name, result in _results(entry, names, traces, folder).items():
            results[name].append((entry.file.run, result))
    tables = [gather(name, of_name, "parquet", folder) for name, of_name in results.items()]
    for table in tables:
        if table.failed and not table.rows:
            raise table.failed[0]
        if table.withheld and not table.rows:
            first = table.withheld[0]
            reason = f"{statement.sql_name(table.name)}: {first.reason}"
            raise MissingDataError(reason, first.remedy)
    return tables


def _results(
    entry: Entry, names: Iterable[str], traces: QueriedTraces, folder: str
) -> Mapping[str, TableResult]:
    """Return a trace's part of each table; of runs also from its summary."""
    is_queried = traces.trace in {None, entry.file.id}
    tables = {name: find(name) for name in names}
    requested = [
        name for name, table in tables.items() if is_queried or isinstance(table, RunTable)
    ]
    trace = traces.trace_of(entry)
    if trace is None:
        return dict(_summarised(entry, requested))
    request = Request(tables=tuple(requested), form="parquet", run=entry.file.run, folder=folder)
    return tabulate(trace, request)


def _summarised(entry: Entry, names: Iterable[str]) -> Iterator[tuple[str, TableResult]]:
    summary = entry.facts.summary if entry.facts is not None else None
    for name in names:
        table = find(name)
        if summary is None or not isinstance(table, RunTable):
            continue
        if (value := summary.part(table.part)) is not None:
            yield name, RunPart(value=value[0])


def _missing_traces(names: Sequence[str], traces: QueriedTraces) -> Iterator[str]:
    """Yield a sentence on traces whose events are not in memory."""
    if not names or traces.trace is not None:
        return
    released = sum(isinstance(entry.state, Summarised) for entry in traces.entries)
    others = sum(not isinstance(entry.state, Ready | Summarised) for entry in traces.entries)
    if released:
        of_all = f"{released} of {formatting.count(len(traces.entries), 'trace')}"
        yield (
            f"The events of {of_all} are not in memory: their rows are missing. "
            "`stepscope query` reads all traces."
        )
    if others:
        yield f"{formatting.count(others, 'trace')} could not be read, or was cancelled."


def _missing_tables(tables: Iterable[GatheredTable]) -> Iterator[str]:
    for table in tables:
        yield from table_listing.withheld_lines(statement.sql_name(table.name), table.withheld)


def columns_of(query: TableQueryResult) -> tuple[Column, ...]:
    """Return the columns of a query: units from the columns of its tables, or from the names."""
    public = {column.name: column for name in query.names for column in schema_of(find(name))}
    rows = query.result.rows
    columns = []
    for key, name, kind in zip(
        query_rows.unique_names(rows.schema.names),
        rows.schema.names,
        rows.schema.types,
        strict=True,
    ):
        unit: Unit = "code" if name in CODE_NAMES else "text"
        meaning = ""
        if name in public:
            meaning = public[name].meaning
        if query_rows.is_number(kind):
            unit = unit_of(public[name]) if name in public else _unit_of_name(name)
        columns.append(Column(key, key, unit, meaning))
    return tuple(columns)


def _unit_of_name(name: str) -> Unit:
    return next((unit for ending, unit in UNIT_ENDINGS if name.endswith(ending)), "count")


def values_of(query: TableQueryResult, columns: Sequence[Column]) -> dict[str, list[Any]]:
    """Return the cells of each column, as the page shows them."""
    cells = list(zip(*query_rows.value_rows(query.result.rows), strict=True))
    return {
        column.key: [_cell(value, column.unit) for value in (cells[index] if cells else ())]
        for index, column in enumerate(columns)
    }


def _cell(value: query_rows.Value, unit: Unit) -> int | float | str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and unit in {"ns", "bytes"}:
        return round(value)
    return value
