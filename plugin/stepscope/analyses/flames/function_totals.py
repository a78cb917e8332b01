"""Self value, total and callees of each name in a flame graph.

A recursive function's value counts once: its total is that of its outermost nodes.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.call_paths import is_outermost, merge_calls
from stepscope.analyses.flames.flame_tree import NONE, FlameTree, Nodes, line_sums
from stepscope.model.call_tree import depth_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Functions:
    """One row per name; values are one line per side."""

    name: Nodes
    """An index into the tree's names."""
    self_values: Nodes
    total: Nodes
    calls: Nodes


def functions(tree: FlameTree) -> Functions:
    """Return the names in a tree, without the nodes of merged small frames."""
    count = len(tree.names)
    outermost = np.flatnonzero(outermost_nodes(tree))
    rows = np.unique(tree.name[~tree.is_smaller])
    totals = tree.totals()
    return Functions(
        name=rows,
        self_values=line_sums(tree.self_values, tree.name, count)[:, rows],
        total=line_sums(totals[:, outermost], tree.name[outermost], count)[:, rows],
        calls=line_sums(tree.calls, tree.name, count)[:, rows],
    )


def outermost_nodes(tree: FlameTree) -> NDArray[np.bool_]:
    """Return the nodes without an ancestor of the same name."""
    return is_outermost(tree.name, tree.parent, tree.depth())


def callees(tree: FlameTree, name: str) -> FlameTree:
    """Return one tree of all callees of a function, from all its callers."""
    is_match = np.isin(tree.name, [code for code, text in enumerate(tree.names) if text == name])
    tops = outermost_nodes(tree) & is_match
    rows = np.flatnonzero(ancestry.nearest(tree.parent, tops) != NONE)
    index_of = np.full(len(tree) + 1, NONE, dtype=np.int64)
    index_of[rows] = np.arange(len(rows))
    parent = index_of[tree.parent[rows]]
    paths = merge_calls(parent, depth_of(parent), tree.name[rows], len(tree.names))
    (merged_count,) = line_sums(tree.merged_count[None, rows], paths.node, len(paths))
    return replace(
        tree,
        parent=paths.parent,
        name=paths.name,
        self_values=line_sums(tree.self_values[:, rows], paths.node, len(paths)),
        calls=line_sums(tree.calls[:, rows], paths.node, len(paths)),
        merged_count=merged_count,
    )
