"""Nesting of calls on threads, as columns: who called whom, and what is left to oneself."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NONE = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Nesting:
    """Rows are the calls as given. `parent` is a row or -1; `self_ns` excludes direct children."""

    parent: NDArray[np.int64]
    depth: NDArray[np.int64]
    self_ns: NDArray[np.int64]


def _order(
    thread: NDArray[np.int64], start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]
) -> NDArray[np.int64]:
    return np.lexsort((-end_ns, start_ns, thread))


def nest(
    thread: NDArray[np.int64], start_ns: NDArray[np.int64], duration_ns: NDArray[np.int64]
) -> Nesting:
    """Nest calls by time on each thread: a parent wholly contains its child.

    A call that crosses the end of another is no child of it, as in torch's own tree
    (`torch.autograd.profiler_util.EventList._populate_cpu_children`); nothing is dropped.
    """
    end_ns = start_ns + duration_ns
    order = _order(thread, start_ns, end_ns)
    count = len(order)
    parent = [NONE] * count
    depth = [0] * count
    stack: list[tuple[int, int]] = []  # (end, row), innermost last
    on_thread = None
    rows = order.tolist()
    for row, where, start, end in zip(
        rows, thread[order].tolist(), start_ns[order].tolist(), end_ns[order].tolist(), strict=True
    ):
        if where != on_thread:
            stack.clear()
            on_thread = where
        while stack and (stack[-1][0] <= start or stack[-1][0] < end):
            stack.pop()
        if stack:
            parent[row] = stack[-1][1]
        depth[row] = len(stack)
        stack.append((end, row))
    parents = np.array(parent, dtype=np.int64)
    return Nesting(
        parent=parents,
        depth=np.array(depth, dtype=np.int64),
        self_ns=self_ns(parents, duration_ns),
    )


def self_ns(parent: NDArray[np.int64], duration_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each call's duration without its direct children's, never below 0."""
    left = duration_ns.copy()
    child = np.flatnonzero(parent != NONE)
    np.subtract.at(left, parent[child], duration_ns[child])
    return np.maximum(left, 0)


def enclosing(
    outer: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    inner: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
) -> NDArray[np.int64]:
    """Return, for each inner call, the row of the innermost outer call that contains it, or -1.

    Both are `(thread, start_ns, end_ns)`. An inner call that sticks out at its end counts as
    contained when it starts inside: the host's clock and the runtime's differ by some hundred ns.
    """
    thread = np.concatenate((outer[0], inner[0]))
    start = np.concatenate((outer[1], inner[1]))
    end = np.concatenate((outer[2], inner[2]))
    is_inner = np.repeat((0, 1), (len(outer[0]), len(inner[0])))
    order = np.lexsort((-end, is_inner, start, thread))
    found = [NONE] * len(inner[0])
    stack: list[tuple[int, int]] = []
    on_thread = None
    first_inner = len(outer[0])
    for row, where, begin, stop in zip(
        order.tolist(),
        thread[order].tolist(),
        start[order].tolist(),
        end[order].tolist(),
        strict=True,
    ):
        if where != on_thread:
            stack.clear()
            on_thread = where
        while stack and stack[-1][0] <= begin:
            stack.pop()
        if row < first_inner:
            stack.append((stop, row))
        elif stack:
            found[row - first_inner] = stack[-1][1]
    return np.array(found, dtype=np.int64)
