"""Flame graphs of any tree: what is put together, inverted and compared sums to what there was."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analyses.flames.flame_tree import (
    CODES,
    FlameTree,
    callees,
    functions,
    key_of,
    node_at,
    select_nodes,
    without_instances,
)
from stepscope.analyses.flames.inverted_tree import invert
from stepscope.analyses.flames.pruning import PrunedTree, Viewport, prune
from stepscope.analyses.flames.tree_diff import combine, moved_names
from stepscope.analyses.flames.waiting_frames import waiting_nodes, without_waits

NAMES = ("a", "b", "c")
Path = tuple[str, ...]
Values = dict[Path, int]
PATHS = st.dictionaries(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(tuple),
    st.integers(0, 20),
    max_size=12,
)
ONE = Viewport(scale=(1,), pieces=1_000_000)


def tree_of(own: Values, kinds: tuple[str, ...] = ("user",) * 3) -> FlameTree:
    """Write a tree as what each path has of its own; each is called once."""
    every = {path[: depth + 1] for path in own for depth in range(len(path))}
    paths = sorted(every, key=lambda path: (len(path), path))
    place = {path: row for row, path in enumerate(paths)}
    return FlameTree(
        parent=np.array([place.get(path[:-1], -1) for path in paths], dtype=np.int64),
        name=np.array([NAMES.index(path[-1]) for path in paths], dtype=np.int64),
        names=NAMES,
        kinds=np.array([CODES[kind] for kind in kinds], dtype=np.int8),
        self_values=np.array([[own.get(path, 0) for path in paths]], dtype=np.int64),
        calls=np.ones((1, len(paths)), dtype=np.int64),
        merged_count=np.zeros(len(paths), dtype=np.int64),
        unit="ns",
    )


def paths_of(tree: FlameTree) -> list[Path]:
    """Read the nodes of a tree as paths; what stands for smaller frames is `…`."""
    paths: list[Path] = []
    for parent, name, kind in zip(tree.parent, tree.name, tree.kind, strict=True):
        word = "…" if kind == CODES["smaller"] else tree.names[name]
        paths.append((*(paths[parent] if parent >= 0 else ()), word))
    return paths


def own_of(tree: FlameTree, side: int = 0) -> Values:
    pairs = zip(paths_of(tree), tree.self_values[side].tolist(), strict=True)
    return {path: value for path, value in pairs if value}


def totals_of(tree: FlameTree, side: int = 0) -> Values:
    return dict(zip(paths_of(tree), tree.totals()[side].tolist(), strict=True))


def total_by_hand(own: Values, path: Path) -> int:
    return sum(value for each, value in own.items() if each[: len(path)] == path)


@given(PATHS, st.integers(1, 8), st.integers(1, 6))
def test_what_is_left_out_stands_beside_its_siblings(own: Values, pieces: int, most: int) -> None:
    shown = prune(tree_of(own), Viewport(scale=(1,), pieces=pieces, most=most)).tree
    totals, whole = totals_of(shown), sum(own.values())
    assert len(set(paths_of(shown))) == len(shown)
    assert sum(value for path, value in totals.items() if len(path) == 1) == whole
    for path, total in totals.items():
        if path[-1] != "…":
            assert total == total_by_hand(own, path)
            assert total * pieces >= whole
        else:
            left_out = {
                each[: len(path)]
                for each in own
                if each[: len(path) - 1] == path[:-1] and len(each) >= len(path)
            } - totals.keys()
            assert total == sum(total_by_hand(own, each) for each in left_out)
    assert (shown.merged_count > 0).tolist() == shown.is_smaller.tolist()
    assert len(shown) - int(shown.is_smaller.sum()) <= most


@given(PATHS)
def test_nodes_come_by_depth_and_the_heaviest_child_first(own: Values) -> None:
    shown = prune(tree_of(own), ONE).tree
    assert sorted(shown.depth().tolist()) == shown.depth().tolist()
    totals, parent = shown.totals()[0].tolist(), shown.parent.tolist()
    assert all(
        totals[at - 1] >= totals[at] for at in range(1, len(totals)) if parent[at - 1] == parent[at]
    )
    last_row = {row: at for at, row in enumerate(parent)}
    assert all(last_row[row] - parent.index(row) + 1 == parent.count(row) for row in parent)


def inverted_by_hand(own: Values) -> Values:
    sums: dict[Path, int] = defaultdict(int)
    for path, value in own.items():
        sums[path[::-1]] += value
    return {path: value for path, value in sums.items() if value}


@given(PATHS)
def test_callers_are_the_paths_from_the_inside(own: Values) -> None:
    assert own_of(invert(tree_of(own), ONE).tree) == inverted_by_hand(own)


@given(PATHS, st.integers(1, 8), st.integers(1, 6))
def test_callers_left_out_keep_the_sum(own: Values, pieces: int, most: int) -> None:
    shown = invert(tree_of(own), Viewport(scale=(1,), pieces=pieces, most=most)).tree
    inverted, totals = inverted_by_hand(own), totals_of(shown)
    assert sum(value for path, value in totals.items() if len(path) == 1) == sum(own.values())
    assert all(
        value == total_by_hand(inverted, path) for path, value in totals.items() if path[-1] != "…"
    )


@pytest.mark.parametrize("read", [prune, invert])
@given(own=PATHS, data=st.data())
def test_a_root_shows_more_of_what_is_below_it(
    read: Callable[[FlameTree, Viewport], PrunedTree], own: Values, data: st.DataObject
) -> None:
    tree = tree_of(own)
    every = paths_of(read(tree, ONE).tree)
    wanted = data.draw(st.sampled_from(every) if every else st.just(("nothing",)))
    keys = tuple(key_of(name) for name in wanted)
    drawing = read(tree, Viewport(scale=(1,), pieces=1, path=keys))
    totals = totals_of(drawing.tree)
    exact = totals_of(read(tree, ONE).tree)
    assert sum(value for path, value in totals.items() if len(path) == 1) == sum(own.values())
    if every:
        assert paths_of(drawing.tree)[drawing.root] == wanted
        assert totals[wanted] == exact[wanted]
        beside = [path for path in totals if path[-1] != "…" and path != wanted[: len(path)]]
        assert all(path[: len(wanted)] == wanted for path in beside)


def test_a_path_that_ends_nowhere_leads_as_far_as_it_can() -> None:
    tree = tree_of({("a", "b"): 1})
    assert node_at(tree, [key_of("a"), key_of("c"), key_of("b")]) == 0
    assert node_at(tree, [key_of("c")]) == -1


@given(PATHS)
def test_functions_count_what_recurs_once(own: Values) -> None:
    tree = tree_of(own)
    listed = functions(tree)
    every = set(paths_of(tree))
    for row, name in enumerate(listed.name.tolist()):
        word = NAMES[name]
        assert listed.self_values[0, row] == sum(
            value for path, value in own.items() if path[-1] == word
        )
        assert listed.total[0, row] == sum(value for path, value in own.items() if word in path)
        assert listed.calls[0, row] == sum(path[-1] == word for path in every)


@given(PATHS, st.sampled_from(NAMES))
def test_one_function_is_all_that_it_leads_to(own: Values, name: str) -> None:
    expected: dict[Path, int] = defaultdict(int)
    for path, value in own.items():
        if name in path:
            expected[path[path.index(name) :]] += value
    shown = own_of(callees(tree_of(own), name))
    assert shown == {path: value for path, value in expected.items() if value}


@given(PATHS, st.sampled_from(NAMES))
def test_what_leads_to_a_function_weighs_what_it_leads_to(own: Values, name: str) -> None:
    expected: dict[Path, int] = defaultdict(int)
    for path, value in own.items():
        if name in path:
            expected[path[: path.index(name) + 1][::-1]] += value
    shown = own_of(invert(tree_of(own), ONE, name).tree)
    assert shown == {path: value for path, value in expected.items() if value}


@given(PATHS)
def test_frames_that_are_not_shown_leave_their_value_to_those_around(own: Values) -> None:
    tree = tree_of(own, kinds=("user", "operator", "user"))
    expected: dict[Path, int] = defaultdict(int)
    for path, value in own.items():
        expected[tuple(name for name in path if name != "b") or ("rest",)] += value
    shown = select_nodes(tree, tree.kind == CODES["user"], "rest")
    assert own_of(shown) == {path: value for path, value in expected.items() if value}


@given(PATHS)
def test_instances_of_a_class_are_one_where_they_are_modules(own: Values) -> None:
    names = {"a": "Block_1", "b": "Block_12", "c": "step_1"}
    tree = replace(tree_of(own, kinds=("module", "module", "user")), names=tuple(names.values()))
    expected: dict[Path, int] = defaultdict(int)
    for path, value in own.items():
        expected[tuple({"a": "Block", "b": "Block", "c": "step_1"}[name] for name in path)] += value
    shown = own_of(without_instances(tree))
    assert shown == {path: value for path, value in expected.items() if value}


@given(PATHS, PATHS)
def test_two_are_compared_path_by_path(after: Values, before: Values) -> None:
    both = combine(tree_of(after), tree_of(before))
    assert own_of(both, 0) == {path: value for path, value in after.items() if value}
    assert own_of(both, 1) == {path: value for path, value in before.items() if value}
    shown = prune(both, Viewport(scale=(2, 3), pieces=4)).tree
    assert shown.whole() == [sum(after.values()), sum(before.values())]


@given(PATHS)
def test_what_was_put_together_before_stays_so(own: Values) -> None:
    once = prune(tree_of(own), Viewport(scale=(1,), pieces=3)).tree
    again = prune(replace(once), ONE).tree
    assert totals_of(again) == totals_of(once)
    assert again.merged_count.sum() == once.merged_count.sum()
    assert invert(once, ONE).tree.whole() == [sum(own.values())]


def test_functions_are_the_same_where_only_their_lines_have_moved() -> None:
    after = ["a.py(1): main", "a.py(12): forward", "a.py(40): forward", "b.py(3): f", "aten::mm"]
    before = ["a.py(1): main", "a.py(10): forward", "a.py(38): forward", "b.py(3): f", "aten::add"]
    assert moved_names(after, before) == {
        "a.py(10): forward": "a.py(12): forward",
        "a.py(38): forward": "a.py(40): forward",
    }


def test_functions_are_told_apart_where_it_cannot_be_told_which_is_which() -> None:
    assert moved_names(["a.py(12): f", "a.py(20): f"], ["a.py(10): f"]) == {}


def test_a_function_that_is_the_second_of_its_name_in_its_line_is_the_same() -> None:
    assert moved_names(["a.py(12): f", "a.py(20): f"], ["a.py(12): f", "a.py(18): f"]) == {
        "a.py(18): f": "a.py(20): f"
    }


def test_what_moved_by_a_line_is_compared_with_itself() -> None:
    after = replace(tree_of({("a", "b"): 5}), names=("x.py(7): f", "g", "h"))
    before = replace(tree_of({("a", "b"): 3}), names=("x.py(9): f", "g", "h"))
    both = combine(after, before, moved_names(after.names, before.names))
    assert (own_of(both, 0), own_of(both, 1)) == (
        {("x.py(7): f", "g"): 5},
        {("x.py(7): f", "g"): 3},
    )


@pytest.mark.parametrize(
    ("name", "kind", "waits"),
    [
        ("<built-in method select of Tensor object at 0x7f>", "python", False),
        ("<built-in method select of type object at 0x7f>", "python", False),
        ("<built-in method select of select.epoll object at 0x7f>", "python", True),
        ("<built-in method select of select.epoll>", "python", True),
        ("<built-in function select>", "python", True),
        ("<built-in method acquire of _thread.lock object at 0x7f>", "python", True),
        ("cudaStreamSynchronize", "runtime", True),
        ("hipDeviceSynchronize", "runtime", True),
        ("zeEventHostSynchronize", "runtime", True),
        ("aclrtSynchronizeStream", "runtime", True),
        ("AscendCL@aclrtSynchronizeDevice", "runtime", True),
        ("synchronizeEvent", "runtime", True),
        ("cudaLaunchKernel", "runtime", False),
        ("cudaStreamSynchronize", "operator", False),
    ],
)
def test_the_host_waits_in_blocking_calls(name: str, kind: str, *, waits: bool) -> None:
    tree = replace(
        tree_of({("a",): 5}), names=(name, *NAMES[1:]), kinds=np.full(3, CODES[kind], dtype=np.int8)
    )
    assert waiting_nodes(tree).tolist() == [waits]
    assert without_waits(tree).self_values.sum() == (0 if waits else 5)
