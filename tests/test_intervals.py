"""Sets of intervals against bitmaps: one bit a nanosecond."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepscope.model import intervals
from stepscope.model.intervals import Intervals

END = 40
PAIRS = st.lists(st.tuples(st.integers(0, END), st.integers(0, END)), max_size=10)
WINDOW = st.tuples(st.integers(0, END), st.integers(0, END)).map(sorted)
Pairs = list[tuple[int, int]]


def _set(pairs: Pairs) -> Intervals:
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return intervals.union(columns[:, 0], columns[:, 1])


def _bits(pairs: Pairs) -> set[int]:
    return {at for start, end in pairs for at in range(start, end)}


def _bits_of(times: Intervals) -> set[int]:
    """The set's bits, once it is seen to be sorted, disjoint, not touching, and none empty."""
    assert times.dtype == np.int64
    assert times.shape[1:] == (2,)
    borders = times.ravel()
    assert (np.diff(borders) > 0).all()
    return _bits([(int(start), int(end)) for start, end in times])


@given(PAIRS)
def test_union(pairs: Pairs) -> None:
    assert _bits_of(_set(pairs)) == _bits(pairs)
    assert intervals.duration_ns(_set(pairs)) == len(_bits(pairs))


@given(PAIRS)
def test_a_union_of_a_set_is_that_set(pairs: Pairs) -> None:
    once = _set(pairs)
    assert np.array_equal(intervals.union(once[:, 0], once[:, 1]), once)


@given(st.lists(PAIRS, max_size=4))
def test_merged(many: list[Pairs]) -> None:
    expected = set().union(*(_bits(pairs) for pairs in many))
    assert _bits_of(intervals.merged(*map(_set, many))) == expected


@given(PAIRS, WINDOW)
def test_complement_and_clip_share_out_a_window(pairs: Pairs, window: list[int]) -> None:
    start, end = window
    inside = set(range(start, end))
    times = _set(pairs)
    assert _bits_of(intervals.clip(times, start, end)) == _bits(pairs) & inside
    assert _bits_of(intervals.complement(times, start, end)) == inside - _bits(pairs)


@given(PAIRS, PAIRS)
def test_intersection_and_difference(left: Pairs, right: Pairs) -> None:
    both = intervals.intersection(_set(left), _set(right))
    assert _bits_of(both) == _bits(left) & _bits(right)
    only = intervals.difference(_set(left), _set(right))
    assert _bits_of(only) == _bits(left) - _bits(right)


@given(PAIRS, st.lists(WINDOW, max_size=5))
def test_covered(pairs: Pairs, queries: list[list[int]]) -> None:
    asked = np.array(queries, dtype=np.int64).reshape(-1, 2)
    found = intervals.covered_ns(_set(pairs), asked[:, 0], asked[:, 1])
    assert found.tolist() == [len(_bits(pairs) & set(range(*query))) for query in queries]


def test_stamps_of_unix_time_do_not_lose_a_nanosecond() -> None:
    now = 1_800_000_000_000_000_001
    times = _set([(now, now + 1), (now + 2, now + 5)])
    assert intervals.duration_ns(times) == 4
    assert intervals.complement(times, now, now + 10).tolist() == [
        [now + 1, now + 2],
        [now + 5, now + 10],
    ]


def test_the_empty_set_cannot_be_changed_by_mistake() -> None:
    assert not intervals.EMPTY.flags.writeable
    assert intervals.merged().shape == (0, 2)
