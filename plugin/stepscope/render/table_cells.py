"""A frame's columns as cells for files: plain Python values, None where nothing is known."""

from typing import Any

import numpy as np
import pandas as pd

CHUNK_ROWS = 50_000
"""Rows that are turned into cells at once: what that needs does not grow with the table."""


def cells(column: pd.Series) -> list[Any]:
    """Return a column's values: whole numbers exact, text and missing ones as they are."""
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
    """Return what stands in a column of objects without numpy's types; NaN is no value."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and value != value else value  # noqa: PLR0124 (NaN)
