"""Nesting of calls on threads, as columns: parents, depths and self times."""

from dataclasses import dataclass

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


Spans = tuple[NDArray[np.integer], Ints, Ints]
"""Threads, starts and ends of calls: parallel arrays."""
Moments = Grouped
"""Threads, and times on them: parallel arrays."""
EXACT_IN_FLOATS = 2.0**53
"""Floats represent smaller whole numbers exactly."""
MOST_ROUNDS = 64
"""Calls climb to their parents together, one level per round; calls nested deeper then continue one
by one, which is slower but bounded.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Nesting:
    """One row per call. `parent` is a row or -1; `self_ns` excludes direct children."""

    parent: Ints
    depth: Ints
    self_ns: Ints
    order: Ints
    """The rows by thread, then start; among equal starts the outer call first."""


def nest(thread: NDArray[np.integer], start_ns: Ints, duration_ns: Ints) -> Nesting:
    """Nest calls by time on each thread: a parent contains its child entirely.

    A call that crosses the end of another is not its child, as in torch's own tree
    (`torch.autograd.profiler_util.EventList._populate_cpu_children`); no call is dropped.
    """
    end_ns = start_ns + duration_ns
    order = ordered(thread, start_ns, end_ns)
    ordered_end_ns = end_ns[order]
    # A parent ends after its child's start, which matters for children without a duration.
    needed_ns = ordered_end_ns + (duration_ns <= 0)[order]
    ancestor = _last_reaching(thread[order], ordered_end_ns, needed_ns)
    parent, depth = np.empty_like(order), np.empty_like(order)
    parent[order] = np.append(order, NONE)[ancestor]
    depth[order] = depth_of(ancestor)
    return Nesting(parent=parent, depth=depth, self_ns=self_ns(parent, duration_ns), order=order)


def ordered(thread: NDArray[np.integer], start_ns: Ints, end_ns: Ints) -> Ints:
    """Return the calls by thread, then start, the longest first; equal calls keep their order.

    It equals `np.lexsort((-end_ns, start_ns, thread))`, but is faster: calls are nearly ordered by
    start, which a stable sort exploits, and few have equal starts.
    """
    order = np.argsort(start_ns, kind="stable")
    order = order[np.argsort(thread[order], kind="stable")]
    threads, start = thread[order], start_ns[order]
    is_next_equal = (threads[1:] == threads[:-1]) & (start[1:] == start[:-1])
    equal = np.flatnonzero(np.append(is_next_equal, False) | np.append(False, is_next_equal))
    rows = order[equal]
    order[equal] = rows[np.lexsort((-end_ns[rows], start[equal], threads[equal]))]
    return order


def _last_reaching(thread: NDArray[np.integer], end_ns: Ints, needed_ns: Ints) -> Ints:
    """Return, for each row, the last row before it on its thread that ends at `needed_ns` or later.

    Rows are ordered by thread and start, and no row reaches its own `needed_ns`. The search starts
    from the preceding row; while that row ends too early, it continues with that row's result,
    since all rows in between end no later.
    """
    last: Ints = np.arange(-1, len(end_ns) - 1, dtype=np.int64)
    last[1:][thread[1:] != thread[:-1]] = NONE
    ends = np.append(end_ns, np.iinfo(np.int64).max)  # for row -1
    falls_short = last != NONE
    falls_short[1:] &= end_ns[:-1] < needed_ns[1:]
    going = np.flatnonzero(falls_short)
    needed = needed_ns[going]
    for _ in range(MOST_ROUNDS):
        if not len(going):
            break
        further = last[last[going]]
        last[going] = further
        falls_short = ends[further] < needed
        going, needed = going[falls_short], needed[falls_short]
    # Earlier rows are final: from the result of the row before, all climbs take n steps together.
    for row in going.tolist():
        candidate = min(last[row], last[row - 1])
        while ends[candidate] < needed_ns[row]:
            candidate = last[candidate]
        last[row] = candidate
    return last


def depth_of(parent: Ints) -> Ints:
    """Return the number of ancestors of each row; parents precede their children.

    A chain of rows in which each is the next row's parent is a run: only its first row climbs,
    twice as far each round.
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
    depths: Ints = np.repeat(depth - first, length) + np.arange(len(parent))
    return depths


