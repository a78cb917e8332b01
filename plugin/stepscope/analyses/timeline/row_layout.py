"""Row of each slice in its track: no two slices of a row overlap.

Calls of a thread nest, a child below its parent. Ranges that cross do not nest: an annotation
begins inside the function that opens it, and outlives that. The longer of two crossing ranges is
lifted: such ranges get rows of their own above all others of their thread. Slices that do not nest
(kernels of a stream) get the first free row.
"""

import heapq
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stepscope.model import call_tree
from stepscope.model.arrays import NONE, Ints, Mask

MOST_ROUNDS = 8
"""Limit of rounds of lifting; ranges that still cross do not nest at all."""
MOST_LIFTS = 3
"""Depth to which lifted ranges are nested the same way."""
Groups = NDArray[np.integer]
Rows = NDArray[np.int32]
NOTHING: Ints = np.zeros(0, dtype=np.int64)
LATEST = np.iinfo(np.int64).max


def nested_rows(group: Groups, start_ns: Ints, end_ns: Ints, *, lift: int = 0) -> tuple[Rows, Ints]:
    """Return the row of each slice, and the innermost slice of its group that contains it, or -1.

    A parent lies above its children, except above lifted ones.
    """
    order = call_tree.ordered(group, start_ns, end_ns)
    calls = group[order], start_ns[order], end_ns[order]
    above, crossing = _first_above(*calls)
    row, is_lifted = _rows_below(calls, above.copy(), _longer(calls, *crossing))
    parent = np.empty_like(order)
    parent[order] = np.append(order, NONE)[above]
    rows: Rows = np.empty(len(order), dtype=np.int32)
    rows[order] = row
    if is_lifted.any():
        lifted = order[is_lifted]
        lifted_calls = group[lifted], start_ns[lifted], end_ns[lifted]
        lifted_rows = (
            nested_rows(*lifted_calls, lift=lift + 1)[0]
            if lift < MOST_LIFTS
            else free_rows(*lifted_calls)
        )
        rows += _count_by_group(lifted_calls[0], lifted_rows, group)
        rows[lifted] = lifted_rows
    return rows, parent


def _count_by_group(group: Groups, row: Rows, queries: Groups) -> Rows:
    """Return the number of rows in each query's group."""
    counts = np.zeros(int(queries.max()) + 1, dtype=np.int32)
    np.maximum.at(counts, group, row + 1)
    counts_of: Rows = counts[queries]
    return counts_of


def _first_above(group: Groups, start_ns: Ints, end_ns: Ints) -> tuple[Ints, tuple[Ints, Ints]]:
    """Return the parent of each slice, and pairs of slices that cross, each before a later one.

    Slices are ordered as by `call_tree.ordered`. Each climbs from the slice before it to the first
    that does not end too early. A slice on the way that ends after the start crosses it; a crossing
    that is missed this way shows when rows are compared.
    """
    above: Ints = np.arange(-1, len(end_ns) - 1, dtype=np.int64)
    above[1:][group[1:] != group[:-1]] = NONE
    ends_ns = np.append(end_ns, LATEST)  # of -1
    needed_ns = end_ns + (end_ns <= start_ns)
    later, earlier = [NOTHING], [NOTHING]
    going = np.flatnonzero(ends_ns[above] < needed_ns)
    while len(going):
        passed = above[going]
        crosses = np.flatnonzero(ends_ns[passed] > start_ns[going])
        later.append(going[crosses])
        earlier.append(passed[crosses])
        going = _climbed(above, ends_ns, needed_ns, going)
    return above, (np.concatenate(earlier), np.concatenate(later))


def _climbed(above: Ints, ends_ns: Ints, needed_ns: Ints, going: Ints) -> Ints:
    """Move slices one parent up; return those that have to go on."""
    further = above[above[going]]
    above[going] = further
    return going[ends_ns[further] < needed_ns[going]]


def _longer(calls: tuple[Groups, Ints, Ints], one: Ints, other: Ints) -> Ints:
    """Return the longer of each two slices that cross, of equal ones the later.

    If one of them is taken already, the other may stay.
    """
    _, start_ns, end_ns = calls
    order = np.lexsort((other, one))
    one, other = one[order], other[order]
    is_longer = end_ns[one] - start_ns[one] > end_ns[other] - start_ns[other]
    taken: dict[int, None] = {}
    for first, second, is_first in zip(
        one.tolist(), other.tolist(), is_longer.tolist(), strict=True
    ):
        if first not in taken and second not in taken:
            taken[first if is_first else second] = None
    return np.array(sorted(taken), dtype=np.int64)


