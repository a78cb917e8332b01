"""A query as text: the check that it only reads, its tables, and hints for its mistakes."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

import msgspec

from stepscope.base.errors import QueryError, suggestion
from stepscope.tables import all_tables

MOST_CHARACTERS = 10_000
INSTALL = 'pip install "stepscope[sql]"'
ONLY_READING = (
    "a query is one statement that reads: SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE, SHOW, "
    "or EXPLAIN of one of them"
)
KEYWORDS = frozenset({"group"})
"""Names of columns that SQL reserves."""
EXPLAIN = re.compile(r"\s*explain\s+(analyze\b\s*|\([^)]*\)\s*)?", re.IGNORECASE)
UNKNOWN_TABLE = re.compile(
    r'Catalog Error: Table with name "?(?P<name>.+?)"? does not exist!(\nDid you mean [^\n]*)?'
)
RESERVED_BEFORE = re.compile(r'syntax error at or near "')
LEAST_DUCKDB = 2
NOT_INSTALLED = f"queries need DuckDB {LEAST_DUCKDB}.0 or later and pyarrow: {INSTALL}"


def is_available() -> bool:
    """Check whether DuckDB and pyarrow are installed.

    DuckDB before 2.0 writes logs into files although file access is disabled.
    """
    try:
        major = int(version("duckdb").partition(".")[0])
    except PackageNotFoundError:
        return False
    return major >= LEAST_DUCKDB and find_spec("pyarrow") is not None


def require() -> None:
    """Check that queries can run.

    Raises:
        QueryError: DuckDB or pyarrow is missing.
    """
    if not is_available():
        raise QueryError(NOT_INSTALLED)


def quoted(column: str) -> str:
    """Return a column's name, in double quotes if it is a keyword of SQL."""
    return f'"{column}"' if column in KEYWORDS else column


def sql_name(name: str) -> str:
    """Return a table's name in queries: `kernel-events` as `kernel_events`."""
    return name.replace("-", "_")


@cache
def table_names() -> Mapping[str, str]:
    """Return each table's name by the names that a query may use, in lower case."""
    names = {name: name for name in all_tables()}
    return MappingProxyType({sql_name(name): name for name in names} | names)


def tables_of(sql: str) -> tuple[str, ...]:
    """Return the public tables whose rows a query reads.

    DuckDB only parses it here: nothing is computed.

    Raises:
        QueryError: it is not one statement that reads.
    """
    if len(sql) > MOST_CHARACTERS:
        msg = f"the query is longer than {MOST_CHARACTERS:,} characters"
        raise QueryError(msg)
    names = (table_names().get(name.lower()) for name in _base_tables(_syntax_tree(sql)))
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _syntax_tree(sql: str) -> Any:  # noqa: ANN401 (DuckDB's JSON)
    import duckdb  # an extra

    explained = EXPLAIN.match(sql)
    try:
        statements = duckdb.extract_statements(sql)
        is_one = len(statements) == 1
        if is_one and statements[0].type == duckdb.StatementType.EXPLAIN and explained:
            statements = duckdb.extract_statements(sql[explained.end() :])
        if not is_one or statements[0].type != duckdb.StatementType.SELECT:
            raise QueryError(ONLY_READING)
        with duckdb.connect(":memory:") as connection:
            parameters = [statements[0].query]
            rows = connection.execute("SELECT json_serialize_sql(?)", parameters).fetchall()
        return msgspec.json.decode(rows[0][0])
    except duckdb.Error as error:
        raise QueryError(explanation(str(error), sql)) from error
    except RecursionError:
        msg = "the query is nested too deeply"
        raise QueryError(msg) from None


def _base_tables(tree: Any) -> Iterator[str]:  # noqa: ANN401
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


def explanation(message: str, sql: str) -> str:
    """Return DuckDB's message with the nearest names and hints for usual mistakes."""
    if unknown := UNKNOWN_TABLE.search(message):
        name = unknown["name"]
        names = [sql_name(table) for table in all_tables()]
        hint = suggestion(sql_name(name), names)
        return message.replace(unknown[0], f'there is no table "{name}". {hint}'.rstrip())
    return "\n\n".join([message, *_hints(message, sql)])


def _hints(message: str, sql: str) -> Iterator[str]:
    if not RESERVED_BEFORE.search(message):
        return
    dashed = next((name for name in all_tables() if "-" in name and name in sql.lower()), None)
    if dashed is not None and f'"{dashed}"' not in sql.lower():
        yield f'Write {sql_name(dashed)}, or "{dashed}" in double quotes.'
        return
    for name in KEYWORDS:
        if re.search(rf"(?<![\"\w]){name}(?!\s+by\b)(?![\"\w])", sql, re.IGNORECASE):
            yield f"{name} is a keyword of SQL: write {quoted(name)} for the column."
