"""What is drawn of a flame graph: nodes large enough to be seen, and one node for the smaller ones.

Whatever is left out of a node stands beside its children as one node of the kind `smaller`, so that
all sums stay what they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.flames.flame_tree import (
    CODES,
    NONE,
    FlameTree,
    line_sums,
    node_at,
    weights,
)
from stepscope.model.call_tree import by_level

PIECES = 4000
"""A node smaller than this part of what is shown is narrower than a pixel."""
MOST_NODES = 10_000
"""Each may have smaller frames beside its children: an answer has at most twice as many nodes."""


@dataclass(frozen=True, kw_only=True)
class Viewport:
    """How much is drawn."""

    scale: Sequence[int]
    """What each side's values are divided by before they are compared: its steps, or 1."""
    path: Sequence[str] = ()
    """Keys of names that lead to the node that fills the picture."""
    pieces: int = PIECES
    most: int = MOST_NODES


@dataclass(frozen=True, kw_only=True, eq=False)
class PrunedTree:
    """Nodes by depth; children of one node follow each other, the heaviest first."""

    tree: FlameTree
    root: int
    """The node that fills the picture; -1: all do."""


def prune(tree: FlameTree, frame: Viewport) -> PrunedTree:
    """Return what is drawn of a tree."""
    root = node_at(tree, frame.path)
    weight = weights(tree.totals(), frame.scale)
    kept = _kept(tree, weight, root, frame)
    return in_order(without(tree, kept), root=_place(kept, root), scale=frame.scale)


def _kept(
    tree: FlameTree, weight: NDArray[np.float64], root: int, frame: Viewport
) -> NDArray[np.bool_]:
    whole = weight[root] if root != NONE else weight[tree.parent == NONE].sum()
    kept = (weight >= whole / frame.pieces) & (weight > 0) & ~tree.is_smaller
    if root != NONE:
        marked = np.zeros(len(tree), dtype=bool)
        marked[root] = True
        kept &= ancestry.nearest(tree.parent, marked) != NONE
    rows = np.flatnonzero(kept)
    if len(rows) > frame.most:
        # A parent weighs no less than its child and comes first, so it is never left out alone.
        rows = rows[np.argsort(-weight[rows], kind="stable")[: frame.most]]
        kept = np.zeros(len(tree), dtype=bool)
        kept[rows] = True
    while root != NONE:
        kept[root] = True
        root = int(tree.parent[root])
    return np.asarray(kept)


def _place(kept: NDArray[np.bool_], row: int) -> int:
    return int(kept[:row].sum()) if row != NONE else NONE


def without(tree: FlameTree, kept: NDArray[np.bool_]) -> FlameTree:
    """Return the kept nodes, in their order, then a node for each of them that lost something.

    The parent of a kept node is kept.
    """
    tree, smaller = with_smaller(tree)
    totals, rows = tree.totals(), np.flatnonzero(kept)
    place = np.full(len(tree) + 1, NONE, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    is_gone = ~kept & totals.any(axis=0)
    is_top = is_gone & np.append(kept, True)[tree.parent]
    tops = np.flatnonzero(is_top)
    above, group = np.unique(place[tree.parent[tops]], return_inverse=True)
    count = len(above)
    group_of = np.full(len(tree), NONE, dtype=np.int64)
    group_of[tops] = group
    gone = np.flatnonzero(is_gone)
    of_gone = group_of[ancestry.nearest(tree.parent, is_top)[gone]]
    merged_count = sums(np.maximum(tree.merged_count[gone], 1), of_gone, count)
    return replace(
        tree,
        parent=np.concatenate((place[tree.parent[rows]], above)),
        name=np.concatenate((tree.name[rows], np.full(count, smaller))),
        self_values=np.hstack(
            (tree.self_values[:, rows], line_sums(totals[:, tops], group, count))
        ),
        calls=np.hstack((tree.calls[:, rows], line_sums(tree.calls[:, tops], group, count))),
        merged_count=np.concatenate((np.zeros(len(rows), dtype=np.int64), merged_count)),
    )


def with_smaller(tree: FlameTree) -> tuple[FlameTree, int]:
    """Return the tree with a name for smaller frames, and that name's code."""
    known = np.flatnonzero(tree.kinds == CODES["smaller"])
    if len(known):
        return tree, int(known[0])
    kinds = np.append(tree.kinds, np.int8(CODES["smaller"]))
    return replace(tree, names=(*tree.names, ""), kinds=kinds), len(tree.names)


def in_order(tree: FlameTree, *, root: int, scale: Sequence[int]) -> PrunedTree:
    """Return the nodes by depth, those of one parent together, the heaviest first."""
    weight = weights(tree.totals(), scale)
    place = np.zeros(len(tree) + 1, dtype=np.int64)
    place[NONE] = NONE
    order, count = [], 0
    for rows in by_level(tree.depth()):
        sequence = np.lexsort(
            (rows, -weight[rows], tree.is_smaller[rows], place[tree.parent[rows]])
        )
        order.append(rows[sequence])
        place[rows[sequence]] = count + np.arange(len(rows))
        count += len(rows)
    rows = np.concatenate(order) if order else np.zeros(0, dtype=np.int64)
    return PrunedTree(
        tree=replace(
            tree,
            parent=place[tree.parent[rows]],
            name=tree.name[rows],
            self_values=tree.self_values[:, rows],
            calls=tree.calls[:, rows],
            merged_count=tree.merged_count[rows],
        ),
        root=int(place[root]) if root != NONE else NONE,
    )
