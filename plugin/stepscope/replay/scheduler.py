"""Order and times of a graph's points: compiled, and in Python where no compiler was at hand.

Both give equal results, as a test shows.
"""

from collections import deque
from itertools import pairwise

import numpy as np

from stepscope.model.arrays import NONE, Ints

try:
    from stepscope.replay import _scheduler
except ImportError:  # no C compiler at the installation
    _scheduler = None  # type: ignore[assignment]

IS_BUILT = _scheduler is not None


def topological_order(source: Ints, target: Ints, count: int) -> Ints:
    """Return points such that each edge's source comes before its target (Kahn, 1962).

    Points on a circle, and those after them, are missing from the result.
    """
    by_source = np.argsort(source, kind="stable")
    first = first_edges(source, count)
    pending = np.bincount(target, minlength=count)
    function = _scheduler.topological_order if IS_BUILT else topological_order_in_python
    return np.asarray(function(first, target[by_source], pending))


def first_edges(point: Ints, count: int) -> Ints:
    """Return the index of each point's first edge, where edges are by point; shape (n + 1,)."""
    return np.append(0, np.cumsum(np.bincount(point, minlength=count)))


def times(first_edge: Ints, source: Ints, weight_ns: Ints, recorded_ns: Ints) -> Ints:
    """Return the earliest times that all edges allow: the longest path to each point.

    Args:
        first_edge: Each point's first edge; points in topological order; shape (n + 1,).
        source: The point that each edge comes from, by target; shape (m,).
        weight_ns: Least time from source to target; shape (m,).
        recorded_ns: Times of points without an edge; shape (n,).
    """
    function = _scheduler.times if IS_BUILT else times_in_python
    return np.asarray(function(first_edge, source, weight_ns, recorded_ns))


def path(first_edge: Ints, source: Ints, weight_ns: Ints, time_ns: Ints, end: int) -> Ints:
    """Return the edges of the longest path to a point, from the last to the first; shape (k,).

    Of edges that bind a point alike, the one with the last source counts: delays of others are
    estimates.

    Args:
        first_edge: Each point's first edge; points in topological order; shape (n + 1,).
        source: The point that each edge comes from, by target; shape (m,).
        weight_ns: Least time from source to target; shape (m,).
        time_ns: The points' `times` with these weights; shape (n,).
        end: The point to which the path leads.
    """
    function = _scheduler.path if IS_BUILT else path_in_python
    return np.asarray(function(first_edge, source, weight_ns, time_ns, end))


def topological_order_in_python(first: Ints, target: Ints, pending: Ints) -> Ints:
    """See `topological_order`; edges are given by source."""
    starts, targets, left = first.tolist(), target.tolist(), pending.tolist()
    ready = deque(point for point, edges in enumerate(left) if not edges)
    order = []
    while ready:
        point = ready.popleft()
        order.append(point)
        for following in targets[starts[point] : starts[point + 1]]:
            left[following] -= 1
            if not left[following]:
                ready.append(following)
    return np.array(order, dtype=np.int64)


def times_in_python(first_edge: Ints, source: Ints, weight_ns: Ints, recorded_ns: Ints) -> Ints:
    """See `times`."""
    edges = list(zip(source.tolist(), weight_ns.tolist(), strict=True))
    starts, result = first_edge.tolist(), recorded_ns.tolist()
    for point, (first, last) in enumerate(pairwise(starts)):
        if first < last:
            result[point] = max(result[before] + weight for before, weight in edges[first:last])
    return np.array(result, dtype=np.int64)


def path_in_python(
    first_edge: Ints, source: Ints, weight_ns: Ints, time_ns: Ints, end: int
) -> Ints:
    """See `path`."""
    since_ns, target = time_ns[source], np.repeat(np.arange(len(time_ns)), np.diff(first_edge))
    edges = np.flatnonzero(since_ns + weight_ns == time_ns[target])
    edges = edges[np.argsort(since_ns[edges], kind="stable")]
    binding = np.full(len(time_ns), NONE)
    binding[target[edges]] = edges  # what is set last stays
    edge_into, before, path = binding.tolist(), source.tolist(), []
    while (edge := edge_into[end]) >= 0:
        path.append(edge)
        end = before[edge]
    return np.array(path, dtype=np.int64)
