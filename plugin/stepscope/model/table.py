"""Public tables: `stepscope export` writes them, Python returns them, and `docs/` describes them.

`@public_table` and `@run_table` declare the function that builds one. A trace that cannot have a
table raises `MissingDataError` with the line of code that records the missing data; one without
such rows has an empty frame of the same columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pandas as pd

from stepscope.model.frames import Schema

if TYPE_CHECKING:
    from stepscope.model.trace import Trace

PartT = TypeVar("PartT")
BuildT = TypeVar("BuildT", bound=Callable[..., pd.DataFrame])


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of one trace."""

    title: str
    meaning: str
    """The subject of a row and the purpose of the table, in one or two sentences."""
    schema: Schema
    build: Callable[["Trace"], pd.DataFrame]


@dataclass(frozen=True, kw_only=True)
class RunTable(Generic[PartT]):
    """A table of all traces of a run: of its ranks, or of its spans."""

    title: str
    meaning: str
    schema: Schema
    part: Callable[["Trace"], PartT]
    """Summary of one trace: small, so that the trace's events may be released."""
    build: Callable[[Sequence[PartT]], pd.DataFrame]


AnyTable = Table | RunTable[Any]
DECLARED: dict[str, AnyTable] = {}
"""The tables of all imported modules, by name."""


def public_table(
    name: str, schema: Schema, meaning: str, *, title: str = ""
) -> Callable[[BuildT], BuildT]:
    """Declare a table of one trace; the title defaults to the name."""

    def declare(build: BuildT) -> BuildT:
        DECLARED[name] = Table(
            title=title or _title(name), meaning=meaning, schema=schema, build=build
        )
        return build

    return declare


def run_table(
    name: str, schema: Schema, part: Callable[["Trace"], PartT], meaning: str
) -> Callable[[BuildT], BuildT]:
    """Declare a table of all traces of a run."""

    def declare(build: BuildT) -> BuildT:
        DECLARED[name] = RunTable(
            title=_title(name), meaning=meaning, schema=schema, part=part, build=build
        )
        return build

    return declare


def _title(name: str) -> str:
    return name.replace("-", " ").capitalize()
