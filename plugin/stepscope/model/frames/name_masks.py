"""Which rows of a frame have a name of some kind, asked once a distinct name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def name_mask(
    names: "pd.Series[Any] | pd.Categorical", is_wanted: Callable[[str], object]
) -> NDArray[np.bool_]:
    """Return, for each row, whether its name is wanted; a row without a name never is."""
    coded = names.cat if isinstance(names, pd.Series) else names
    wanted = [bool(is_wanted(str(name))) for name in coded.categories]
    # Code -1, no name, picks the last entry.
    return np.asarray(np.array([*wanted, False], dtype=bool)[np.asarray(coded.codes)])
