"""When some of a frame's events ran, as a time set."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.model import intervals
from stepscope.model.intervals import Intervals

ALL = slice(None)
"""Every row."""


def times(frame: pd.DataFrame, rows: NDArray[np.bool_ | np.int64] | slice) -> Intervals:
    """Return when any of the chosen rows ran: a mask of the rows, or their places."""
    return intervals.union(frame["start_ns"].to_numpy()[rows], frame["end_ns"].to_numpy()[rows])
