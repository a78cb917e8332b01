"""A flame graph's tree: paths of names with a value of their own, on one side or on two.

Where two recordings are compared, a node has a value on each side; otherwise there is one side.
A node's total is its own value with those of all below it: that law holds on every side, also
where small nodes were put together (`drawn`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.call_paths import merge_calls
from stepscope.analyses.core.group_statistics import sums
from stepscope.model import call_tree

NONE = -1
Nodes = NDArray[np.int64]
Unit = Literal["ns", "bytes"]
KINDS = {
    "user": "Your Python",
    "python": "Other Python",
    "module": "Module",
    "operator": "Operator",
    "annotation": "Annotation",
    "runtime": "Runtime call",
    "kernel": "Device work",
    "rest": "Not assigned",
    "smaller": "Smaller frames",
}
"""What a frame is, by the order of the codes in `FlameTree.kinds`."""
CODES = {kind: code for code, kind in enumerate(KINDS)}
INSTANCE = re.compile(r"_\d+$")
"""torch numbers the instances of a class (`torch/csrc/profiler/collection.cpp`). Ranges of
Lightning, which begin with `[pl]`, bear names of attributes."""
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, kw_only=True, eq=False)
class FlameTree:
    """One row a path of names; a parent's row is lower than its children's."""

    parent: Nodes
    """A row, or -1 at the top."""
    name: Nodes
    """An index into `names`."""
    names: tuple[str, ...]
    kinds: NDArray[np.int8]
    """What each of the names is: codes of `KINDS`."""
    self_values: Nodes
    """The value of the node without those below it: one line a side. Never below 0."""
    calls: Nodes
    """How often it was called: one line a side."""
    merged_count: Nodes
    """How many frames a node of the kind `smaller` stands for; 0 for all others."""
    unit: Unit

    def __len__(self) -> int:
        """Return how many nodes there are."""
        return len(self.parent)

    @property
    def kind(self) -> NDArray[np.int8]:
        """What each node is."""
        return self.kinds[self.name]

    @property
    def is_smaller(self) -> NDArray[np.bool_]:
        """Which nodes stand for frames that were put together."""
        return np.asarray(self.kind == CODES["smaller"])

    def depth(self) -> Nodes:
        """Return how many nodes are above each."""
        return call_tree.depth_of(self.parent)

    def totals(self) -> Nodes:
        """Return the value of each node with all below it, a line a side."""
        lines = ancestry.with_descendants(self.parent, *self.self_values)
        return np.array(lines, dtype=np.int64).reshape(self.self_values.shape)

    def whole(self) -> list[int]:
        """Return the sum of all, of each side."""
        return [int(side.sum()) for side in self.self_values]


def weights(values: Nodes, scale: Sequence[int]) -> NDArray[np.float64]:
    """Return how much values on all sides are together, each side over its scale (its steps)."""
    return np.asarray(sum(side / per for side, per in zip(values, scale, strict=True)))


def line_sums(values: Nodes, group: Nodes, count: int) -> Nodes:
    """Return the sums of groups, a line a side."""
    lines = [sums(side, group, count) for side in values]
    return np.array(lines, dtype=np.int64).reshape(len(values), count)


def key_of(name: str) -> str:
    """Return a short word for a name, by which links name a frame: its CRC-32 in base 36."""
    rest, word = crc32(name.encode("utf-8", "replace")), ""
    while rest or not word:
        rest, digit = divmod(rest, len(DIGITS))
        word = DIGITS[digit] + word
    return word


def keys_of(names: Sequence[str]) -> NDArray[np.int64]:
    """Return the keys of names as numbers."""
    return np.array([crc32(name.encode("utf-8", "replace")) for name in names], dtype=np.int64)


def select_nodes(tree: FlameTree, wanted: NDArray[np.bool_], rest: str) -> FlameTree:
    """Return the tree of the wanted nodes alone.

    What others have goes to the nearest wanted node above; where there is none, to a node of the
    name `rest`.
    """
    rows = np.flatnonzero(wanted)
    place = np.full(len(tree) + 1, NONE, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    above = np.append(ancestry.nearest(tree.parent, wanted), NONE)
    parent = place[above[tree.parent[rows]]]
    paths = merge_calls(parent, call_tree.depth_of(parent), tree.name[rows], len(tree.names))
    node = np.append(paths.node, NONE)[place[above[:-1]]]
    is_left = node == NONE
    count = len(paths) + 1
    own = line_sums(tree.self_values, np.where(is_left, len(paths), node), count)
    last = count if own[:, -1].any() else count - 1
    return FlameTree(
        parent=np.append(paths.parent, NONE)[:last],
        name=np.append(paths.name, len(tree.names))[:last],
        names=(*tree.names, rest),
        kinds=np.append(tree.kinds, np.int8(CODES["rest"])),
        self_values=own[:, :last],
        calls=np.pad(line_sums(tree.calls[:, rows], paths.node, len(paths)), ((0, 0), (0, 1)))[
            :, :last
        ],
        merged_count=np.append(sums(tree.merged_count[rows], paths.node, len(paths)), 0)[:last],
        unit=tree.unit,
    )


def without_instances(tree: FlameTree) -> FlameTree:
    """Return the tree in which all instances of a module are one: `Linear_3` is `Linear`."""
    is_module = tree.kinds == CODES["module"]
    texts = [
        INSTANCE.sub("", name) if module and not name.startswith("[") else name
        for name, module in zip(tree.names, is_module.tolist(), strict=True)
    ]
    place: dict[tuple[str, int], int] = {}
    pairs = zip(texts, tree.kinds.tolist(), strict=True)
    code = np.array([place.setdefault(pair, len(place)) for pair in pairs], dtype=np.int64)
    paths = merge_calls(tree.parent, tree.depth(), code[tree.name], len(place))
    return FlameTree(
        parent=paths.parent,
        name=paths.name,
        names=tuple(name for name, _ in place),
        kinds=np.array([kind for _, kind in place], dtype=np.int8),
        self_values=line_sums(tree.self_values, paths.node, len(paths)),
        calls=line_sums(tree.calls, paths.node, len(paths)),
        merged_count=sums(tree.merged_count, paths.node, len(paths)),
        unit=tree.unit,
    )


def node_at(tree: FlameTree, path: Sequence[str]) -> int:
    """Return the node to which keys of names lead from the top, as far as there are such."""
    keys, at = keys_of(tree.names)[tree.name], NONE
    for key in path:
        wanted = int(key, len(DIGITS))
        rows = np.flatnonzero((tree.parent == at) & (keys == wanted))
        if not len(rows):
            break
        at = int(rows[0])
    return at
