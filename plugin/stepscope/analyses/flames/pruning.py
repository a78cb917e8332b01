"""The visible part of a flame graph: large nodes, and one node for the smaller ones.

The smaller children of a node become one child of kind `smaller`, so all sums are preserved.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.flames.flame_tree import CODES, FlameTree, line_sums, node_at, weights
from stepscope.model.arrays import NONE, Floats, Mask
from stepscope.model.call_tree import by_level

PIECES = 4000
"""A node smaller than this part of the view is narrower than a pixel."""
MOST_NODES = 10_000
"""Each may have a child for smaller frames: a response has at most twice as many nodes."""


@dataclass(frozen=True, kw_only=True)
class Viewport:
    """The requested part of a flame graph."""

    scale: Sequence[int]
    """Divisors of each side's values for comparisons: its steps, or 1."""
    path: Sequence[str] = ()
    """Keys of names that lead to the node that fills the view."""
    pieces: int = PIECES
    most: int = MOST_NODES


@dataclass(frozen=True, kw_only=True, eq=False)
class PrunedTree:
    """Nodes by depth; children of one node follow each other, the heaviest first."""

    tree: FlameTree
    root: int
    """The node that fills the view; -1: the whole tree."""


def prune(tree: FlameTree, view: Viewport) -> PrunedTree:
    """Return the visible part of a tree."""
    root = node_at(tree, view.path)
    weight = weights(tree.totals(), view.scale)
    retained = _visible(tree, weight, root, view)
    return in_order(without(tree, retained), root=_new_index(retained, root), scale=view.scale)


def _visible(tree: FlameTree, weight: Floats, root: int, view: Viewport) -> Mask:
    whole = weight[root] if root != NONE else weight[tree.parent == NONE].sum()
    retained = (weight >= whole / view.pieces) & (weight > 0) & ~tree.is_smaller
    if root != NONE:
        marked = np.zeros(len(tree), dtype=bool)
        marked[root] = True
        retained &= ancestry.nearest(tree.parent, marked) != NONE
    rows = np.flatnonzero(retained)
    if len(rows) > view.most:
        # A parent weighs no less than its child and comes first, so it is never left out alone.
        rows = rows[np.argsort(-weight[rows], kind="stable")[: view.most]]
        retained = np.zeros(len(tree), dtype=bool)
        retained[rows] = True
    while root != NONE:
        retained[root] = True
        root = int(tree.parent[root])
    return np.asarray(retained)


def _new_index(retained: Mask, row: int) -> int:
    return int(retained[:row].sum()) if row != NONE else NONE


def without(tree: FlameTree, retained: Mask) -> FlameTree:
    """Return the retained nodes, in their order, then a `smaller` node for each that lost children.

    The parent of a retained node is retained.
    """
    tree, smaller = with_smaller(tree)
    totals, rows = tree.totals(), np.flatnonzero(retained)
    index_of = np.full(len(tree) + 1, NONE, dtype=np.int64)
    index_of[rows] = np.arange(len(rows))
    is_gone = ~retained & totals.any(axis=0)
    is_top = is_gone & np.append(retained, True)[tree.parent]
    tops = np.flatnonzero(is_top)
    above, group = np.unique(index_of[tree.parent[tops]], return_inverse=True)
    count = len(above)
    group_of = np.full(len(tree), NONE, dtype=np.int64)
    group_of[tops] = group
    gone = np.flatnonzero(is_gone)
    of_gone = group_of[ancestry.nearest(tree.parent, is_top)[gone]]
    merged_count = sums(np.maximum(tree.merged_count[gone], 1), of_gone, count)
    return replace(
        tree,
        parent=np.concatenate((index_of[tree.parent[rows]], above)),
        name=np.concatenate((tree.name[rows], np.full(count, smaller))),
        self_values=np.hstack(
            (tree.self_values[:, rows], line_sums(totals[:, tops], group, count))
        ),
        calls=np.hstack((tree.calls[:, rows], line_sums(tree.calls[:, tops], group, count))),
        merged_count=np.concatenate((np.zeros(len(rows), dtype=np.int64), merged_count)),
    )


def with_smaller(tree: FlameTree) -> tuple[FlameTree, int]:
    """Return the tree with a name for merged small frames, and its code."""
    codes = np.flatnonzero(tree.kinds == CODES["smaller"])
    if len(codes):
        return tree, int(codes[0])
    kinds = np.append(tree.kinds, np.int8(CODES["smaller"]))
    return replace(tree, names=(*tree.names, ""), kinds=kinds), len(tree.names)


def in_order(tree: FlameTree, *, root: int, scale: Sequence[int]) -> PrunedTree:
    """Return the nodes by depth, those of one parent together, the heaviest first."""
    weight = weights(tree.totals(), scale)
    index_of = np.zeros(len(tree) + 1, dtype=np.int64)
    index_of[NONE] = NONE
    order, count = [], 0
    for rows in by_level(tree.depth()):
        sequence = np.lexsort(
            (rows, -weight[rows], tree.is_smaller[rows], index_of[tree.parent[rows]])
        )
        order.append(rows[sequence])
        index_of[rows[sequence]] = count + np.arange(len(rows))
        count += len(rows)
    rows = np.concatenate(order) if order else np.zeros(0, dtype=np.int64)
    return PrunedTree(
        tree=replace(
            tree,
            parent=index_of[tree.parent[rows]],
            name=tree.name[rows],
            self_values=tree.self_values[:, rows],
            calls=tree.calls[:, rows],
            merged_count=tree.merged_count[rows],
        ),
        root=int(index_of[root]) if root != NONE else NONE,
    )
