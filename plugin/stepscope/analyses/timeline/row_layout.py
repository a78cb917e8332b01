"""In which row of its track each slice lies: no two slices of a row overlap.

Calls of a thread nest, a child below what contains it. Ranges that cross have no such place: an
annotation begins inside the function that opens it, and outlives that. The longer of two that cross
is lifted: such ranges get rows of their own above all others of their thread. Slices that do not
nest (kernels of a stream) get the first row that is free.
"""

import heapq
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stepscope.model import call_tree

NONE = -1
MOST_ROUNDS = 8
"""How often ranges that cross are lifted; what crosses then does not nest at all."""
MOST_LIFTS = 3
"""How often what is lifted is looked at in the same way."""
Numbers = NDArray[np.int64]
Groups = NDArray[np.integer]
Rows = NDArray[np.int32]
NOTHING: Numbers = np.zeros(0, dtype=np.int64)
LATEST = np.iinfo(np.int64).max


def nested_rows(
    group: Groups, start_ns: Numbers, end_ns: Numbers, *, lift: int = 0
) -> tuple[Rows, Numbers]:
    """Return the row of each slice, and the innermost slice of its group that contains it, or -1.

    What contains a slice lies above it, unless the slice was lifted.
    """
    order = call_tree.ordered(group, start_ns, end_ns)
    given = group[order], start_ns[order], end_ns[order]
    above, crossing = _first_above(*given)
    row, is_lifted = _rows_below(given, above.copy(), _longer(given, *crossing))
    parent = np.empty_like(order)
    parent[order] = np.append(order, NONE)[above]
    rows: Rows = np.empty(len(order), dtype=np.int32)
    rows[order] = row
    if is_lifted.any():
        lifted = order[is_lifted]
        own = group[lifted], start_ns[lifted], end_ns[lifted]
        of_own = nested_rows(*own, lift=lift + 1)[0] if lift < MOST_LIFTS else free_rows(*own)
        rows += _count_by_group(own[0], of_own, group)
        rows[lifted] = of_own
    return rows, parent


def _count_by_group(group: Groups, row: Rows, of: Groups) -> Rows:
    """Return how many rows there are in each slice's group."""
    counts = np.zeros(int(of.max()) + 1, dtype=np.int32)
    np.maximum.at(counts, group, row + 1)
    found: Rows = counts[of]
    return found


def _first_above(
    group: Groups, start_ns: Numbers, end_ns: Numbers
) -> tuple[Numbers, tuple[Numbers, Numbers]]:
    """Return what contains each slice, and slices that cross, each before a later one.

    Slices are ordered as `call_tree.ordered` does. Each looks at the one before it, and climbs to
    the first that does not end too early. Of those passed, one that ends behind the slice's start
    crosses it; such a one may be passed unseen, which shows when rows are compared.
    """
    above: Numbers = np.arange(-1, len(end_ns) - 1, dtype=np.int64)
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


def _climbed(above: Numbers, ends_ns: Numbers, needed_ns: Numbers, going: Numbers) -> Numbers:
    """Let slices look one further up; return those that have to go on."""
    further = above[above[going]]
    above[going] = further
    return going[ends_ns[further] < needed_ns[going]]


def _longer(given: tuple[Groups, Numbers, Numbers], one: Numbers, other: Numbers) -> Numbers:
    """Return the longer of each two slices that cross, of equal ones the later.

    Where one of them is taken already, the other may stay.
    """
    _, start_ns, end_ns = given
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


def _rows_below(
    given: tuple[Groups, Numbers, Numbers], above: Numbers, lifted: Numbers
) -> tuple[Rows, NDArray[np.bool_]]:
    """Return rows without those slices that have to be lifted, and which these are."""
    group, start_ns, end_ns = given
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
        lifted = _longer(given, *_crossing(given, depth))
        if not len(lifted):
            return depth.astype(np.int32), is_lifted
    is_lifted |= np.isin(group, np.unique(group[lifted]))
    return _depth(above, is_lifted).astype(np.int32), is_lifted


def _lift(group: Groups, above: Numbers, ends_ns: Numbers, lifted: Numbers) -> None:
    """Let nothing be under these: what was looks at the slice before them instead."""
    ends_ns[lifted] = np.iinfo(np.int64).min
    is_first = (lifted == 0) | (group[lifted] != group[lifted - 1])
    above[lifted] = np.where(is_first, NONE, lifted - 1)


def _depth(above: Numbers, is_lifted: NDArray[np.bool_]) -> Numbers:
    """Return how many slices are above each that is not lifted; -1 for those that are.

    Nothing is below what is lifted, so that it may count as anything.
    """
    depth = call_tree.depth_of(above)
    depth[is_lifted] = NONE
    return depth


def _crossing(given: tuple[Groups, Numbers, Numbers], depth: Numbers) -> tuple[Numbers, Numbers]:
    """Return neighbours of a depth that overlap; slices that are not there have depth -1."""
    group, start_ns, end_ns = given
    is_narrow = not len(depth) or depth.max() <= np.iinfo(np.int16).max
    narrow = depth.astype(np.int16) if is_narrow else depth
    order = np.argsort(narrow, kind="stable")
    order = order[int((depth < 0).sum()) :]
    one, other = order[:-1], order[1:]
    at = np.flatnonzero(end_ns[one] > start_ns[other])
    one, other = one[at], other[at]
    crosses = (narrow[one] == narrow[other]) & (group[one] == group[other])
    return one[crosses], other[crosses]


def free_rows(group: Groups, start_ns: Numbers, end_ns: Numbers) -> Rows:
    """Return the first row of its group that is free when each slice begins."""
    order = np.lexsort((end_ns, start_ns, group))
    where, start, end = group[order], start_ns[order], end_ns[order]
    rows: Rows = np.zeros(len(order), dtype=np.int32)
    for first, last in _knots(where, start, end):
        rows[first:last] = _free_in_turn(start[first:last], end[first:last])
    found = np.empty_like(rows)
    found[order] = rows
    return found


def _knots(group: Groups, start_ns: Numbers, end_ns: Numbers) -> list[tuple[int, int]]:
    """Return the longest stretches in which every slice overlaps another of them, and no other."""
    if not len(group):
        return []
    is_first = np.append(True, group[1:] != group[:-1])
    begins = is_first.copy()
    begins[1:] |= start_ns[1:] >= _latest_end_ns(is_first, end_ns)[:-1]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(group))
    knots = last - first > 1
    return list(zip(first[knots].tolist(), last[knots].tolist(), strict=True))


def _latest_end_ns(is_first: NDArray[np.bool_], end_ns: Numbers) -> Numbers:
    """Return the latest end so far within each group."""
    latest = np.empty_like(end_ns)
    bounds = [*np.flatnonzero(is_first).tolist(), len(end_ns)]
    for begin, end in pairwise(bounds):
        latest[begin:end] = np.maximum.accumulate(end_ns[begin:end])
    return latest


def _free_in_turn(start_ns: Numbers, end_ns: Numbers) -> list[int]:
    """Return each slice's row, going through them in time's order."""
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
