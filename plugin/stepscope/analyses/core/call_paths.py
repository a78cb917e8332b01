"""Calls merged by their path of names: the nodes of a flame graph."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import group_statistics
from stepscope.analyses.core.ancestry import with_descendants
from stepscope.model import call_tree
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.call_tree import by_level
from stepscope.model.frames.spans import spans
from stepscope.model.trace import Trace, computed

MOST_LEVELS = 1000
"""Python's recursion limit. Deeper calls count as their caller at that depth."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Paths:
    """Distinct paths of names. A parent's index is lower than its children's."""

    parent: Ints
    """A node, or -1 at the top."""
    name: Ints
    depth: Ints
    node: Ints
    """The node of each call."""

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.parent)

    def sums(self, values: Ints) -> Ints:
        """Return, for each node, the sum of its calls' values."""
        return group_statistics.sums(values, self.node, len(self))


def merge_calls(parent: Ints, depth: NDArray[np.integer], name: Ints, name_count: int) -> Paths:
    """Merge calls that have the same name and the same path of callers' names.

    `parent` and `depth` are those of a `call_tree.Nesting`; names are numbers below `name_count`.
    """
    above = _cut(parent, depth)
    node = np.full(len(parent) + 1, NONE, dtype=np.int64)  # the last is for row -1
    parents, names, sizes = [], [], []
    count = 0
    for rows in by_level(np.minimum(depth, MOST_LEVELS)):
        if depth[rows[0]] >= MOST_LEVELS:  # counted as their caller
            node[rows] = node[above[rows]]
            continue
        codes, distinct = pd.factorize((node[above[rows]] + 1) * name_count + name[rows])
        node[rows] = codes + count
        of_parent, of_name = np.divmod(distinct, name_count)
        parents.append(of_parent - 1)
        names.append(of_name)
        sizes.append(len(distinct))
        count += len(distinct)
    return Paths(
        parent=_joined(parents),
        name=_joined(names),
        depth=np.repeat(np.arange(len(sizes)), sizes),
        node=node[:-1],
    )


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _cut(parent: Ints, depth: NDArray[np.integer]) -> Ints:
    """Return the parents; for calls nested too deep, their ancestor at the deepest level."""
    if not len(depth) or depth.max() < MOST_LEVELS:
        return parent
    above = parent.copy()
    deep = np.flatnonzero(depth >= MOST_LEVELS)
    deep = deep[depth[above[deep]] >= MOST_LEVELS]
    while len(deep):  # twice as far each round
        above[deep] = above[above[deep]]
        deep = deep[depth[above[deep]] >= MOST_LEVELS]
    return above


def preorder(parent: Ints, depth: NDArray[np.integer]) -> Ints:
    """Return each node's position in depth-first order, siblings in order."""
    (size,) = with_descendants(parent, np.ones(len(parent), dtype=np.int64))
    position = np.zeros(len(parent), dtype=np.int64)
    for rows in by_level(depth):
        siblings = rows[np.argsort(parent[rows], kind="stable")]
        before = np.cumsum(size[siblings]) - size[siblings]
        above = parent[siblings]
        first = np.flatnonzero(np.append(True, above[1:] != above[:-1]))
        offset = np.repeat(before[first], np.diff(np.append(first, len(siblings))))
        position[siblings] = before - offset + np.append(position, NONE)[above] + 1
    return position


def is_outermost(kind: Ints, parent: Ints, depth: Ints) -> Mask:
    """Return which nodes have no ancestor of the same kind, so that totals count time once."""
    position = preorder(parent, depth)
    (size,) = with_descendants(parent, np.ones(len(parent), dtype=np.int64))
    end = position + size
    order = np.lexsort((position, kind))
    _, group = np.unique(kind[order], return_inverse=True)
    # ends of earlier kinds are below this kind's positions, so one running maximum serves all
    base = group * (len(parent) + 1)
    reached = np.maximum.accumulate(np.append(0, (base + end[order])[:-1])) if len(order) else base
    outermost = np.zeros(len(parent), dtype=bool)
    outermost[order] = reached <= base + position[order]
    return outermost


@dataclass(frozen=True, kw_only=True, eq=False)
class PythonCallers:
    """Python callers of host calls, as rows of `python_calls`."""

    caller: Ints
    """For each row of `host_calls`, the innermost Python call around its start, or -1."""
    nesting: call_tree.Nesting
    """Of `python_calls`."""


@computed
def python_callers(trace: Trace) -> PythonCallers:
    """Return the Python call around each operator and annotation, and the nesting."""
    thread, start_ns, _ = spans(trace.host_calls)
    return PythonCallers(
        caller=python_calls_at(trace, (thread, start_ns)), nesting=python_nesting(trace)
    )


@computed
def python_nesting(trace: Trace) -> call_tree.Nesting:
    """Return the nesting of `python_calls`."""
    thread, start_ns, _ = spans(trace.python_calls)
    return call_tree.nest(thread, start_ns, trace.python_calls["duration_ns"].to_numpy())


@computed
def python_paths(trace: Trace) -> Paths:
    """Return the paths of Python calls by their names' codes; a missing name has the last code."""
    names = trace.python_calls["name"].cat
    codes, count = names.codes.to_numpy().astype(np.int64), len(names.categories)
    codes[codes < 0] = count
    nesting = python_nesting(trace)
    return merge_calls(nesting.parent, nesting.depth, codes, count + 1)


def python_calls_at(trace: Trace, moments: call_tree.Moments) -> Ints:
    """Return the innermost Python call around each moment of a thread, or -1."""
    nesting = python_nesting(trace)
    calls = spans(trace.python_calls)
    return call_tree.innermost_at(calls, nesting.parent, nesting.order, moments)
