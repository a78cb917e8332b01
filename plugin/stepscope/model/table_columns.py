"""From what frames hold to the columns of public tables: plain text, the types of a schema."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.model.frames import Schema


def plain_values(values: "pd.Series[Any] | pd.Categorical") -> NDArray[Any]:
    """Return text as objects with None where it is missing; numbers as they are."""
    if isinstance(values, pd.Series):
        if not isinstance(values.dtype, pd.CategoricalDtype):
            return np.asarray(values.to_numpy())
        values = values.array
    texts = np.array([*values.categories, None], dtype=object)
    return np.asarray(texts[values.codes])


def to_frame(schema: Schema, columns: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
    """Return those columns of a schema that there are, in its order and of its types."""
    # pandas 3 would make its own text type of objects, in which None becomes NaN
    return pd.DataFrame(
        {
            each.name: pd.Series(columns[each.name], dtype=each.dtype)
            for each in schema
            if each.name in columns
        }
    )
