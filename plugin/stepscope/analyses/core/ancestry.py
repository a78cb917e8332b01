"""Ancestors and subtree sums in a tree that is given as a column of parents.

`parent` holds rows of the same table, -1 at the top, as in `host_calls` and `call_tree.nest`. The
first `MOST_STEPS` levels are climbed one at a time; deeper nesting is climbed in doubling strides.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from stepscope.model.arrays import NONE, Ints, Mask

MOST_STEPS = 64
ValueT = TypeVar("ValueT", np.int64, np.float64)


def nearest(parent: Ints, is_selected: Mask) -> Ints:
    """Return, for each row, itself if it is selected, else its nearest selected ancestor, or -1."""
    ancestor = np.where(is_selected, np.arange(len(parent)), parent)
    pending = np.flatnonzero(~is_selected & (ancestor != NONE))
    pending = pending[~is_selected[ancestor[pending]]]
    while len(pending):  # pointer jumping: the distance doubles each round
        ancestor[pending] = ancestor[ancestor[pending]]
        pending = pending[ancestor[pending] != NONE]
        pending = pending[~is_selected[ancestor[pending]]]
    return ancestor


def nearest_of(parent: Ints, rows: Ints, is_selected: Mask) -> Ints:
    """Return the same as `nearest` for some rows; -1 for rows that are -1."""
    ancestor = rows.copy()
    pending = np.flatnonzero(ancestor != NONE)
    pending = pending[~is_selected[ancestor[pending]]]
    for _ in range(MOST_STEPS):
        if not len(pending):
            return ancestor
        ancestor[pending] = parent[ancestor[pending]]
        pending = pending[ancestor[pending] != NONE]
        pending = pending[~is_selected[ancestor[pending]]]
    ancestor[pending] = nearest(parent, is_selected)[ancestor[pending]]
    return ancestor


def with_descendants(parent: Ints, *columns: NDArray[ValueT]) -> list[NDArray[ValueT]]:
    """Return columns in which each row holds the sum over its subtree, itself included."""
    return [_with_descendants(parent, column) for column in columns]


def _with_descendants(parent: Ints, values: NDArray[ValueT]) -> NDArray[ValueT]:
    rows = np.flatnonzero(values)
    if not len(rows):
        return values
    total = values.copy()
    pending, above = values[rows], parent[rows]
    for _ in range(MOST_STEPS):
        is_below = above != NONE
        if not is_below.any():
            return total
        pending, above = pending[is_below], above[is_below]
        np.add.at(total, above, pending)
        above = parent[above]
    return _in_strides(parent, values)


def _in_strides(parent: Ints, values: NDArray[ValueT]) -> NDArray[ValueT]:
    total, above = values.copy(), parent
    while (above != NONE).any():
        # sums reach 2^k rows down, `above` is 2^k rows up
        rows = np.flatnonzero((total != 0) & (above != NONE))
        np.add.at(total, above[rows], total[rows])
        above = np.append(above, NONE)[above]
    return total
