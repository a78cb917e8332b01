"""All host calls as a tree and as a flame graph: Python functions, operators, runtime calls.

Calls nest by time on each thread, as in torch's own tree (`EventList._populate_cpu_children`). The
profiler's `Python parent id` agrees where it is present, but lacks callers that started before the
trace.

A call whose only child has its name is one call with it, as everywhere (`operators/costs.py`): one
node, and one of the calls of that node.

An annotation starts inside the Python frame that opens it and outlives that frame: it is the child
of the call that contains it completely, and the parent of the calls in it.

torch 1.8 to 1.10 recorded no Python calls, but stacks as text, innermost first: `model.py(3):
forward;train.py(7): main`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.ancestry import nearest, with_descendants
from stepscope.analyses.core.call_paths import Paths, merge_calls
from stepscope.analyses.core.group_statistics import sums_where
from stepscope.analyses.core.links import links
from stepscope.analyses.operators.costs import operator_calls
from stepscope.model import call_tree
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames.steps import without_number
from stepscope.model.trace import Trace, computed

ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-fA-F]+")
"""Address of the object of a built-in method, different each time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HostTree:
    """Rows are those of `python_calls`, then of `host_calls`, then of `runtime_calls`."""

    host_offset: int
    """Row of the first host call."""
    runtime_offset: int
    """Row of the first runtime call."""
    name: Ints
    """Index into `names`."""
    names: tuple[str, ...]
    """Distinct names, without addresses of objects, and with one name for all steps."""
    thread: NDArray[np.integer]
    start_ns: Ints
    duration_ns: Ints
    nesting: call_tree.Nesting
    until_ns: Ints
    """End of the call, or the start of a call that crosses it. Annotations cross the functions that
    open and close them."""
    self_ns: Ints
    """Time in which this was the latest started of the running calls; sums to the thread's time."""
    device_ns: Ints
    """Of kernels, copies and memory sets that the call launched directly."""
    is_operator: Mask
    """Operators and runtime calls; not Python functions and annotations."""

    def __len__(self) -> int:
        """Return the number of calls."""
        return len(self.name)


@computed
def host_tree(trace: Trace) -> HostTree:
    """Return every host event in one tree."""
    frames = trace.python_calls, trace.host_calls, trace.runtime_calls
    thread = np.concatenate([frame["thread"].cat.codes.to_numpy() for frame in frames])
    start_ns, duration_ns = (
        np.concatenate([frame[column].to_numpy() for frame in frames])
        for column in ("start_ns", "duration_ns")
    )
    name, names = _names([frame["name"] for frame in frames])
    nesting = call_tree.nest(thread, start_ns, duration_ns)
    until_ns = call_tree.until_ns(nesting, thread, start_ns, duration_ns)
    host_offset = len(frames[0])
    runtime_offset = host_offset + len(frames[1])
    return HostTree(
        host_offset=host_offset,
        runtime_offset=runtime_offset,
        name=name,
        names=names,
        thread=thread,
        start_ns=start_ns,
        duration_ns=duration_ns,
        nesting=nesting,
        until_ns=until_ns,
        self_ns=call_tree.self_ns(nesting.parent, until_ns - start_ns),
        device_ns=_device_ns(trace, host_offset, runtime_offset, len(name)),
        is_operator=np.concatenate(
            [
                np.zeros(host_offset, dtype=bool),
                trace.host_calls["is_operator"].to_numpy(),
                np.ones(len(name) - runtime_offset, dtype=bool),
            ]
        ),
    )


def shown_name(name: str) -> str:
    """Return a call's name without the parts that differ from call to call."""
    return without_number(ADDRESS.sub("", name))


def _names(columns: "list[pd.Series]") -> tuple[Ints, tuple[str, ...]]:
    index: dict[str, int] = {}
    codes = []
    for column in columns:
        texts = [shown_name(str(text)) for text in column.cat.categories]
        translated = [index.setdefault(text, len(index)) for text in (*texts, "")]
        # The last is of events without a name, whose code is -1.
        codes.append(np.array(translated, dtype=np.int64)[column.cat.codes.to_numpy()])
    return np.concatenate(codes), tuple(index)


def _device_ns(trace: Trace, host_offset: int, runtime_offset: int, count: int) -> Ints:
    """Return the device time that each row launched directly, by `core.links`."""
    linked = links(trace)
    call, owner = linked.call_of_device_event, linked.owner_of_device_event
    row = np.where(call >= 0, call + runtime_offset, np.where(owner >= 0, owner + host_offset, -1))
    return sums_where(trace.device_events["duration_ns"].to_numpy(), row, count)


@dataclass(frozen=True, kw_only=True, eq=False)
class Flame:
    """Columns of a flame graph: one row per node of `paths`."""

    paths: Paths
    names: tuple[str, ...]
    """Texts that `paths.name` indexes."""
    call_count: Ints
    """Calls, counted as in the table of operators."""
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
    is_counted, has_node = _counted(trace, tree), np.ones(len(name), dtype=bool)
    parent_name = np.append(name, NONE)[parent[: len(tree)]]
    has_node[: len(tree)] = is_counted | (tree.name != parent_name)
    paths = merge_calls(*_without(parent, depth, has_node), name[has_node], len(names))
    node = paths.node[(np.cumsum(has_node) - 1)[nearest(parent, has_node)]]
    paths = replace(paths, node=node[: len(tree)])
    host_self_ns = paths.sums(tree.self_ns)
    device_self_ns = paths.sums(tree.device_ns)
    host_total_ns, device_total_ns = with_descendants(paths.parent, host_self_ns, device_self_ns)
    return Flame(
        paths=paths,
        names=names,
        call_count=np.bincount(paths.node[is_counted], minlength=len(paths)),
        host_self_ns=host_self_ns,
        host_total_ns=host_total_ns,
        device_self_ns=device_self_ns,
        device_total_ns=device_total_ns,
    )


def _counted(trace: Trace, tree: HostTree) -> Mask:
    """Return a mask of the tree's rows that are calls, and not another's of the same name."""
    counted = operator_calls(trace).counted
    is_counted = np.ones(len(tree), dtype=bool)
    is_counted[tree.host_offset : tree.runtime_offset] = counted == np.arange(len(counted))
    return is_counted


def _without(
    parent: Ints, depth: NDArray[np.integer], has_node: Mask
) -> tuple[Ints, NDArray[np.integer]]:
    """Return the parents and depths of the calls with a node, as if there were no others."""
    if has_node.all():
        return parent, depth
    skipped = np.zeros(len(parent) + 1, dtype=np.int64)  # the last is for row -1
    for rows in call_tree.by_level(depth):
        skipped[rows] = skipped[parent[rows]] + ~has_node[rows]
    index = np.append(np.cumsum(has_node) - 1, NONE)
    above = np.append(nearest(parent, has_node), NONE)[parent[has_node]]
    return index[above], (depth - skipped[:-1])[has_node]


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
