"""Two flame graphs as one: nodes by their path of names, with a value on either side.

torch names a Python function by its first line, and changes to a program move lines. So, in two
runs of a program, functions of one name in one file whose lines differ are matched in the order of
their lines, if there are as many on both sides.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.call_paths import merge_calls
from stepscope.analyses.flames.flame_tree import FlameTree, line_sums
from stepscope.analyses.flames.pruning import with_smaller
from stepscope.analyses.host.library_detection import FRAME
from stepscope.model.arrays import NONE, Ints


def combine(
    first: FlameTree, second: FlameTree, moved: Mapping[str, str] | None = None
) -> FlameTree:
    """Return a tree of two sides from two one-sided trees in the same unit.

    `moved` maps names of the second tree to those of the first, if they differ.
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
            _side_by_side(first.self_values, second.self_values), paths.node, len(paths)
        ),
        calls=line_sums(_side_by_side(first.calls, second.calls), paths.node, len(paths)),
        merged_count=merged_count,
        unit=first.unit,
    )


def _side_by_side(first: Ints, second: Ints) -> Ints:
    """Return two lines, each padded with 0 for the other."""
    return np.vstack(
        (np.pad(first[0], (0, second.shape[1])), np.pad(second[0], (first.shape[1], 0)))
    )


def moved_names(first: Iterable[str], second: Iterable[str]) -> dict[str, str]:
    """Return the names on the first side of functions whose lines moved, by their second."""
    first_names, second_names = set(first), set(second)
    lines, others = (
        _by_function(first_names - second_names),
        _by_function(second_names - first_names),
    )
    return {
        name: first_name
        for function, names in others.items()
        if len(names) == len(lines.get(function, ()))
        for name, first_name in zip(names, lines[function], strict=True)
    }


def _by_function(names: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    """Return the names of each function of a file, in the order of their lines."""
    lines: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for name in names:
        if match := FRAME.match(name):
            numbers = lines.setdefault((match["file"], match["function"]), [])
            numbers.append((int(match["line"]), name))
    return {function: [name for _, name in sorted(numbers)] for function, numbers in lines.items()}


def _names(
    first: FlameTree, second: FlameTree, moved: Mapping[str, str]
) -> tuple[tuple[str, ...], NDArray[np.int8], list[Ints]]:
    """Return the names of both trees, their kinds, and the nodes' names on each side.

    Names are equal if their kinds are equal too.
    """
    code_of: dict[tuple[str, int], int] = {}
    codes = []
    for tree in (first, second):
        names = [moved.get(name, name) for name in tree.names] if tree is second else tree.names
        keys = zip(names, tree.kinds.tolist(), strict=True)
        translated = np.array(
            [code_of.setdefault(key, len(code_of)) for key in keys], dtype=np.int64
        )
        codes.append(translated[tree.name])
    kinds = np.array([kind for _, kind in code_of], dtype=np.int8)
    return tuple(name for name, _ in code_of), kinds, codes
