"""Masks and codes of the rows of a frame by their names."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from stepscope.model.arrays import Ints, Mask


def name_mask(names: "pd.Series[Any] | pd.Categorical", predicate: Callable[[str], object]) -> Mask:
    """Return a mask of the rows whose name satisfies a predicate; False for missing names."""
    coded = names.array if isinstance(names, pd.Series) else names
    is_match = [bool(predicate(str(name))) for name in coded.categories.tolist()]
    # Code -1, a missing name, selects the last entry.
    return np.asarray(np.array([*is_match, False], dtype=bool)[coded.codes])


UNNAMED = "?"


def codes_and_names(names: "pd.Series[Any]", rows: Ints) -> tuple[Ints, list[str]]:
    """Return codes of some rows, at least 0, and the name of each code: of missing ones `UNNAMED`.

    For counts by name (`np.bincount`), which accept no negative code.
    """
    texts = [*map(str, names.cat.categories), UNNAMED]
    return names.cat.codes.to_numpy()[rows].astype(np.int64) % len(texts), texts
