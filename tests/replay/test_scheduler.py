"""The compiled scheduler and its twin in Python give equal times, and right ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.model.arrays import Ints
from stepscope.replay import scheduler

POINTS = 8
Links = list[tuple[int, int, int]]
"""Source, target and weight of edges from lower to higher points."""
links = st.lists(
    st.tuples(st.integers(0, POINTS - 2), st.integers(1, POINTS - 1), st.integers(0, 50)).filter(
        lambda link: link[0] < link[1]
    ),
    max_size=20,
)


def arrays(edges: Links) -> tuple[Ints, Ints, Ints]:
    by_target = np.array(sorted(edges, key=lambda edge: edge[1]), dtype=np.int64).reshape(-1, 3)
    first = np.searchsorted(by_target[:, 1], np.arange(POINTS + 1))
    return first, by_target[:, 0].copy(), by_target[:, 2].copy()


def times_by_relaxing(edges: Links, recorded: list[int]) -> list[int]:
    """Return the longest paths by repeating what an edge demands until nothing changes."""
    targets = {target for _, target, _ in edges}
    result = [-(10**9) if point in targets else recorded[point] for point in range(POINTS)]
    for _ in range(POINTS):
        for source, target, weight in edges:
            result[target] = max(result[target], result[source] + weight)
    return result


@given(links, st.lists(st.integers(0, 100), min_size=POINTS, max_size=POINTS))
def test_each_point_is_as_early_as_all_its_edges_allow(edges: Links, recorded: list[int]) -> None:
    first, source, weight = arrays(edges)
    at = np.array(recorded, dtype=np.int64)
    expected = times_by_relaxing(edges, recorded)
    assert scheduler.times_in_python(first, source, weight, at).tolist() == expected
    assert scheduler.times(first, source, weight, at).tolist() == expected


@given(links, st.integers(0, POINTS - 1))
def test_the_longest_path_leads_along_edges_that_bind(edges: Links, end: int) -> None:
    first, source, weight = arrays(edges)
    at = scheduler.times(first, source, weight, np.zeros(POINTS, dtype=np.int64))
    path = scheduler.path(first, source, weight, at, end).tolist()
    assert path == scheduler.path_in_python(first, source, weight, at, end).tolist()
    points = [end, *(int(source[edge]) for edge in path)]
    assert [int(weight[edge]) for edge in path] == (-np.diff(at[points])).tolist()
    assert first[points[-1]] == first[points[-1] + 1]
    for point, edge in zip(points, path, strict=False):
        into = range(first[point], first[point + 1])
        binding = [one for one in into if at[source[one]] + weight[one] == at[point]]
        assert at[source[edge]] == max(at[source[one]] for one in binding)


@given(links)
def test_sources_come_before_their_targets(edges: Links) -> None:
    source, target = (np.array([edge[end] for edge in edges], dtype=np.int64) for end in (0, 1))
    order = scheduler.topological_order(source, target, POINTS).tolist()
    assert sorted(order) == list(range(POINTS))
    assert all(order.index(a) < order.index(b) for a, b, _ in edges)


def test_points_on_a_circle_are_left_out() -> None:
    source, target = np.array([0, 1, 2, 3]), np.array([1, 2, 1, 0])
    assert scheduler.topological_order(source, target, 4).tolist() == [3, 0]


@pytest.mark.skipif(not scheduler.IS_BUILT, reason="no C compiler at the installation")
@given(links)
def test_the_compiled_order_is_that_of_python(edges: Links) -> None:
    source, target = (np.array([edge[end] for edge in edges], dtype=np.int64) for end in (0, 1))
    by_source = np.argsort(source, kind="stable")
    first = np.searchsorted(source[by_source], np.arange(POINTS + 1))
    pending = np.bincount(target, minlength=POINTS)
    in_python = scheduler.topological_order_in_python(first, target[by_source], pending)
    assert scheduler.topological_order(source, target, POINTS).tolist() == in_python.tolist()
