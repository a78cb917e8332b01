"""Parts that files of tables share: header, withheld traces, cells."""

import shutil
from dataclasses import dataclass
from typing import Any, BinaryIO

import msgspec
import numpy as np
import pandas as pd

from stepscope.model.frames import Schema

SCHEMA_VERSION = 1
"""Version of the files' form; within a version columns are added, never renamed."""


class Withheld(msgspec.Struct, frozen=True):
    """A trace that cannot have a table, and the line of code that records the missing data."""

    run: str
    worker: str
    span: str
    reason: str
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class TableHeader:
    """Description of a table in its file."""

    table: str
    title: str
    meaning: str
    schema: Schema
    version: str
    withheld: tuple[Withheld, ...] = ()


def copy_part(part: BinaryIO, sink: BinaryIO) -> None:
    """Append a part file to the sink."""
    shutil.copyfileobj(part, sink, 1 << 20)


CHUNK_ROWS = 50_000
"""Rows that are converted at once, so that memory does not grow with the table."""


def cells(column: pd.Series) -> list[Any]:
    """Return a column as plain Python values, None where unknown; integers are exact."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        texts = [*column.cat.categories.tolist(), None]
        return [texts[code] for code in column.cat.codes.tolist()]
    if pd.api.types.is_extension_array_dtype(column.dtype):
        return list(column.array.to_numpy(dtype=object, na_value=None).tolist())
    if column.dtype.kind == "f":
        values = column.to_numpy(dtype=object, copy=True)
        values[~np.isfinite(column.to_numpy())] = None
        return list(values.tolist())
    return (
        [_plain(value) for value in column.tolist()] if column.dtype == object else column.tolist()
    )


def _plain(value: object) -> object:
    """Return a cell without numpy's types; None for NaN."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and value != value else value  # noqa: PLR0124 (NaN)
