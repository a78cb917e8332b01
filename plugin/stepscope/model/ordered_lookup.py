"""Lookup of the last row of a group at or before a time, for many times at once."""

import numpy as np
from numpy.typing import NDArray

from stepscope.model.arrays import NONE, Ints

Grouped = tuple[NDArray[np.integer], Ints]
"""Parallel arrays: each row's group, and its time."""


def last_not_after(rows: Grouped, queries: Grouped) -> Ints:
    """Return, for each query, the last row of its group whose time is no later, or -1.

    Rows are ordered by group, then time.
    """
    groups, times = rows
    query_groups, at = queries
    last = np.full(len(at), NONE, dtype=np.int64)
    order = np.argsort(query_groups, kind="stable")
    distinct, first = np.unique(query_groups[order], return_index=True)
    low, high = (
        np.searchsorted(groups, distinct, side=side).tolist() for side in ("left", "right")
    )
    parts = np.split(order, first[1:]) if len(distinct) else []
    for indices, begin, end in zip(parts, low, high, strict=True):
        offset = np.searchsorted(times[begin:end], at[indices], side="right") - 1
        last[indices] = np.where(offset >= 0, offset + begin, NONE)
    return last


def first_not_before(rows: Grouped, queries: Grouped) -> Ints:
    """Return, for each query, the first row of its group whose time is no earlier, or -1."""
    groups, times = rows
    query_groups, at = queries
    before = last_not_after(rows, (query_groups, at - 1))
    begin = np.searchsorted(groups, query_groups, side="left")
    candidate = np.where(before >= 0, before + 1, begin)
    inside = candidate < len(groups)
    same = inside & (np.append(groups, NONE)[np.minimum(candidate, len(groups))] == query_groups)
    return np.where(same & (len(times) > 0), candidate, NONE)
