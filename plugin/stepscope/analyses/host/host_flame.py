"""Flame graph of all host calls, with host time and launched device time.

torch 1.8 to 1.10 recorded no Python calls, but stacks as text, innermost first: `model.py(3):
forward;train.py(7): main`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.ancestry import nearest, with_descendants
from stepscope.analyses.core.call_paths import Paths, merge_calls
from stepscope.analyses.host.host_call_tree import HostTree, host_tree
from stepscope.model.arrays import NONE, Ints
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True, eq=False)
class Flame:
    """Columns of a flame graph: one row per node of `paths`."""

    paths: Paths
    names: tuple[str, ...]
    """Texts that `paths.name` indexes."""
    call_count: Ints
    host_self_ns: Ints
    host_total_ns: Ints
    """Sum of the self times of the node and all below it."""
    device_self_ns: Ints
    device_total_ns: Ints

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.paths)


@computed
def host_flame(trace: Trace) -> Flame:
    """Return the flame graph of host time, and of device time by the launching call."""
    tree = host_tree(trace)
    parent, depth, name, names = _calls(trace, tree)
    paths = merge_calls(parent, depth, name, len(names))
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


def _calls(trace: Trace, tree: HostTree) -> tuple[Ints, NDArray[np.integer], Ints, tuple[str, ...]]:
    """Return the tree's parents, depths and names.

    Python functions recorded only in operators' stacks follow the tree's rows, one per distinct
    path, as callers of the operators.
    """
    parent, depth = tree.nesting.parent, tree.nesting.depth
    written = trace.host_calls["call_stack"].cat
    if tree.host_offset or not len(written.categories):
        return parent, depth, tree.name, tree.names
    stacks = text_stacks([str(text) for text in written.categories])
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


MOST_FRAMES = 256
"""Longest stack, of innermost frames."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TextStacks:
    """Tree of functions: one node per distinct path from the outermost; parents come first."""

    parent: Ints
    depth: Ints
    name: Ints
    names: tuple[str, ...]
    leaf: Ints
    """Node of each text's innermost function; -1 where it has none."""


def text_stacks(texts: Sequence[str]) -> TextStacks:
    """Return the tree of these stacks."""
    names: dict[str, int] = {}
    nodes: dict[tuple[int, int], int] = {}
    depth: list[int] = []
    leaves: list[int] = []
    for text in texts:
        node = NONE
        frames = [frame.strip() for frame in text.split(";", MOST_FRAMES)[:MOST_FRAMES]]
        for level, frame in enumerate(reversed([frame for frame in frames if frame])):
            key = node, names.setdefault(frame, len(names))
            node = nodes.setdefault(key, len(nodes))
            if node == len(depth):
                depth.append(level)
        leaves.append(node)
    keys = np.array(list(nodes), dtype=np.int64).reshape(-1, 2)
    return TextStacks(
        parent=keys[:, 0],
        depth=np.array(depth, dtype=np.int64),
        name=keys[:, 1],
        names=tuple(names),
        leaf=np.array(leaves, dtype=np.int64),
    )
