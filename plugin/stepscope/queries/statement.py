"""A query as text: the names that it may use, and hints for its mistakes."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import MappingProxyType

from stepscope.base.errors import QueryError, suggestion
from stepscope.tables import all_tables

MOST_CHARACTERS = 10_000
INSTALL = 'pip install "stepscope[sql]"'
KEYWORDS = frozenset({"group"})
"""Names of columns that SQL reserves."""
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
