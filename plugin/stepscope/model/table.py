"""Public tables: `stepscope export` writes them, Python returns them, and `docs/` describes them.

A module that fills tables declares them as `TABLES`, by name: `{"operators": Table(...)}`. A trace
that cannot have a table raises `MissingDataError` with the line of code that records the missing
data; one without such rows has an empty frame of the same columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pandas as pd

from stepscope.model.frames import Schema

if TYPE_CHECKING:
    from stepscope.model.trace import Trace

PartT = TypeVar("PartT")


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
