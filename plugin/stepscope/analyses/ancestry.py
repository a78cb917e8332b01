"""Questions about who is above whom, of a column of parents, in a few rounds however deep it is.

`parent` holds rows of the same table, -1 at the top, as `host_calls` and `call_tree.nest` have it.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

NONE = -1
Rows = NDArray[np.int64]
NumberT = TypeVar("NumberT", np.int64, np.float64)


def nearest(parent: Rows, is_wanted: NDArray[np.bool_]) -> Rows:
    """Return, for each row, itself if it is wanted, else the nearest wanted one above, or -1."""
    found = np.where(is_wanted, np.arange(len(parent)), parent)
    going = np.flatnonzero(~is_wanted & (found != NONE))
    going = going[~is_wanted[found[going]]]
    while len(going):  # where a row points to, points further itself: twice as far each round
        found[going] = found[found[going]]
        going = going[found[going] != NONE]
        going = going[~is_wanted[found[going]]]
    return found


def with_descendants(parent: Rows, *columns: NDArray[NumberT]) -> list[NDArray[NumberT]]:
    """Return columns in which each row holds the sum of its own value and of all below it."""
    sums = [column.copy() for column in columns]
    above = parent
    while (above != NONE).any():
        # sums reach 2^k rows down, `above` is 2^k rows up
        for total in sums:
            rows = np.flatnonzero((total != 0) & (above != NONE))
            np.add.at(total, above[rows], total[rows])
        above = np.append(above, NONE)[above]
    return sums
