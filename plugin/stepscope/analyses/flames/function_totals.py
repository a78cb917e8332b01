"""What a flame graph says of each name: its own value, its total, and where it is called.

A total counts a value once, also where a function calls itself: it is that of the outermost nodes
of the name.
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
    """One row a name that occurs; values are one line a side."""

    name: Nodes
    """An index into the tree's names."""
    self_values: Nodes
    total: Nodes
    calls: Nodes


def functions(tree: FlameTree) -> Functions:
    """Return the names that occur in a tree; not the nodes that stand for smaller frames."""
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
    """Tell which nodes have no node of their name above them."""
    return is_outermost(tree.name, tree.parent, tree.depth())


def callees(tree: FlameTree, name: str) -> FlameTree:
    """Return one tree of all that a function leads to, wherever it is called from."""
    wanted = np.isin(tree.name, [code for code, text in enumerate(tree.names) if text == name])
    tops = outermost_nodes(tree) & wanted
    rows = np.flatnonzero(ancestry.nearest(tree.parent, tops) != NONE)
    place = np.full(len(tree) + 1, NONE, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    parent = place[tree.parent[rows]]
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
