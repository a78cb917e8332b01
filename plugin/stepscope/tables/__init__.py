"""The public tables, one a file: `tables/<name>.py` with a `TABLE`.

They are what `stepscope export` writes, what Python users ask for, and what the reference in
`docs/` describes. A table says what its rows are and what each column holds; an analysis fills it.
A recording that cannot have a table raises `MissingDataError` with the line of code that would
record what is missing; one that merely has no such rows gives an empty frame of the same columns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import pandas as pd

from stepscope.base.errors import UsageError
from stepscope.model.frames import Schema
from stepscope.model.trace import Trace

PartT = TypeVar("PartT")


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of one recording."""

    title: str
    meaning: str
    """What a row is and what the table tells, in one or two sentences."""
    schema: Schema
    build: Callable[[Trace], pd.DataFrame]


@dataclass(frozen=True, kw_only=True)
class RunTable(Generic[PartT]):
    """A table of all recordings of a run together: of its ranks, or of its spans."""

    title: str
    meaning: str
    schema: Schema
    part: Callable[[Trace], PartT]
    """What one recording has to say: small beside its events, which may then be let go."""
    build: Callable[[Sequence[PartT]], pd.DataFrame]


AnyTable = Table | RunTable[Any]


@cache
def all_tables() -> Mapping[str, AnyTable]:
    """Return every table in this folder by its name: the file's, with dashes."""
    modules = sorted(module.name for module in iter_modules(__path__) if module.name[0] != "_")
    return MappingProxyType(
        {name.replace("_", "-"): import_module(f"{__name__}.{name}").TABLE for name in modules}
    )


def find(name: str) -> AnyTable:
    """Return the table of this name.

    Raises:
        UsageError: there is none; the message names those that are nearest.
    """
    tables = all_tables()
    if name in tables:
        return tables[name]
    near = get_close_matches(name, tables, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    msg = f"there is no table {name!r}. {hint}`stepscope export --list` shows them all"
    raise UsageError(msg)
