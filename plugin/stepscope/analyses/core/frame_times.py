"""Times of a frame's events, as a time set."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.model import intervals
from stepscope.model.intervals import Intervals

ALL = slice(None)
"""Every row."""


def times(frame: pd.DataFrame, rows: NDArray[np.bool_ | np.int64] | slice) -> Intervals:
    """Return the times at which any of the rows ran; `rows` is a mask, indices or `ALL`."""
    return intervals.union(frame["start_ns"].to_numpy()[rows], frame["end_ns"].to_numpy()[rows])
