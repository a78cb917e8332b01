"""Calls merged by the path of names that led to them: what a flame graph draws.

`merged` is the algorithm, for any tree of calls; `host_flame` is the tree of all that the host
did, with the host's and the device's time.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses import group_statistics
from stepscope.analyses.ancestry import nearest, with_descendants
from stepscope.analyses.host.tree import HostTree, host_tree
from stepscope.analyses.host.written_stacks import stack_tree
from stepscope.call_tree import by_level
from stepscope.trace import Trace, computed

NONE = -1
MOST_LEVELS = 1000
"""Python's own limit of recursion. What is nested deeper counts as its caller at that depth."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Paths:
    """Nodes are distinct paths of names. A parent's index is lower than its children's."""

    parent: NDArray[np.int64]
    """A node, or -1 at the top."""
    name: NDArray[np.int64]
    depth: NDArray[np.int64]
    node: NDArray[np.int64]
    """The node of each call."""

    def __len__(self) -> int:
        """Return how many nodes there are."""
        return len(self.parent)

    def sums(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, for each node, the sum of its own calls' values."""
        return group_statistics.sums(values, self.node, len(self))


@dataclass(frozen=True, kw_only=True, eq=False)
class Flame:
    """A flame graph's columns: one row a node of `paths`."""

    paths: Paths
    names: tuple[str, ...]
    """What `paths.name` are indices into."""
    call_count: NDArray[np.int64]
    host_self_ns: NDArray[np.int64]
    host_total_ns: NDArray[np.int64]
    """The sum of self times of the node and all below it."""
    device_self_ns: NDArray[np.int64]
    device_total_ns: NDArray[np.int64]

    def __len__(self) -> int:
        """Return how many nodes there are."""
        return len(self.paths)


@computed
def host_flame(trace: Trace) -> Flame:
    """Return the flame graph of the host's time, and of the device's by what launched it."""
    tree = host_tree(trace)
    parent, depth, name, names = _calls(trace, tree)
    paths = merged(parent, depth, name, len(names))
    paths = replace(paths, node=paths.node[: len(tree)])
    host_self_ns = paths.sums(tree.self_ns)
    device_self_ns = paths.sums(tree.device_ns)
    host_total_ns, device_total_ns = with_descendants(paths.parent, host_self_ns, device_self_ns)
    return Flame(
        paths=paths,
        names=names,
        call_count=np.bincount(paths.node, minlength=len(paths)),
        host_self_ns=host_self_ns,
        host_total_ns=host_total_ns,
        device_self_ns=device_self_ns,
        device_total_ns=device_total_ns,
    )


def _calls(
    trace: Trace, tree: HostTree
) -> tuple[NDArray[np.int64], NDArray[np.integer], NDArray[np.int64], tuple[str, ...]]:
    """Return the tree's parents, depths and names.

    Where Python functions are written in operators' stacks alone, these go behind the tree's rows,
    one a distinct path, and are above the operators that were called from there.
    """
    parent, depth = tree.nesting.parent, tree.nesting.depth
    written = trace.host_calls["call_stack"].cat
    if tree.host_offset or not len(written.categories):
        return parent, depth, tree.name, tree.names
    stacks = stack_tree([str(text) for text in written.categories])
    leaf = np.full(len(tree) + 1, NONE, dtype=np.int64)
    leaf[: tree.runtime_offset] = np.append(stacks.leaf, NONE)[written.codes.to_numpy()]
    top = np.flatnonzero((parent == NONE) & (leaf[:-1] != NONE))
    moved = parent.copy()
    moved[top] = leaf[top] + len(tree)
    below = leaf[nearest(parent, parent == NONE)]
    deeper = np.append(stacks.depth + 1, 0)[below]
    above = np.where(stacks.parent != NONE, stacks.parent + len(tree), NONE)
    return (
        np.concatenate((moved, above)),
        np.concatenate((depth + deeper, stacks.depth)),
        np.concatenate((tree.name, stacks.name + len(tree.names))),
        tree.names + stacks.names,
    )


def merged(
    parent: NDArray[np.int64], depth: NDArray[np.integer], name: NDArray[np.int64], name_count: int
) -> Paths:
    """Merge calls whose names, and whose callers' names, are the same: level by level.

    `parent` and `depth` are a `call_tree.Nesting`'s; names are numbers below `name_count`.
    """
    above = _cut(parent, depth)
    node = np.full(len(parent) + 1, NONE, dtype=np.int64)  # the last is no call's
    parents, names, sizes = [], [], []
    count = 0
    for rows in by_level(np.minimum(depth, MOST_LEVELS)):
        if depth[rows[0]] >= MOST_LEVELS:  # these are their caller's
            node[rows] = node[above[rows]]
            continue
        own, distinct = pd.factorize((node[above[rows]] + 1) * name_count + name[rows])
        node[rows] = own + count
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


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _cut(parent: NDArray[np.int64], depth: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the parents; those of calls nested too deep are ancestors at the deepest level."""
    if not len(depth) or depth.max() < MOST_LEVELS:
        return parent
    above = parent.copy()
    going = np.flatnonzero(depth >= MOST_LEVELS)
    going = going[depth[above[going]] >= MOST_LEVELS]
    while len(going):  # twice as far each round
        above[going] = above[above[going]]
        going = going[depth[above[going]] >= MOST_LEVELS]
    return above


def preorder(parent: NDArray[np.int64], depth: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return each node's place when every node is followed by all below it, siblings in order."""
    (size,) = with_descendants(parent, np.ones(len(parent), dtype=np.int64))
    place = np.zeros(len(parent), dtype=np.int64)
    for rows in by_level(depth):
        siblings = rows[np.argsort(parent[rows], kind="stable")]
        before = np.cumsum(size[siblings]) - size[siblings]
        above = parent[siblings]
        first = np.flatnonzero(np.append(True, above[1:] != above[:-1]))
        offset = np.repeat(before[first], np.diff(np.append(first, len(siblings))))
        place[siblings] = before - offset + np.append(place, NONE)[above] + 1
    return place


def is_outermost(
    kind: NDArray[np.int64], parent: NDArray[np.int64], depth: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Tell which nodes have no node of their kind above them, so that totals count time once."""
    place = preorder(parent, depth)
    (size,) = with_descendants(parent, np.ones(len(parent), dtype=np.int64))
    end = place + size
    order = np.lexsort((place, kind))
    _, group = np.unique(kind[order], return_inverse=True)
    # Ends of kinds before are below this kind's places, so one running maximum serves all.
    base = group * (len(parent) + 1)
    reached = np.maximum.accumulate(np.append(0, (base + end[order])[:-1])) if len(order) else base
    outermost = np.zeros(len(parent), dtype=bool)
    outermost[order] = reached <= base + place[order]
    return outermost