def self_ns(parent: Ints, duration_ns: Ints) -> Ints:
    """Return each call's duration without its direct children's, never below 0."""
    if np.abs(duration_ns).sum(dtype=np.float64) < EXACT_IN_FLOATS:  # sums of floats are fast
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
    start_ns: Ints,
    duration_ns: Ints,
) -> Ints:
    """Return the end of each call's running time, including its callees'.

    It is the call's end if calls nest. A call that crosses the end of another cuts that call and
    its callees: every moment counts for one call of a thread, the last to begin, and `self_ns` of
    these durations is its time.
    """
    end_ns = start_ns + duration_ns
    cut, later = crossing(nesting, thread, start_ns, duration_ns)
    end_ns[cut] = start_ns[later]
    is_cut = np.zeros(len(end_ns) + 1, dtype=bool)  # the last is for row -1
    for _ in range(MOST_ROUNDS):  # callees of a cut call end with it
        if not len(cut):
            break
        is_cut[cut] = True
        inner = np.flatnonzero(is_cut[nesting.parent])
        is_cut[cut] = False
        cut = inner[end_ns[inner] > end_ns[nesting.parent[inner]]]
        end_ns[cut] = end_ns[nesting.parent[cut]]
    for rows in by_level(nesting.depth)[1:] if len(cut) else ():
        end_ns[rows] = np.minimum(end_ns[rows], end_ns[nesting.parent[rows]])
    until: Ints = np.maximum(end_ns, start_ns)
    return until


def crossing(
    nesting: Nesting,
    thread: NDArray[np.integer],
    start_ns: Ints,
    duration_ns: Ints,
) -> tuple[Ints, Ints]:
    """Return the calls that a later call crosses, and those later calls.

    If one call crosses several, the outermost is returned.
    """
    rows, first = _level_order(nesting.depth[nesting.order])
    rows = nesting.order[rows]
    threads, start = thread[rows], start_ns[rows]
    # Crossing calls at one depth are neighbours.
    crosses = start[:-1] + duration_ns[rows[:-1]] > start[1:]
    crosses &= threads[:-1] == threads[1:]
    crosses[first - 1] = False
    first_rows = np.flatnonzero(crosses)
    return rows[first_rows], rows[first_rows + 1]


def by_level(depth: NDArray[np.integer]) -> list[Ints]:
    """Return the rows of each occurring depth, the top first; rows keep their order."""
    rows, first = _level_order(depth)
    return np.split(rows, first) if len(rows) else []


def _level_order(depth: NDArray[np.integer]) -> tuple[Ints, Ints]:
    """Return the rows by depth, and the first index of each depth but the top."""
    is_narrow = not len(depth) or depth.max() <= np.iinfo(np.int16).max
    narrow = depth.astype(np.int16) if is_narrow else depth  # int16 sorts ten times faster
    rows = np.argsort(narrow, kind="stable")
    return rows, np.flatnonzero(np.diff(narrow[rows])) + 1


def enclosing(outer: Spans, inner: Spans) -> Ints:
    """Return, for each inner call, the row of the innermost outer call that contains it, or -1.

    An inner call that starts inside and ends later counts as contained: the clocks of host and
    runtime differ by some hundred ns.
    """
    outer_count, inner_count = len(outer[0]), len(inner[0])
    if not outer_count or not inner_count:
        return np.full(inner_count, NONE, dtype=np.int64)
    thread = np.concatenate((outer[0], inner[0]))
    start = np.concatenate((outer[1], inner[1]))
    end = np.concatenate((outer[2], inner[1]))  # an inner call contains nothing
    order = ordered(thread, start, end)  # among equal calls too, an inner call ends no later
    last = _last_reaching(thread[order], end[order], np.maximum(start + 1, end)[order])
    around = np.append(order, NONE)[last]
    innermost: Ints = np.empty_like(around)
    innermost[order] = around
    return innermost[outer_count:]


def innermost_at(calls: Spans, parent: Ints, order: Ints, moments: Moments) -> Ints:
    """Return the result of `enclosing` for times in calls whose nesting is already computed.

    Each time climbs from the last call begun on its thread to a call that has not ended. `parent`
    and `order` are those of the calls' `Nesting`.
    """
    (query_thread, at_ns), (thread, start_ns, end_ns) = moments, calls
    # among equal ones the inner call
    begun = last_not_after((thread[order], start_ns[order]), moments)
    innermost = np.append(order, NONE)[begun]
    over = np.flatnonzero(innermost != NONE)
    over = over[end_ns[innermost[over]] <= at_ns[over]]
    for _ in range(MOST_ROUNDS):
        if not len(over):
            return innermost
        above = parent[innermost[over]]
        innermost[over] = above
        over, above = over[above != NONE], above[above != NONE]
        over = over[end_ns[above] <= at_ns[over]]
    innermost[over] = enclosing(calls, (query_thread[over], at_ns[over], at_ns[over]))
    return innermost
