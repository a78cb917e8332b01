"""Every public table by name, as the modules that fill them declare."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from types import MappingProxyType

from stepscope.base.errors import UsageError, suggestion
from stepscope.model.table import DECLARED, AnyTable, RunTable, Table

__all__ = ["AnyTable", "RunTable", "Table", "all_tables", "find"]
PACKAGES = ("stepscope.analyses", "stepscope.comparison", "stepscope.model.frames")


@cache
def all_tables() -> Mapping[str, AnyTable]:
    """Return every public table by name; the first call imports all analyses."""
    for package in PACKAGES:
        for module in walk_packages(import_module(package).__path__, f"{package}."):
            import_module(module.name)
    return MappingProxyType(dict(sorted(DECLARED.items())))


def find(name: str) -> AnyTable:
    """Return the table of this name.

    Raises:
        UsageError: there is none; the message suggests similar names.
    """
    tables = all_tables()
    if name in tables:
        return tables[name]
    hint = suggestion(name, tables)
    msg = f"there is no table {name!r}. {hint}`stepscope export --list` shows all tables"
    raise UsageError(msg)
