"""Program of the process that runs one query, with DuckDB that has no files, network or settings.

The request arrives on stdin, the outcome leaves on stdout, and rows go into a file in Arrow's
format. A process can be killed and its memory bounded; DuckDB's own limits cover neither the lists
and texts that a query makes, nor constants, which are computed before a query can be interrupted,
nor its parser, whose memory can grow exponentially with the depth of a query.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from threading import Timer
from typing import Any

import duckdb
import msgspec
import pyarrow as pa

from stepscope.base import host_limits

BATCH_ROWS = 8_192
MOST_COUNTED = 1_000_000
"""Rows beyond the limit are counted up to this number."""
BASE_BYTES = 256 * 2**20
"""Memory for DuckDB itself and the batch in progress, in addition to the query's."""
CONFIGURATION = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "python_enable_replacements": "false",  # variables of this program are no tables
    "temp_directory": "",
}
ONLY_READING = (
    "a query is one statement that reads: SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE, SHOW, "
    "or EXPLAIN of one of them"
)
EXPLAIN = re.compile(r"\s*explain\s+(analyze\b\s*|\([^)]*\)\s*)?", re.IGNORECASE)
SQL_TYPES = {
    "bool": "BOOLEAN",
    "double": "DOUBLE",
    "int8": "TINYINT",
    "int64": "BIGINT",
    "string": "VARCHAR",
}
"""By Arrow's types of the columns of public tables."""


class TableSource(msgspec.Struct, frozen=True):
    """A table of the database: its columns, and the Parquet files with its rows."""

    columns: dict[str, str]
    """Arrow types by name."""
    paths: tuple[str, ...] = ()


class SandboxRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A query, its tables by each name, its limits, and the file for its rows."""

    sql: str
    tables: dict[str, TableSource]
    output: str
    row_count: int
    size_bytes: int
    """Maximum size of the rows."""
    seconds: float
    memory_bytes: int
    threads: int
    is_only_checked: bool = False
    """Whether only the statement, names and types are checked."""


class SandboxOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The number of rows, or a message, usually DuckDB's."""

    error: str = ""
    tables: tuple[str, ...] = ()
    """Names of the tables whose rows a checked query reads."""
    is_memory: bool = False
    """Whether the memory was insufficient."""
    row_count: int = 0
    """Number of all rows, also of those that were not written."""
    is_counted: bool = True
    """False: there are more than `row_count` rows."""


