"""Conversion of frames to columns of public tables: plain text, and the types of a schema."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.model.frames import Schema


def plain_values(values: "pd.Series[Any] | pd.Categorical") -> NDArray[Any]:
    """Return text as objects with None for missing text; numbers unchanged."""
    if isinstance(values, pd.Series):
        if not isinstance(values.dtype, pd.CategoricalDtype):
            return np.asarray(values.to_numpy())
        values = values.array
    texts = np.array([*values.categories, None], dtype=object)
    return np.asarray(texts[values.codes])


def to_frame(schema: Schema, columns: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
    """Return a frame of the available columns of a schema, in its order and with its types."""
    # pandas 3 would make its own text type of objects, in which None becomes NaN
    return pd.DataFrame(
        {
            column.name: pd.Series(columns[column.name], dtype=column.dtype)
            for column in schema
            if column.name in columns
        }
    )