def _rows_below(calls: tuple[Groups, Ints, Ints], above: Ints, lifted: Ints) -> tuple[Rows, Mask]:
    """Return rows without the slices that must be lifted, and which slices these are."""
    group, start_ns, end_ns = calls
    ends_ns = np.append(end_ns, LATEST)
    needed_ns = end_ns + (end_ns <= start_ns)
    is_lifted = np.zeros(len(group), dtype=bool)
    for _ in range(MOST_ROUNDS):
        _lift(group, above, ends_ns, lifted)
        is_lifted[lifted] = True
        going = np.flatnonzero(ends_ns[above] < needed_ns) if is_lifted.any() else NOTHING
        going = going[~is_lifted[going]]
        while len(going):
            going = _climbed(above, ends_ns, needed_ns, going)
        depth = _depth(above, is_lifted)
        lifted = _longer(calls, *_crossing(calls, depth))
        if not len(lifted):
            return depth.astype(np.int32), is_lifted
    is_lifted |= np.isin(group, np.unique(group[lifted]))
    return _depth(above, is_lifted).astype(np.int32), is_lifted


def _lift(group: Groups, above: Ints, ends_ns: Ints, lifted: Ints) -> None:
    """Remove these slices as parents: their children move to the slice before them."""
    ends_ns[lifted] = np.iinfo(np.int64).min
    is_first = (lifted == 0) | (group[lifted] != group[lifted - 1])
    above[lifted] = np.where(is_first, NONE, lifted - 1)


def _depth(above: Ints, is_lifted: Mask) -> Ints:
    """Return the number of slices above each slice, -1 for lifted ones (which have none below)."""
    depth = call_tree.depth_of(above)
    depth[is_lifted] = NONE
    return depth


def _crossing(calls: tuple[Groups, Ints, Ints], depth: Ints) -> tuple[Ints, Ints]:
    """Return neighbours of one depth that overlap; lifted slices have depth -1."""
    group, start_ns, end_ns = calls
    is_narrow = not len(depth) or depth.max() <= np.iinfo(np.int16).max
    narrow = depth.astype(np.int16) if is_narrow else depth
    order = np.argsort(narrow, kind="stable")
    order = order[int((depth < 0).sum()) :]
    one, other = order[:-1], order[1:]
    at = np.flatnonzero(end_ns[one] > start_ns[other])
    one, other = one[at], other[at]
    crosses = (narrow[one] == narrow[other]) & (group[one] == group[other])
    return one[crosses], other[crosses]


def free_rows(group: Groups, start_ns: Ints, end_ns: Ints) -> Rows:
    """Return the first row of its group that is free at the start of each slice."""
    order = np.lexsort((end_ns, start_ns, group))
    groups, start, end = group[order], start_ns[order], end_ns[order]
    rows: Rows = np.zeros(len(order), dtype=np.int32)
    for first, last in _clusters(groups, start, end):
        rows[first:last] = _free_in_turn(start[first:last], end[first:last])
    in_input_order = np.empty_like(rows)
    in_input_order[order] = rows
    return in_input_order


def _clusters(group: Groups, start_ns: Ints, end_ns: Ints) -> list[tuple[int, int]]:
    """Return the ranges of slices that overlap each other, and no slice outside."""
    if not len(group):
        return []
    is_first = np.append(True, group[1:] != group[:-1])
    begins = is_first.copy()
    begins[1:] |= start_ns[1:] >= _latest_end_ns(is_first, end_ns)[:-1]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(group))
    is_cluster = last - first > 1
    return list(zip(first[is_cluster].tolist(), last[is_cluster].tolist(), strict=True))


def _latest_end_ns(is_first: Mask, end_ns: Ints) -> Ints:
    """Return the latest end so far in each group."""
    latest = np.empty_like(end_ns)
    bounds = [*np.flatnonzero(is_first).tolist(), len(end_ns)]
    for begin, end in pairwise(bounds):
        latest[begin:end] = np.maximum.accumulate(end_ns[begin:end])
    return latest


def _free_in_turn(start_ns: Ints, end_ns: Ints) -> list[int]:
    """Return each slice's first free row; slices are ordered by time."""
    running: list[tuple[int, int]] = []
    unused: list[int] = []
    rows = []
    count = 0
    for start, end in zip(start_ns.tolist(), end_ns.tolist(), strict=True):
        while running and running[0][0] <= start:
            heapq.heappush(unused, heapq.heappop(running)[1])
        if unused:
            row = heapq.heappop(unused)
        else:
            row, count = count, count + 1
        heapq.heappush(running, (end, row))
        rows.append(row)
    return rows
