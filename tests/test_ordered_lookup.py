"""Rows at or before a moment, against looking at every row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.model.call_tree import Grouped, first_not_before, last_not_after

pytestmark = pytest.mark.frames

PAIRS = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 9)), max_size=12)
Pairs = list[tuple[int, int]]


def _grouped(pairs: Pairs) -> Grouped:
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return columns[:, 0].astype(np.int8), columns[:, 1]


@given(PAIRS.map(sorted), PAIRS)
def test_it_finds_what_looking_at_every_row_does(rows: Pairs, queries: Pairs) -> None:
    before = [
        max(
            (place for place, row in enumerate(rows) if row[0] == group and row[1] <= at),
            default=-1,
        )
        for group, at in queries
    ]
    behind = [
        min(
            (place for place, row in enumerate(rows) if row[0] == group and row[1] >= at),
            default=-1,
        )
        for group, at in queries
    ]
    assert last_not_after(_grouped(rows), _grouped(queries)).tolist() == before
    assert first_not_before(_grouped(rows), _grouped(queries)).tolist() == behind


def test_the_last_number_that_a_code_can_have_is_found_too() -> None:
    group = np.array([126, 127], dtype=np.int8)
    times = np.array([5, 5], dtype=np.int64)
    assert last_not_after((group, times), (group, times)).tolist() == [0, 1]