def main() -> None:
    """Run the query that arrives on stdin."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=SandboxRequest)
    late = Timer(request.seconds, os._exit, [1])  # also if the other process was killed
    late.daemon = True
    late.start()
    sys.stdout.buffer.write(msgspec.json.encode(outcome(request)))


def outcome(request: SandboxRequest) -> SandboxOutcome:
    """Run a query, and write its rows."""
    try:
        with host_limits.data_limit(request.memory_bytes + BASE_BYTES):
            return _run(request)
    except (MemoryError, duckdb.OutOfMemoryException, pa.ArrowMemoryError):
        return SandboxOutcome(is_memory=True)
    except duckdb.Error as error:
        return SandboxOutcome(error=str(error), is_memory="bad_alloc" in str(error))
    except RecursionError:
        return SandboxOutcome(error="the query is nested too deeply")


def _run(request: SandboxRequest) -> SandboxOutcome:
    connection = _database(request)
    tables: tuple[str, ...] = ()
    if request.is_only_checked:
        selection = _selection(connection, request.sql)
        if selection is None:
            return SandboxOutcome(error=ONLY_READING)
        tables = tuple(_base_tables(_syntax_tree(connection, selection)))
    try:
        relation = connection.sql(request.sql)
    except (duckdb.BinderException, duckdb.CatalogException):
        connection.execute(request.sql)  # its message has the position
        raise
    if request.is_only_checked or relation is None:
        return SandboxOutcome(tables=tables)
    reader = relation.to_arrow_reader(BATCH_ROWS)
    batches: list[Any] = []
    row_count = written_count = size_bytes = 0
    for batch in reader:
        row_count += batch.num_rows
        if (left := request.row_count - written_count) > 0 and size_bytes < request.size_bytes:
            batches.append(batch.slice(0, left))
            written_count += batches[-1].num_rows
            size_bytes += batches[-1].nbytes
        elif row_count > MOST_COUNTED:
            break
    _write(reader.schema, batches, request.output)
    return SandboxOutcome(row_count=row_count, is_counted=row_count <= MOST_COUNTED)


def _selection(connection: duckdb.DuckDBPyConnection, sql: str) -> str | None:
    """Return the one statement that reads, or that is explained; None if it is another."""
    explained = EXPLAIN.match(sql)
    statements = connection.extract_statements(sql)
    is_one = len(statements) == 1
    if is_one and statements[0].type == duckdb.StatementType.EXPLAIN and explained:
        statements = connection.extract_statements(sql[explained.end() :])
    is_reading = is_one and statements[0].type == duckdb.StatementType.SELECT
    return statements[0].query if is_reading else None


def _syntax_tree(connection: duckdb.DuckDBPyConnection, selection: str) -> Any:  # noqa: ANN401
    rows = connection.execute("SELECT json_serialize_sql(?)", [selection]).fetchall()
    return msgspec.json.decode(rows[0][0])


def _base_tables(tree: Any) -> Iterator[str]:  # noqa: ANN401 (DuckDB's JSON)
    """Yield the names of tables in a syntax tree, except those that are only described."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += reversed(node)
        elif isinstance(node, dict) and node.get("show_type") != "DESCRIBE":
            if node.get("type") == "BASE_TABLE":
                yield node["table_name"]
            waiting += reversed(node.values())


def _database(request: SandboxRequest) -> duckdb.DuckDBPyConnection:
    """Return a locked database with the tables."""
    configuration: dict[str, str | bool | int | float | list[str]] = {
        **CONFIGURATION,
        "memory_limit": f"{request.memory_bytes // 2**20}MiB",
        "threads": str(request.threads),
    }
    connection = duckdb.connect(":memory:", config=configuration)
    empty = [_empty_table(name, table) for name, table in request.tables.items() if not table.paths]
    connection.execute(";".join(empty))
    for name, table in request.tables.items():
        if table.paths:
            connection.register(name, _rows(table))
    connection.execute("SET enable_progress_bar = false")  # it would be part of the output
    connection.execute("SET lock_configuration = true")
    return connection


def _empty_table(name: str, table: TableSource) -> str:
    columns = ", ".join(f'"{key}" {SQL_TYPES[kind]}' for key, kind in table.columns.items())
    return f'CREATE TABLE "{name}" ({columns})'


def _rows(table: TableSource) -> Any:  # noqa: ANN401 (pyarrow says no types)
    """Return the rows in files, which are read when a query needs them."""
    import pyarrow.dataset as ds  # with pandas, longer than the rest of the start

    fields = [(key, pa.type_for_alias(kind)) for key, kind in table.columns.items()]
    return ds.dataset(list(table.paths), schema=pa.schema(fields), format="parquet")


def _write(schema: Any, batches: list[Any], path: str) -> None:  # noqa: ANN401
    table = pa.Table.from_batches(batches, schema)
    columns = [_plain(table.column(index)) for index in range(table.num_columns)]
    plain = pa.Table.from_arrays(columns, names=schema.names)
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, plain.schema) as stream:
        stream.write_table(plain)


def _plain(column: Any) -> Any:  # noqa: ANN401
    """Return a column with plain types: sums of integers are integers, other decimals floats."""
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.string())
    if pa.types.is_decimal(column.type) and column.type.scale:
        return column.cast(pa.float64())
    if pa.types.is_decimal(column.type):
        with suppress(pa.ArrowInvalid):  # beyond 64 bits
            return column.cast(pa.int64())
    return column
