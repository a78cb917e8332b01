"""Nesting of calls on threads, as columns: who called whom, and what is left to oneself."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.model.ordered_lookup import Grouped, last_not_after

NONE = -1
Spans = tuple[NDArray[np.integer], NDArray[np.int64], NDArray[np.int64]]
"""Threads, starts and ends of calls: parallel arrays."""
Moments = Grouped
"""Threads, and moments on them: parallel arrays."""
EXACT_IN_FLOATS = 2.0**53
"""Whole numbers below that are what they are in a float."""
MOST_ROUNDS = 64
"""Calls climb to the one around them together, one step a round; those nested deeper then go on one
by one, which is slower but never slow."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Nesting:
    """Rows are the calls as given. `parent` is a row or -1; `self_ns` excludes direct children."""

    parent: NDArray[np.int64]
    depth: NDArray[np.int64]
    self_ns: NDArray[np.int64]
    order: NDArray[np.int64]
    """The rows by thread, then start; where calls begin at once, the outer first."""


def nest(
    thread: NDArray[np.integer], start_ns: NDArray[np.int64], duration_ns: NDArray[np.int64]
) -> Nesting:
    """Nest calls by time on each thread: a parent wholly contains its child.

    A call that crosses the end of another is no child of it, as in torch's own tree
    (`torch.autograd.profiler_util.EventList._populate_cpu_children`); nothing is dropped.
    """
    end_ns = start_ns + duration_ns
    order = ordered(thread, start_ns, end_ns)
    ordered_end_ns = end_ns[order]
    # A parent ends behind its child's beginning, which matters where the child takes no time.
    needed_ns = ordered_end_ns + (duration_ns <= 0)[order]
    found = _last_reaching(thread[order], ordered_end_ns, needed_ns)
    parent, depth = np.empty_like(order), np.empty_like(order)
    parent[order] = np.append(order, NONE)[found]
    depth[order] = depth_of(found)
    return Nesting(parent=parent, depth=depth, self_ns=self_ns(parent, duration_ns), order=order)


