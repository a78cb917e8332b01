"""A flame graph read from the inside: each function with its own value, and below it its callers.

Inverted in full, a tree grows by the depth of its paths, so nothing is built that is not drawn:
level by level, what has become smaller than a pixel goes no further.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.flames.flame_tree import (
    DIGITS,
    NONE,
    FlameTree,
    Nodes,
    keys_of,
    line_sums,
    weights,
)
from stepscope.analyses.flames.function_totals import outermost_nodes
from stepscope.analyses.flames.pruning import PrunedTree, Viewport, in_order, with_smaller


@dataclass(frozen=True, kw_only=True, eq=False)
class _Stacks:
    """Paths that are still to be followed, from the inside: where each has come to."""

    cursor: Nodes
    """The node of the tree."""
    group: Nodes
    """The new node that the path is in."""
    self_values: Nodes
    calls: Nodes

    def only(self, chosen: NDArray[np.bool_]) -> "_Stacks":
        return _Stacks(
            cursor=self.cursor[chosen],
            group=self.group[chosen],
            self_values=self.self_values[:, chosen],
            calls=self.calls[:, chosen],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Level:
    """The new nodes that paths come to next."""

    of_stack: Nodes
    parent: Nodes
    name: Nodes
    self_values: Nodes
    """With all that comes below."""
    calls: Nodes


@dataclass(kw_only=True, eq=False)
class _Inverted:
    """The inverted tree as far as it was made."""

    tree: FlameTree
    frame: Viewport
    keys: NDArray[np.int64]
    smaller: int
    """The name of nodes for smaller frames."""
    floor: float = 0.0
    root: int = NONE
    found_count: int = 0
    """How many levels of the frame's path were found."""
    level: int = 0
    count: int = 0
    parts: list[tuple[Nodes, Nodes, Nodes, Nodes, Nodes]] = field(default_factory=list)

    def followed(self, stacks: _Stacks) -> _Stacks:
        """Add the nodes that paths come to next, and return the paths that go on."""
        level = self._next(stacks)
        kept = self._kept(level)
        place = np.full(len(kept), NONE, dtype=np.int64)
        place[kept] = self.count + np.arange(kept.sum())
        going = stacks.only(kept[level.of_stack])
        group = place[level.of_stack[kept[level.of_stack]]]
        above = self.tree.parent[going.cursor]
        ends = above == NONE
        own = line_sums(going.self_values[:, ends], group[ends] - self.count, int(kept.sum()))
        self._add(level.parent[kept], level.name[kept], own, level.calls[:, kept])
        self._add_smaller(level, ~kept)
        self.level += 1
        moved = _Stacks(cursor=above, group=group, self_values=going.self_values, calls=going.calls)
        return moved.only(~ends)

    def _next(self, stacks: _Stacks) -> _Level:
        names = len(self.tree.names)
        key = (stacks.group + 1) * names + self.tree.name[stacks.cursor]
        of_stack, distinct = pd.factorize(key)
        above, name = np.divmod(distinct, names)
        return _Level(
            of_stack=of_stack,
            parent=above - 1,
            name=name,
            self_values=line_sums(stacks.self_values, of_stack, len(distinct)),
            calls=line_sums(stacks.calls, of_stack, len(distinct)),
        )

    def _kept(self, level: _Level) -> NDArray[np.bool_]:
        weight = weights(level.self_values, self.frame.scale)
        is_frame = level.name != self.smaller
        if self.level < len(self.frame.path):
            wanted = int(self.frame.path[self.level], len(DIGITS))
            on_path = is_frame & (self.keys[level.name] == wanted)
            if on_path.any() and self.level == self.found_count:
                self.found_count += 1
                self.root = self.count
                self.floor = float(weight[on_path].sum()) / self.frame.pieces
                return np.asarray(on_path)
        kept = is_frame & (weight >= self.floor) & (weight > 0)
        fits = self.count + kept.sum() <= self.frame.most
        return np.asarray(kept & fits)

    def _add(self, parent: Nodes, name: Nodes, own: Nodes, calls: Nodes) -> None:
        self.parts.append((parent, name, own, calls, np.zeros(len(parent), dtype=np.int64)))
        self.count += len(parent)

    def _add_smaller(self, level: _Level, gone: NDArray[np.bool_]) -> None:
        parent, group = np.unique(level.parent[gone], return_inverse=True)
        count = len(parent)
        own, calls = (
            line_sums(each[:, gone], group, count) for each in (level.self_values, level.calls)
        )
        merged_count = np.bincount(group, minlength=count).astype(np.int64)
        self.parts.append((parent, np.full(count, self.smaller), own, calls, merged_count))
        self.count += count


def invert(tree: FlameTree, frame: Viewport, name: str | None = None) -> PrunedTree:
    """Return what is drawn of the inverted tree: of all functions' own values.

    With a name, it is that function alone, with all that it leads to.
    """
    tree, smaller = with_smaller(tree)
    stacks = _starting(tree, name)
    made = _Inverted(tree=tree, frame=frame, keys=keys_of(tree.names), smaller=smaller)
    made.floor = float(weights(stacks.self_values, frame.scale).sum()) / frame.pieces
    while len(stacks.cursor):
        stacks = made.followed(stacks)
    return in_order(_tree(tree, made), root=made.root, scale=frame.scale)


def _starting(tree: FlameTree, name: str | None) -> _Stacks:
    """Return the paths to follow: of nodes with a value, or of the outermost of a name."""
    if name is None:
        rows, own = np.flatnonzero(tree.self_values.any(axis=0)), tree.self_values
    else:
        codes = [code for code, text in enumerate(tree.names) if text == name]
        rows, own = np.flatnonzero(outermost_nodes(tree) & np.isin(tree.name, codes)), tree.totals()
    return _Stacks(
        cursor=rows,
        group=np.full(len(rows), NONE, dtype=np.int64),
        self_values=own[:, rows],
        calls=tree.calls[:, rows],
    )


def _tree(tree: FlameTree, made: _Inverted) -> FlameTree:
    if not made.parts:
        return _empty(tree)
    parent, name, own, calls, merged_count = zip(*made.parts, strict=True)
    return FlameTree(
        parent=np.concatenate(parent),
        name=np.concatenate(name),
        names=tree.names,
        kinds=tree.kinds,
        self_values=np.hstack(own),
        calls=np.hstack(calls),
        merged_count=np.concatenate(merged_count),
        unit=tree.unit,
    )


def _empty(tree: FlameTree) -> FlameTree:
    none = np.zeros(0, dtype=np.int64)
    values = tree.self_values[:, :0]
    return replace(
        tree, parent=none, name=none, self_values=values, calls=values, merged_count=none
    )
