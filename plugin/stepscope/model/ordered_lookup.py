"""The last row of a group at or before a moment, for many moments at once."""

import numpy as np
from numpy.typing import NDArray

NONE = -1
Grouped = tuple[NDArray[np.integer], NDArray[np.int64]]
"""Parallel arrays: each row's group, and its time."""


def last_not_after(rows: Grouped, queries: Grouped) -> NDArray[np.int64]:
    """Return, for each query, the last row of its group whose time is no later, or -1.

    Rows are ordered by group, then time; of equal ones the last is found.
    """
    groups, times = rows
    wanted, at = queries
    found = np.full(len(at), NONE, dtype=np.int64)
    order = np.argsort(wanted, kind="stable")
    asked, first = np.unique(wanted[order], return_index=True)
    low, high = (np.searchsorted(groups, asked, side=side).tolist() for side in ("left", "right"))
    parts = np.split(order, first[1:]) if len(asked) else []
    for mine, begin, end in zip(parts, low, high, strict=True):
        place = np.searchsorted(times[begin:end], at[mine], side="right") - 1
        found[mine] = np.where(place >= 0, place + begin, NONE)
    return found


def first_not_before(rows: Grouped, queries: Grouped) -> NDArray[np.int64]:
    """Return, for each query, the first row of its group whose time is no earlier, or -1."""
    groups, times = rows
    wanted, at = queries
    before = last_not_after(rows, (wanted, at - 1))
    begin = np.searchsorted(groups, wanted, side="left")
    place = np.where(before >= 0, before + 1, begin)
    inside = place < len(groups)
    same = inside & (np.append(groups, NONE)[np.minimum(place, len(groups))] == wanted)
    return np.where(same & (len(times) > 0), place, NONE)
