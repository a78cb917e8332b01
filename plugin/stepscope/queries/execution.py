"""Runs a query in a process of its own, which is ended when its time is over."""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from stepscope.base import formatting
from stepscope.base.errors import QueryError
from stepscope.queries.statement import MOST_CHARACTERS, explanation, sql_name, table_names
from stepscope.readers.child_process import PLAIN_MEMORY, program
from stepscope.render import table_parquet
from stepscope.render.table_export import schema_of
from stepscope.tables import all_tables

if TYPE_CHECKING:
    from stepscope.queries.sandbox import SandboxOutcome, SandboxRequest, TableSource

MOST_ERROR_CHARACTERS = 2_000
"""Shown end of an unexpected error."""
LEAST_MEMORY_BYTES = 128 * 2**20


@dataclass(frozen=True, kw_only=True)
class QueryLimits:
    """Limits of a query: its rows, time, memory and threads."""

    row_count: int
    seconds: float
    size_bytes: int
    """Maximum size of the rows that are returned."""
    memory_bytes: int
    threads: int = 2


@dataclass(frozen=True, kw_only=True)
class QueryResult:
    """The first rows of a query, and the number of all."""

    rows: Any
    """A `pyarrow.Table`; its columns may have equal names."""
    row_count: int
    is_counted: bool
    """False: there are more than `row_count` rows."""

    @property
    def is_cut(self) -> bool:
        """Whether there are more rows than were returned."""
        return bool(self.rows.num_rows < self.row_count)


def run_query(
    sql: str, limits: QueryLimits, paths: Mapping[str, Sequence[str]] | None = None
) -> QueryResult:
    """Run a query on Parquet files with the rows of tables; the other tables have no rows.

    `paths` has the files of each public table, by its name in the registry.

    Raises:
        QueryError: the query fails, or exceeds a limit.
    """
    import pyarrow as pa  # an extra

    with tempfile.TemporaryDirectory(prefix="stepscope-", ignore_cleanup_errors=True) as folder:
        output = str(Path(folder, "rows.arrow"))
        outcome = _run(_request(sql, limits, paths or {}, output), limits)
        with pa.OSFile(output) as source, pa.ipc.open_stream(source) as stream:
            rows = stream.read_all()
    return QueryResult(rows=rows, row_count=outcome.row_count, is_counted=outcome.is_counted)


def check_query(sql: str, limits: QueryLimits) -> tuple[str, ...]:
    """Check a query, before traces are read; return the public tables whose rows it reads.

    Raises:
        QueryError: it is not one statement that reads, or cannot run.
    """
    if len(sql) > MOST_CHARACTERS:
        msg = f"the query is longer than {MOST_CHARACTERS:,} characters"
        raise QueryError(msg)
    if sql != sql.encode(errors="replace").decode():
        msg = "the query is not UTF-8"
        raise QueryError(msg)
    with tempfile.TemporaryDirectory(prefix="stepscope-", ignore_cleanup_errors=True) as folder:
        request = _request(sql, limits, {}, str(Path(folder, "rows.arrow")))
        outcome = _run(msgspec.structs.replace(request, is_only_checked=True), limits)
    names = (table_names().get(name.lower()) for name in outcome.tables)
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _request(
    sql: str, limits: QueryLimits, paths: Mapping[str, Sequence[str]], output: str
) -> "SandboxRequest":
    from stepscope.queries.sandbox import SandboxRequest

    return SandboxRequest(
        sql=sql,
        tables=_sources(paths),
        output=output,
        row_count=limits.row_count,
        size_bytes=limits.size_bytes,
        seconds=limits.seconds,
        memory_bytes=max(limits.memory_bytes, LEAST_MEMORY_BYTES),
        threads=limits.threads,
    )


def _run(request: "SandboxRequest", limits: QueryLimits) -> "SandboxOutcome":
    """Return the outcome of a query that succeeds; one whose process is killed lacks memory."""
    from stepscope.queries.sandbox import SandboxOutcome

    try:
        done = subprocess.run(  # noqa: S603 (our own interpreter and program)
            program("stepscope.queries.sandbox"),
            input=msgspec.json.encode(request),
            capture_output=True,
            timeout=limits.seconds,
            env=os.environ | PLAIN_MEMORY,
            check=False,
        )
    except subprocess.TimeoutExpired:
        msg = f"the query took longer than {limits.seconds:g} s"
        raise QueryError(msg) from None
    if done.returncode > 0:
        msg = f"the query failed: {done.stderr.decode(errors='replace')[-MOST_ERROR_CHARACTERS:]}"
        raise QueryError(msg)
    if done.returncode < 0:
        outcome = SandboxOutcome(is_memory=True)
    else:
        outcome = msgspec.json.decode(done.stdout, type=SandboxOutcome)
    if outcome.is_memory:
        most = formatting.size(request.memory_bytes)
        msg = f"the query needs more than {most} of memory: filter or aggregate its rows"
        raise QueryError(msg)
    if outcome.error:
        raise QueryError(explanation(outcome.error, request.sql))
    return outcome


def _sources(paths: Mapping[str, Sequence[str]]) -> "dict[str, TableSource]":
    """Return every table under each of its names."""
    from stepscope.queries.sandbox import TableSource

    sources = {}
    for name, table in all_tables().items():
        columns = table_parquet.type_names(schema_of(table))
        source = TableSource(columns=columns, paths=tuple(paths.get(name, ())))
        sources[name] = sources[sql_name(name)] = source
    return sources
