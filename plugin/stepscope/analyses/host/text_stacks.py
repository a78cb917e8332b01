"""Call stacks that a trace holds as text, as a tree: torch 1.8 to 1.10 recorded no Python calls.

`Call stack` is written innermost first: `model.py(3): forward;train.py(7): main`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NONE = -1
MOST_FRAMES = 256
"""Of a stack, the innermost."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StackTree:
    """One node a distinct path of functions from the outermost; parents come first."""

    parent: NDArray[np.int64]
    depth: NDArray[np.int64]
    name: NDArray[np.int64]
    names: tuple[str, ...]
    leaf: NDArray[np.int64]
    """Of each text, the node of its innermost function; -1 where it has none."""


def stack_tree(texts: Sequence[str]) -> StackTree:
    """Return the tree of these stacks."""
    names: dict[str, int] = {}
    nodes: dict[tuple[int, int], int] = {}
    depth: list[int] = []
    leaves: list[int] = []
    for text in texts:
        node = NONE
        frames = [frame.strip() for frame in text.split(";", MOST_FRAMES)[:MOST_FRAMES]]
        for place, frame in enumerate(reversed([frame for frame in frames if frame])):
            key = node, names.setdefault(frame, len(names))
            node = nodes.setdefault(key, len(nodes))
            if node == len(depth):
                depth.append(place)
        leaves.append(node)
    keys = np.array(list(nodes), dtype=np.int64).reshape(-1, 2)
    return StackTree(
        parent=keys[:, 0],
        depth=np.array(depth, dtype=np.int64),
        name=keys[:, 1],
        names=tuple(names),
        leaf=np.array(leaves, dtype=np.int64),
    )
