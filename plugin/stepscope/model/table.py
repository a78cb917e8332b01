"""Public tables: `stepscope export` writes them, Python returns them, and `docs/` describes them.

`@public_table` and `@run_table` declare the function that builds one. A trace that cannot have a
table raises `MissingDataError` with the line of code that records the missing data; one without
such rows has an empty frame of the same columns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.model.arrays import NONE, Ints, Objects
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
    """Function that summarizes one trace; small, so that the trace's events may be released."""
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


def plain_values(values: "pd.Series[Any] | pd.Categorical") -> NDArray[Any]:
    """Return text as objects with None for missing text; numbers unchanged."""
    if isinstance(values, pd.Series):
        if not isinstance(values.dtype, pd.CategoricalDtype):
            return np.asarray(values.to_numpy())
        values = values.array
    texts = np.array([*values.categories, None], dtype=object)
    return np.asarray(texts[values.codes])


def texts_at(values: "pd.Series[Any]", rows: Ints) -> Objects:
    """Return the texts of some rows of a categorical; None for row -1 and for missing text."""
    column = values.cat
    texts = np.array([*column.categories, None], dtype=object)
    return np.asarray(texts[np.append(column.codes.to_numpy(), NONE)[rows]])


def to_frame(schema: Schema, columns: Mapping[str, Any], *order: str) -> pd.DataFrame:
    """Return a frame of the available columns of a schema, in its order and with its types.

    Rows are sorted by the columns `order`, where "-name" descends; equal rows keep their order.
    """
    # pandas 3 would make its own text type of objects, in which None becomes NaN
    frame = pd.DataFrame(
        {
            column.name: pd.Series(columns[column.name], dtype=column.dtype)
            for column in schema
            if column.name in columns
        }
    )
    if not order:
        return frame
    by, ascending = [name.lstrip("-") for name in order], [name[0] != "-" for name in order]
    return frame.sort_values(by, ascending=ascending, kind="stable").reset_index(drop=True)


def rows_to_frame(schema: Schema, rows: Sequence[Mapping[str, Any]], *order: str) -> pd.DataFrame:
    """Return rows as a frame with all columns of a schema."""
    columns = {column.name: [row[column.name] for row in rows] for column in schema}
    return to_frame(schema, columns, *order)
