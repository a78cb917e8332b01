"""Inverted flame graph: each function with its self value, and its callers below it.

A full inversion grows by the depth of the paths, so only visible nodes are built: level by level,
paths smaller than a pixel end.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from stepscope.analyses.flames.flame_tree import (
    DIGITS,
    FlameTree,
    keys_of,
    line_sums,
    outermost_nodes,
    weights,
)
from stepscope.analyses.flames.pruning import PrunedTree, Viewport, in_order, with_smaller
from stepscope.model.arrays import NONE, Ints, Mask


@dataclass(frozen=True, kw_only=True, eq=False)
class _Stacks:
    """Paths from the inside out, with their current positions."""

    cursor: Ints
    """The current node of the tree."""
    group: Ints
    """The inverted node that the path is in."""
    self_values: Ints
    calls: Ints

    def select(self, selected: Mask) -> "_Stacks":
        return _Stacks(
            cursor=self.cursor[selected],
            group=self.group[selected],
            self_values=self.self_values[:, selected],
            calls=self.calls[:, selected],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Level:
    """The next inverted nodes of the paths."""

    of_stack: Ints
    parent: Ints
    name: Ints
    self_values: Ints
    """Including everything below."""
    calls: Ints


@dataclass(kw_only=True, eq=False)
class _Inversion:
    """The inverted tree so far."""

    tree: FlameTree
    frame: Viewport
    keys: Ints
    smaller: int
    """The name of nodes for merged small frames."""
    floor: float = 0.0
    root: int = NONE
    matched_count: int = 0
    """Matched levels of the view's path."""
    level: int = 0
    count: int = 0
    parts: list[tuple[Ints, Ints, Ints, Ints, Ints]] = field(default_factory=list)

    def followed(self, stacks: _Stacks) -> _Stacks:
        """Add the next nodes of the paths, and return the paths that go on."""
        level = self._next(stacks)
        retained = self._visible(level)
        node_of = np.full(len(retained), NONE, dtype=np.int64)
        node_of[retained] = self.count + np.arange(retained.sum())
        going = stacks.select(retained[level.of_stack])
        group = node_of[level.of_stack[retained[level.of_stack]]]
        above = self.tree.parent[going.cursor]
        ends = above == NONE
        self_values = line_sums(
            going.self_values[:, ends], group[ends] - self.count, int(retained.sum())
        )
        self._add(
            level.parent[retained], level.name[retained], self_values, level.calls[:, retained]
        )
        self._add_smaller(level, ~retained)
        self.level += 1
        moved = _Stacks(cursor=above, group=group, self_values=going.self_values, calls=going.calls)
        return moved.select(~ends)

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

    def _visible(self, level: _Level) -> Mask:
        weight = weights(level.self_values, self.frame.scale)
        is_frame = level.name != self.smaller
        if self.level < len(self.frame.path):
            key = int(self.frame.path[self.level], len(DIGITS))
            on_path = is_frame & (self.keys[level.name] == key)
            if on_path.any() and self.level == self.matched_count:
                self.matched_count += 1
                self.root = self.count
                self.floor = float(weight[on_path].sum()) / self.frame.pieces
                return np.asarray(on_path)
        retained = is_frame & (weight >= self.floor) & (weight > 0)
        fits = self.count + retained.sum() <= self.frame.most
        return np.asarray(retained & fits)

    def _add(self, parent: Ints, name: Ints, self_values: Ints, calls: Ints) -> None:
        self.parts.append((parent, name, self_values, calls, np.zeros(len(parent), dtype=np.int64)))
        self.count += len(parent)

    def _add_smaller(self, level: _Level, gone: Mask) -> None:
        parent, group = np.unique(level.parent[gone], return_inverse=True)
        count = len(parent)
        self_values, calls = (
            line_sums(values[:, gone], group, count) for values in (level.self_values, level.calls)
        )
        merged_count = np.bincount(group, minlength=count).astype(np.int64)
        self.parts.append((parent, np.full(count, self.smaller), self_values, calls, merged_count))
        self.count += count


def invert(tree: FlameTree, frame: Viewport, name: str | None = None) -> PrunedTree:
    """Return the visible part of the inverted tree, of all functions' self values.

    With a name, it is that function alone, with its total.
    """
    tree, smaller = with_smaller(tree)
    stacks = _starting(tree, name)
    inversion = _Inversion(tree=tree, frame=frame, keys=keys_of(tree.names), smaller=smaller)
    inversion.floor = float(weights(stacks.self_values, frame.scale).sum()) / frame.pieces
    while len(stacks.cursor):
        stacks = inversion.followed(stacks)
    return in_order(_tree(tree, inversion), root=inversion.root, scale=frame.scale)


def _starting(tree: FlameTree, name: str | None) -> _Stacks:
    """Return the initial paths: of nodes with a value, or of the outermost nodes of a name."""
    if name is None:
        rows, values = np.flatnonzero(tree.self_values.any(axis=0)), tree.self_values
    else:
        codes = [code for code, text in enumerate(tree.names) if text == name]
        rows, values = (
            np.flatnonzero(outermost_nodes(tree) & np.isin(tree.name, codes)),
            tree.totals(),
        )
    return _Stacks(
        cursor=rows,
        group=np.full(len(rows), NONE, dtype=np.int64),
        self_values=values[:, rows],
        calls=tree.calls[:, rows],
    )


def _tree(tree: FlameTree, inversion: _Inversion) -> FlameTree:
    if not inversion.parts:
        none = np.zeros(0, dtype=np.int64)
        values = tree.self_values[:, :0]
        return replace(
            tree, parent=none, name=none, self_values=values, calls=values, merged_count=none
        )
    parent, name, self_values, calls, merged_count = zip(*inversion.parts, strict=True)
    return replace(
        tree,
        parent=np.concatenate(parent),
        name=np.concatenate(name),
        self_values=np.hstack(self_values),
        calls=np.hstack(calls),
        merged_count=np.concatenate(merged_count),
    )
