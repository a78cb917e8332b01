"""Two flame graphs as one: nodes by their path of names, with a value on either side.

torch names a Python function by the line where it begins, and what changes a program moves lines.
So, of two runs of a program, functions of one name in one file that do not stand in the same line
on both sides are the same in the order of their lines, where there are as many on both sides.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.call_paths import merge_calls
from stepscope.analyses.flames.flame_tree import NONE, FlameTree, Nodes, line_sums
from stepscope.analyses.flames.pruning import with_smaller
from stepscope.analyses.host.library_detection import FRAME


def combine(
    first: FlameTree, second: FlameTree, moved: Mapping[str, str] | None = None
) -> FlameTree:
    """Return a tree of two sides; both are of one side, and in the same unit.

    `moved` says how names of the second are called on the first, where that is otherwise.
    """
    (first, _), (second, _) = with_smaller(first), with_smaller(second)
    names, kinds, codes = _names(first, second, moved or {})
    parent = np.concatenate(
        (first.parent, np.where(second.parent == NONE, NONE, second.parent + len(first)))
    )
    depth = np.concatenate((first.depth(), second.depth()))
    paths = merge_calls(parent, depth, np.concatenate(codes), len(names))
    merged_count = np.zeros(len(paths), dtype=np.int64)
    np.maximum.at(
        merged_count, paths.node, np.concatenate((first.merged_count, second.merged_count))
    )
    return FlameTree(
        parent=paths.parent,
        name=paths.name,
        names=names,
        kinds=kinds,
        self_values=line_sums(
            _beside(first.self_values, second.self_values), paths.node, len(paths)
        ),
        calls=line_sums(_beside(first.calls, second.calls), paths.node, len(paths)),
        merged_count=merged_count,
        unit=first.unit,
    )


def _beside(first: Nodes, second: Nodes) -> Nodes:
    """Return two lines, each 0 where the other has its values."""
    return np.vstack(
        (np.pad(first[0], (0, second.shape[1])), np.pad(second[0], (first.shape[1], 0)))
    )


def moved_names(first: Iterable[str], second: Iterable[str]) -> dict[str, str]:
    """Return how functions of the second side are called on the first, where lines have moved."""
    here, there = set(first), set(second)
    places, others = _by_function(here - there), _by_function(there - here)
    return {
        name: own
        for function, names in others.items()
        if len(names) == len(places.get(function, ()))
        for name, own in zip(names, places[function], strict=True)
    }


def _by_function(names: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    """Return the names of each function of a file, in the order of their lines."""
    found: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for name in names:
        if match := FRAME.match(name):
            places = found.setdefault((match["file"], match["function"]), [])
            places.append((int(match["line"]), name))
    return {function: [name for _, name in sorted(places)] for function, places in found.items()}


def _names(
    first: FlameTree, second: FlameTree, moved: Mapping[str, str]
) -> tuple[tuple[str, ...], NDArray[np.int8], list[Nodes]]:
    """Return the names of both, what they are, and the nodes' names on each side.

    Names are the same where what they name is of the same kind.
    """
    place: dict[tuple[str, int], int] = {}
    codes = []
    for tree in (first, second):
        names = [moved.get(name, name) for name in tree.names] if tree is second else tree.names
        keys = zip(names, tree.kinds.tolist(), strict=True)
        translated = np.array([place.setdefault(key, len(place)) for key in keys], dtype=np.int64)
        codes.append(translated[tree.name])
    kinds = np.array([kind for _, kind in place], dtype=np.int8)
    return tuple(name for name, _ in place), kinds, codes
