"""Slices that cross are shortened so that they nest, and no more than that takes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analyses.core.trace_cut import repaired_end_ns

SLICES = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 25), st.integers(0, 12)), max_size=18)
Slices = list[tuple[int, int, int]]


def _repaired(slices: Slices) -> list[int]:
    track, start, duration = np.array(slices, dtype=np.int64).reshape(-1, 3).T
    ends: list[int] = repaired_end_ns(track, start, start + duration).tolist()
    return ends


def _cross(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """Whether one track's slices overlap in part: `(track, start, end)`."""
    (track, start, end), (others_track, others_start, others_end) = sorted((one, other))
    return track == others_track and start < others_start < end < others_end


@given(SLICES)
def test_afterwards_no_two_slices_cross(slices: Slices) -> None:
    after = [
        (track, start, end)
        for (track, start, _), end in zip(slices, _repaired(slices), strict=True)
    ]
    assert not [(one, other) for one in after for other in after if _cross(one, other)]


@given(SLICES)
def test_slices_are_only_shortened_and_those_that_nest_not_at_all(slices: Slices) -> None:
    before = [(track, start, start + duration) for track, start, duration in slices]
    ends = _repaired(slices)
    for (_, start, end), now in zip(before, ends, strict=True):
        assert start <= now <= end
    if not any(_cross(one, other) for one in before for other in before):
        assert ends == [end for _, _, end in before]


def test_what_takes_less_time_away_is_shortened() -> None:
    # an annotation begins near the end of the functions that open it
    assert _repaired([(0, 0, 20), (0, 10, 8), (0, 15, 85)]) == [15, 15, 100]
    # a call outlives the one around it by a little
    assert _repaired([(0, 0, 100), (0, 10, 92), (0, 20, 50)]) == [100, 100, 70]
