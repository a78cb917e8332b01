"""Rows of a track: nothing overlaps, and what is contained lies below."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stepscope.analyses.timeline import row_layout

Slices = list[tuple[int, int, int]]
SLICES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 15)), max_size=14)
"""Group, start and duration."""
NESTING: st.SearchStrategy[list[Any]] = st.recursive(
    st.just([]), lambda inner: st.lists(inner, max_size=3), max_leaves=12
)
"""Calls in calls."""


def columns(slices: Slices) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    group, start, duration = (
        np.array([each[place] for each in slices], dtype=np.int64) for place in range(3)
    )
    return group, start, start + duration


def nested_rows(slices: Slices) -> list[int]:
    found: list[int] = row_layout.nested_rows(*columns(slices))[0].tolist()
    return found


def free_rows(slices: Slices) -> list[int]:
    found: list[int] = row_layout.free_rows(*columns(slices)).tolist()
    return found


def parents(slices: Slices) -> list[int]:
    found: list[int] = row_layout.nested_rows(*columns(slices))[1].tolist()
    return found


def nested(*spans: tuple[int, int]) -> list[int]:
    return nested_rows([(0, start, end - start) for start, end in spans])


def free(*spans: tuple[int, int]) -> list[int]:
    return free_rows([(0, start, end - start) for start, end in spans])


def overlapping(slices: Slices, found: list[int]) -> list[tuple[int, int]]:
    """Pairs of one group and row that run at once."""
    return [
        (one, other)
        for one, (group, start, duration) in enumerate(slices)
        for other, (its_group, its_start, its_duration) in enumerate(slices)
        if one < other
        and (group, found[one]) == (its_group, found[other])
        and max(start, its_start) < min(start + duration, its_start + its_duration)
    ]


def test_calls_lie_below_what_contains_them() -> None:
    assert nested((0, 10), (1, 5), (2, 3), (6, 9)) == [0, 1, 2, 1]


def test_a_range_that_outlives_the_call_that_opened_it_gets_a_row_of_its_own_above_all() -> None:
    # `record_function.__enter__` opens a range within `main`, and ends before the range does.
    main, enter, opening, step, forward = (0, 100), (10, 20), (12, 18), (15, 90), (30, 80)

    assert nested(main, enter, opening, step, forward) == [1, 2, 3, 0, 2]


def test_a_range_that_crosses_contains_what_is_in_it_and_is_in_what_contains_it() -> None:
    main, enter, step, forward = (0, 0, 100), (0, 10, 10), (0, 15, 75), (0, 30, 50)

    assert parents([main, enter, step, forward]) == [-1, 0, 0, 2]


def test_ranges_in_ranges_that_all_cross_calls_keep_their_order() -> None:
    # The frames that open and close ranges lie below; the ranges nest above them.
    step, forward = (12, 90), (22, 60)
    opening, opening_forward, closing = (10, 14), (20, 24), (88, 94)

    assert nested((0, 100), opening, step, opening_forward, forward, closing) == [2, 3, 0, 3, 1, 3]


def test_ranges_that_cross_in_a_chain_do_not_overlap() -> None:
    found = nested((0, 10), (5, 15), (12, 20))

    assert overlapping([(0, 0, 10), (0, 5, 10), (0, 12, 8)], found) == []


def test_ranges_that_cross_in_a_long_chain_take_few_rows() -> None:
    chain = [(10 * place, 10 * place + 15) for place in range(9)]

    found = nested(*chain)

    assert overlapping([(0, start, end - start) for start, end in chain], found) == []
    assert max(found) == 1


def test_of_equal_calls_the_first_is_above() -> None:
    assert nested((0, 5), (0, 5), (0, 5)) == [0, 1, 2]


def test_calls_of_no_duration_do_not_contain_each_other() -> None:
    assert nested((3, 3), (3, 3)) == [0, 0]


def test_threads_do_not_know_each_other() -> None:
    assert nested_rows([(0, 0, 9), (1, 1, 2), (0, 2, 2)]) == [0, 0, 1]


def test_work_of_a_stream_gets_the_first_row_that_is_free() -> None:
    assert free((0, 10), (5, 15), (10, 12), (14, 20), (15, 16)) == [0, 1, 0, 0, 1]


def test_work_that_follows_without_a_gap_stays_on_its_row() -> None:
    assert free((0, 5), (5, 10), (10, 15)) == [0, 0, 0]


@given(SLICES)
def test_no_two_slices_of_a_row_overlap(slices: Slices) -> None:
    assert overlapping(slices, nested_rows(slices)) == []
    assert overlapping(slices, free_rows(slices)) == []


@given(SLICES)
def test_the_parent_is_the_last_that_began_of_those_that_contain_a_slice(slices: Slices) -> None:
    begun = sorted(range(len(slices)), key=lambda one: (*slices[one][:2], -slices[one][2]))

    def contains(outer: int, inner: int) -> bool:
        (group, start, duration), (its_group, its_start, its_duration) = (
            slices[outer],
            slices[inner],
        )
        end, its_end = start + duration, its_start + its_duration
        return group == its_group and end >= its_end and end > its_start

    expected = [-1] * len(slices)
    for place, one in enumerate(begun):
        around = [each for each in begun[:place] if contains(each, one)]
        expected[one] = around[-1] if around else -1

    assert parents(slices) == expected


@given(SLICES)
def test_as_many_rows_are_used_as_run_at_once(slices: Slices) -> None:
    found = free_rows(slices)

    most = [
        sum(of == group and start <= at < start + duration for group, start, duration in slices)
        for of, at, _ in slices
    ]
    # one that takes no time needs a row where others run
    assert all(row < max(most) + 1 for row in found)


@given(NESTING)
def test_calls_that_nest_lie_as_deep_as_they_are_nested(calls: list[Any]) -> None:
    slices: Slices = []
    depths: list[int] = []

    def put(inner: list[Any], at: int, depth: int) -> int:
        for each in inner:
            place = len(slices)
            slices.append((0, at, 0))
            depths.append(depth)
            end = put(each, at + 1, depth + 1) + 1
            slices[place] = (0, at, end - at)
            at = end
        return at

    put(calls, 0, 0)

    assert nested_rows(slices) == depths


@given(SLICES)
def test_what_contains_a_slice_lies_above_it_unless_one_of_them_crosses(slices: Slices) -> None:
    found = nested_rows(slices)

    def crosses(one: int) -> bool:
        group, start, duration = slices[one]
        return any(
            its_group == group
            and (its_start < start < its_start + its_duration < start + duration
                 or start < its_start < start + duration < its_start + its_duration)
            for its_group, its_start, its_duration in slices
        )  # fmt: skip

    for one, (group, start, duration) in enumerate(slices):
        for other, (its_group, its_start, its_duration) in enumerate(slices):
            contains = start < its_start and its_start + its_duration < start + duration
            if (
                group == its_group
                and contains
                and not any(
                    crosses(each) for each, slice_ in enumerate(slices) if slice_[0] == group
                )
            ):
                assert found[one] < found[other]