def ordered(
    thread: NDArray[np.integer], start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the calls by thread, then start, the longest first; equal ones keep their order.

    It is what `np.lexsort((-end_ns, start_ns, thread))` gives. Calls come in the order they began,
    or nearly so, which a stable sort makes use of, and few of them began at once.
    """
    order = np.argsort(start_ns, kind="stable")
    order = order[np.argsort(thread[order], kind="stable")]
    where, start = thread[order], start_ns[order]
    is_next_equal = (where[1:] == where[:-1]) & (start[1:] == start[:-1])
    equal = np.flatnonzero(np.append(is_next_equal, False) | np.append(False, is_next_equal))
    rows = order[equal]
    order[equal] = rows[np.lexsort((-end_ns[rows], start[equal], where[equal]))]
    return order


def _last_reaching(
    thread: NDArray[np.integer], end_ns: NDArray[np.int64], needed_ns: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return, for each row, the last one before it on its thread that ends at `needed_ns` or later.

    Rows are ordered by thread and start, and no row reaches what it needs. Every row looks at the
    one before it; while that does not reach, it looks where that one has come to: all rows between
    end no later than that one.
    """
    found: NDArray[np.int64] = np.arange(-1, len(end_ns) - 1, dtype=np.int64)
    found[1:][thread[1:] != thread[:-1]] = NONE
    ends = np.append(end_ns, np.iinfo(np.int64).max)  # of row -1
    falls_short = found != NONE
    falls_short[1:] &= end_ns[:-1] < needed_ns[1:]
    going = np.flatnonzero(falls_short)
    needed = needed_ns[going]
    for _ in range(MOST_ROUNDS):
        if not len(going):
            break
        further = found[found[going]]
        found[going] = further
        falls_short = ends[further] < needed
        going, needed = going[falls_short], needed[falls_short]
    for row in going.tolist():  # those before it have arrived
        place = found[row]
        while ends[place] < needed_ns[row]:
            place = found[place]
        found[row] = place
    return found


def depth_of(parent: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many rows are above each; rows are ordered so that parents come first.

    Rows of which each is the next one's parent are a run: one climbs for all of it, and twice as
    far each round.
    """
    is_first = parent != np.arange(-1, len(parent) - 1)
    is_first[:1] = True
    first = np.flatnonzero(is_first)
    length = np.diff(first, append=len(parent))
    run = np.repeat(np.arange(len(first)), length)
    parent_of_run = parent[first]
    above = np.append(run, NONE)[parent_of_run]
    depth = np.where(above != NONE, parent_of_run - first[above] + 1, 0)
    going = np.flatnonzero(above != NONE)
    while len(going):
        over = above[going]
        depth[going] += depth[over]
        further = above[over]
        above[going] = further
        going = going[further != NONE]
    depths: NDArray[np.int64] = np.repeat(depth - first, length) + np.arange(len(parent))
    return depths


def self_ns(parent: NDArray[np.int64], duration_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each call's duration without its direct children's, never below 0."""
    if np.abs(duration_ns).sum(dtype=np.float64) < EXACT_IN_FLOATS:  # sums in floats are fast
        weights = np.bincount(parent + 1, weights=duration_ns, minlength=len(parent) + 1)
        left = duration_ns - weights[1:].astype(np.int64)
    else:
        left = duration_ns.copy()
        child = np.flatnonzero(parent != NONE)
        np.subtract.at(left, parent[child], duration_ns[child])
    return np.maximum(left, 0, out=left)


def until_ns(
    nesting: Nesting,
    thread: NDArray[np.integer],
    start_ns: NDArray[np.int64],
    duration_ns: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return until when each call was running, or in what it called.

    It is the call's end where calls nest. Where one crosses the end of another, that ends here when
    the later one begins, with all that is in it: every moment counts for one call of a thread, the
    one begun last, and `self_ns` of these durations is for how long that was.
    """
    end_ns = start_ns + duration_ns
    cut, by = crossing(nesting, thread, start_ns, duration_ns)
    end_ns[cut] = start_ns[by]
    is_cut = np.zeros(len(end_ns) + 1, dtype=bool)  # the last is of row -1
    for _ in range(MOST_ROUNDS):  # what is in them ends with them
        if not len(cut):
            break
        is_cut[cut] = True
        inner = np.flatnonzero(is_cut[nesting.parent])
        is_cut[cut] = False
        cut = inner[end_ns[inner] > end_ns[nesting.parent[inner]]]
        end_ns[cut] = end_ns[nesting.parent[cut]]
    for rows in by_level(nesting.depth)[1:] if len(cut) else ():
        end_ns[rows] = np.minimum(end_ns[rows], end_ns[nesting.parent[rows]])
    until: NDArray[np.int64] = np.maximum(end_ns, start_ns)
    return until


def crossing(
    nesting: Nesting,
    thread: NDArray[np.integer],
    start_ns: NDArray[np.int64],
    duration_ns: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return calls that another outlives which began within them, and that other one.

    Of those that another one crosses at once, the outermost is returned.
    """
    rows, first = _level_order(nesting.depth[nesting.order])
    rows = nesting.order[rows]
    where, start = thread[rows], start_ns[rows]
    # Of calls at one depth, those that cross follow each other.
    crosses = start[:-1] + duration_ns[rows[:-1]] > start[1:]
    crosses &= where[:-1] == where[1:]
    crosses[first - 1] = False
    place = np.flatnonzero(crosses)
    return rows[place], rows[place + 1]


def by_level(depth: NDArray[np.integer]) -> list[NDArray[np.int64]]:
    """Return the rows of each depth that occurs, the top first; rows keep their order."""
    rows, first = _level_order(depth)
    return np.split(rows, first) if len(rows) else []


def _level_order(depth: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows by depth, and where among them each depth but the top begins."""
    is_narrow = not len(depth) or depth.max() <= np.iinfo(np.int16).max
    narrow = depth.astype(np.int16) if is_narrow else depth  # sorted ten times faster
    rows = np.argsort(narrow, kind="stable")
    return rows, np.flatnonzero(np.diff(narrow[rows])) + 1


def enclosing(outer: Spans, inner: Spans) -> NDArray[np.int64]:
    """Return, for each inner call, the row of the innermost outer call that contains it, or -1.

    An inner call that sticks out at its end counts as
    contained when it starts inside: the host's clock and the runtime's differ by some hundred ns.
    """
    outer_count, inner_count = len(outer[0]), len(inner[0])
    if not outer_count or not inner_count:
        return np.full(inner_count, NONE, dtype=np.int64)
    thread = np.concatenate((outer[0], inner[0]))
    start = np.concatenate((outer[1], inner[1]))
    end = np.concatenate((outer[2], inner[1]))  # an inner call contains nothing
    order = ordered(thread, start, end)  # of equal ones too, an inner call ends no later
    found = _last_reaching(thread[order], end[order], np.maximum(start + 1, end)[order])
    around = np.append(order, NONE)[found]
    innermost: NDArray[np.int64] = np.empty_like(around)
    innermost[order] = around
    return innermost[outer_count:]


def innermost_at(
    calls: Spans, parent: NDArray[np.int64], order: NDArray[np.int64], moments: Moments
) -> NDArray[np.int64]:
    """Return what `enclosing` does for moments, where it is known how the calls nest.

    Each moment looks at the call begun last on its thread, and climbs to one that is not over.
    `parent` and `order` are those of the calls' `Nesting`.
    """
    (wanted, at_ns), (thread, start_ns, end_ns) = moments, calls
    begun = last_not_after((thread[order], start_ns[order]), moments)  # of equal ones the inner
    found = np.append(order, NONE)[begun]
    over = np.flatnonzero(found != NONE)
    over = over[end_ns[found[over]] <= at_ns[over]]
    for _ in range(MOST_ROUNDS):
        if not len(over):
            return found
        above = parent[found[over]]
        found[over] = above
        over, above = over[above != NONE], above[above != NONE]
        over = over[end_ns[above] <= at_ns[over]]
    found[over] = enclosing(calls, (wanted[over], at_ns[over], at_ns[over]))
    return found
