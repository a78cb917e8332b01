"""A flame graph's tree: paths of names with a self value, on one side or on two.

A comparison of two traces has a value on each side; otherwise there is one side. A node's total is
its self value plus the totals of its children, on every side, also after pruning.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.call_paths import is_outermost, merge_calls
from stepscope.analyses.core.group_statistics import sums
from stepscope.model import call_tree
from stepscope.model.arrays import NONE, Floats, Ints, Mask
from stepscope.model.call_tree import depth_of

Unit = Literal["ns", "bytes"]
KINDS = {
    "user": "Your Python",
    "python": "Other Python",
    "module": "Module",
    "operator": "Operator",
    "annotation": "Annotation",
    "dataloader": "DataLoader",
    "runtime": "Runtime call",
    "kernel": "Kernel",
    "communication": "Communication",
    "memcpy": "Copy",
    "memset": "Memory set",
    "rest": "Not assigned",
    "smaller": "Smaller frames",
}
"""Kinds of frames, in the order of the codes in `FlameTree.kinds`."""
CODES = {kind: code for code, kind in enumerate(KINDS)}
INSTANCE = re.compile(r"_\d+$")
"""torch numbers the instances of a class (`torch/csrc/profiler/collection.cpp`). Ranges of
Lightning, which begin with `[pl]`, contain names of attributes."""
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, kw_only=True, eq=False)
class FlameTree:
    """One row per path of names; a parent's row is lower than its children's."""

    parent: Ints
    """A row, or -1 at the top."""
    name: Ints
    """An index into `names`."""
    names: tuple[str, ...]
    kinds: NDArray[np.int8]
    """Kind of each name: codes of `KINDS`."""
    self_values: Ints
    """Value of each node without its children, one line per side. Never below 0."""
    calls: Ints
    """Number of calls of each node, one line per side."""
    merged_count: Ints
    """Number of frames that a node of kind `smaller` stands for; 0 for all others."""
    unit: Unit

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.parent)

    @property
    def kind(self) -> NDArray[np.int8]:
        """Kind of each node."""
        return self.kinds[self.name]

    @property
    def is_smaller(self) -> Mask:
        """Nodes that stand for merged small frames."""
        return np.asarray(self.kind == CODES["smaller"])

    def depth(self) -> Ints:
        """Return the number of ancestors of each node."""
        return call_tree.depth_of(self.parent)

    def totals(self) -> Ints:
        """Return the value of each node with its descendants, one line per side."""
        lines = ancestry.with_descendants(self.parent, *self.self_values)
        return np.array(lines, dtype=np.int64).reshape(self.self_values.shape)

    def whole(self) -> list[int]:
        """Return the total of the tree, of each side."""
        return [int(side.sum()) for side in self.self_values]


def weights(values: Ints, scale: Sequence[int]) -> Floats:
    """Return the sum of values over all sides, each divided by its scale (its steps)."""
    return np.asarray(sum(side / per for side, per in zip(values, scale, strict=True)))


def line_sums(values: Ints, group: Ints, count: int) -> Ints:
    """Return the sums of groups, one line per side."""
    lines = [sums(side, group, count) for side in values]
    return np.array(lines, dtype=np.int64).reshape(len(values), count)


def key_of(name: str) -> str:
    """Return the key of a name in links: its CRC-32 in base 36."""
    rest, word = crc32(name.encode("utf-8", "replace")), ""
    while rest or not word:
        rest, digit = divmod(rest, len(DIGITS))
        word = DIGITS[digit] + word
    return word


def keys_of(names: Sequence[str]) -> Ints:
    """Return the keys of names as numbers."""
    return np.array([crc32(name.encode("utf-8", "replace")) for name in names], dtype=np.int64)


def select_nodes(tree: FlameTree, selected: Mask, rest: str) -> FlameTree:
    """Return the tree of the selected nodes.

    Values of other nodes go to the nearest selected ancestor; without one, to a node named `rest`.
    """
    rows = np.flatnonzero(selected)
    index_of = np.full(len(tree) + 1, NONE, dtype=np.int64)
    index_of[rows] = np.arange(len(rows))
    above = np.append(ancestry.nearest(tree.parent, selected), NONE)
    parent = index_of[above[tree.parent[rows]]]
    paths = merge_calls(parent, call_tree.depth_of(parent), tree.name[rows], len(tree.names))
    node = np.append(paths.node, NONE)[index_of[above[:-1]]]
    is_unassigned = node == NONE
    count = len(paths) + 1
    self_values = line_sums(tree.self_values, np.where(is_unassigned, len(paths), node), count)
    last = count if self_values[:, -1].any() else count - 1
    return FlameTree(
        parent=np.append(paths.parent, NONE)[:last],
        name=np.append(paths.name, len(tree.names))[:last],
        names=(*tree.names, rest),
        kinds=np.append(tree.kinds, np.int8(CODES["rest"])),
        self_values=self_values[:, :last],
        calls=np.pad(line_sums(tree.calls[:, rows], paths.node, len(paths)), ((0, 0), (0, 1)))[
            :, :last
        ],
        merged_count=np.append(sums(tree.merged_count[rows], paths.node, len(paths)), 0)[:last],
        unit=tree.unit,
    )


def without_instances(tree: FlameTree) -> FlameTree:
    """Return the tree with all instances of a module merged: `Linear_3` is `Linear`."""
    is_module = tree.kinds == CODES["module"]
    texts = [
        INSTANCE.sub("", name) if module and not name.startswith("[") else name
        for name, module in zip(tree.names, is_module.tolist(), strict=True)
    ]
    code_of: dict[tuple[str, int], int] = {}
    pairs = zip(texts, tree.kinds.tolist(), strict=True)
    code = np.array([code_of.setdefault(pair, len(code_of)) for pair in pairs], dtype=np.int64)
    paths = merge_calls(tree.parent, tree.depth(), code[tree.name], len(code_of))
    return FlameTree(
        parent=paths.parent,
        name=paths.name,
        names=tuple(name for name, _ in code_of),
        kinds=np.array([kind for _, kind in code_of], dtype=np.int8),
        self_values=line_sums(tree.self_values, paths.node, len(paths)),
        calls=line_sums(tree.calls, paths.node, len(paths)),
        merged_count=sums(tree.merged_count, paths.node, len(paths)),
        unit=tree.unit,
    )


def node_at(tree: FlameTree, path: Sequence[str]) -> int:
    """Return the deepest node on a path of keys from the top, or -1."""
    keys, at = keys_of(tree.names)[tree.name], NONE
    for key in path:
        code = int(key, len(DIGITS))
        rows = np.flatnonzero((tree.parent == at) & (keys == code))
        if not len(rows):
            break
        at = int(rows[0])
    return at


@dataclass(frozen=True, kw_only=True, eq=False)
class Functions:
    """One row per name; values are one line per side."""

    name: Ints
    """An index into the tree's names."""
    self_values: Ints
    total: Ints
    calls: Ints


def functions(tree: FlameTree) -> Functions:
    """Return the names in a tree, without the nodes of merged small frames.

    A recursive function's value counts once: its total is that of its outermost nodes.
    """
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


def outermost_nodes(tree: FlameTree) -> Mask:
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
