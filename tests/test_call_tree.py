"""Nesting against slow, obvious versions, and against torch's own tree-building."""

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stepscope.model import call_tree

pytestmark = pytest.mark.frames

# (thread, start, duration): short ranges, so that calls nest, touch, cross and are equal
CALLS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 15), st.integers(0, 10)), max_size=14)
Calls = list[tuple[int, int, int]]


def _columns(calls: Calls) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    thread, start, duration = np.array(calls, dtype=np.int64).reshape(-1, 3).T
    return thread, start, duration


def _order(calls: Calls) -> list[int]:
    return sorted(range(len(calls)), key=lambda row: (*calls[row][:2], -calls[row][2], row))


def _contains(outer: tuple[int, int, int], inner: tuple[int, int, int]) -> bool:
    end, inner_end = outer[1] + outer[2], inner[1] + inner[2]
    return outer[0] == inner[0] and outer[1] <= inner[1] < end and inner_end <= end


def _slow_parents(calls: Calls) -> list[int]:
    """Each call's parent: follow the last call and its parents until one contains the call."""
    parents = [-1] * len(calls)
    last = {0: -1, 1: -1}
    for row in _order(calls):
        thread = calls[row][0]
        candidate = last[thread]
        while candidate >= 0 and not _contains(calls[candidate], calls[row]):
            candidate = parents[candidate]
        parents[row] = candidate
        last[thread] = row
    return parents


@given(CALLS)
def test_nest_is_the_slow_version(calls: Calls) -> None:
    nesting = call_tree.nest(*_columns(calls))
    parents = _slow_parents(calls)
    assert nesting.parent.tolist() == parents
    for row, parent in enumerate(parents):
        depth = nesting.depth[row]
        assert depth == (0 if parent < 0 else nesting.depth[parent] + 1)
        children = [calls[child][2] for child, above in enumerate(parents) if above == row]
        assert nesting.self_ns[row] == max(0, calls[row][2] - sum(children))


@given(CALLS, st.sampled_from([0, 1, 64]))
def test_every_moment_is_of_the_call_begun_last(calls: Calls, rounds: int) -> None:
    columns = _columns(calls)
    nesting = call_tree.nest(*columns)
    with mock.patch.object(call_tree, "MOST_ROUNDS", rounds):
        until_ns = call_tree.until_ns(nesting, *columns)
    exclusive = call_tree.self_ns(nesting.parent, until_ns - columns[1])
    order = _order(calls)
    assert nesting.order.tolist() == order
    expected = [0] * len(calls)
    for thread in (0, 1):
        for moment in range(26):
            running = [
                row
                for row in order
                if calls[row][0] == thread and calls[row][1] <= moment < sum(calls[row][1:])
            ]
            if running:
                expected[running[-1]] += 1
    assert exclusive.tolist() == expected


@pytest.mark.parametrize("scale", [1, 2**50])
def test_own_time_is_exact_however_long_calls_are(scale: int) -> None:
    parent, duration = np.array([-1, 0, 0, 1]), np.array([1001, 7, 901, 7]) * scale + 1
    expected = [93 * scale - 1, 0, 901 * scale + 1, 7 * scale + 1]
    assert call_tree.self_ns(parent, duration).tolist() == expected


@given(CALLS)
def test_a_parent_contains_its_children_wholly(calls: Calls) -> None:
    for row, parent in enumerate(call_tree.nest(*_columns(calls)).parent):
        assert parent < 0 or _contains(calls[parent], calls[row])


@given(CALLS)
def test_nest_is_torchs_tree(calls: Calls) -> None:
    profiler_util = pytest.importorskip("torch.autograd.profiler_util")
    events = profiler_util.EventList(
        profiler_util.FunctionEvent(
            id=row, name=str(row), thread=thread, start_us=start, end_us=start + duration
        )
        for row, (thread, start, duration) in enumerate(calls)
    )
    events._populate_cpu_children()  # noqa: SLF001 (the tree behind key_averages)
    theirs: list[Any] = [event.cpu_parent.id if event.cpu_parent else -1 for event in events]
    assert call_tree.nest(*_columns(calls)).parent.tolist() == theirs


def _slow_enclosing(outer: Calls, inner: Calls) -> list[int]:
    """The call that began last of those that were running when the inner one began."""
    found = []
    for thread, start, _ in inner:
        running = [
            (begin, -duration, row)
            for row, (where, begin, duration) in enumerate(outer)
            if where == thread and begin <= start < begin + duration
        ]
        found.append(max(running)[2] if running else -1)
    return found


def _spans(calls: Calls) -> call_tree.Spans:
    thread, start, duration = _columns(calls)
    return thread, start, start + duration


@given(CALLS, CALLS)
def test_enclosing_is_the_slow_version(outer: Calls, inner: Calls) -> None:
    found = call_tree.enclosing(_spans(outer), _spans(inner))
    assert found.tolist() == _slow_enclosing(outer, inner)


@given(CALLS, CALLS, st.sampled_from([0, 1, 64]))
def test_the_innermost_call_at_a_moment_is_the_slow_version(
    calls: Calls, moments: Calls, rounds: int
) -> None:
    nesting = call_tree.nest(*_columns(calls))
    thread, moment, _ = _columns(moments)
    with mock.patch.object(call_tree, "MOST_ROUNDS", rounds):
        found = call_tree.innermost_at(
            _spans(calls), nesting.parent, nesting.order, (thread, moment)
        )
    assert found.tolist() == _slow_enclosing(calls, moments)


def test_stacks_thousands_deep_are_no_recursion() -> None:
    depth = 50_000
    start = np.arange(depth, dtype=np.int64)
    nesting = call_tree.nest(np.zeros(depth, dtype=np.int64), start, 2 * (depth - start))
    assert nesting.depth.tolist() == list(range(depth))
    assert nesting.self_ns.sum() == 2 * depth


def test_calls_that_outlast_hundreds_around_them_find_their_parent() -> None:
    deep = [(0, level, 1000 - 2 * level) for level in range(200)]
    outlasting = [(0, 300 + place, 501 + 9 * place) for place in range(20)]
    calls = deep + outlasting
    parents = call_tree.nest(*_columns(calls)).parent.tolist()
    assert parents == _slow_parents(calls)
    assert parents[-1] < len(deep) - call_tree.MOST_ROUNDS


@given(CALLS)
def test_calls_are_ordered_as_a_sort_by_all_three_orders_them(calls: Calls) -> None:
    thread, start, duration = _columns(calls)
    order = call_tree.ordered(thread.astype(np.int8), start, start + duration)
    assert order.tolist() == _order(calls)


class _Counted(np.ndarray):
    """Counts how often an element is looked at, one by one."""

    looked = 0

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | np.integer):
            _Counted.looked += 1
        return super().__getitem__(key)


def test_calls_after_each_end_of_a_deep_stack_climb_it_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    depth = 3_000
    append = np.append

    def counted(array: Any, values: Any) -> Any:
        return append(array, values).view(_Counted)

    start = np.arange(depth)
    outer = np.zeros(depth, dtype=np.int64), start, 4 * depth - start
    at = np.repeat(np.arange(4 * depth - 5, 3 * depth, -300), 50)[::-1].copy()
    inner = np.zeros(len(at), dtype=np.int64), at, at
    expected = np.minimum(4 * depth - at - 1, depth - 1)
    monkeypatch.setattr(np, "append", counted)
    _Counted.looked = 0
    innermost = call_tree.enclosing(outer, inner)
    assert innermost.tolist() == expected.tolist()
    assert 0 < _Counted.looked < 3 * (depth + len(at))
