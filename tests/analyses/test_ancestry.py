"""Rows above rows, against following the parents one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stepscope.analyses.core.ancestry import _in_strides, nearest, nearest_of, with_descendants


@st.composite
def _forests(draw: st.DrawFn) -> NDArray[np.int64]:
    """Parents, in any order: a row's parent may come after it."""
    size = draw(st.integers(0, 30))
    parents = [draw(st.integers(-1, row - 1)) for row in range(size)]
    place = draw(st.permutations(range(size)))
    shuffled = np.full(size, -1, dtype=np.int64)
    for row, parent in enumerate(parents):
        shuffled[place[row]] = place[parent] if parent >= 0 else -1
    return shuffled


def _line_of(parent: NDArray[np.int64], row: int) -> list[int]:
    """The row and all above it."""
    line = []
    while row >= 0:
        line.append(row)
        row = int(parent[row])
    return line


@given(_forests(), st.data())
def test_the_nearest_is_the_first_on_the_way_up(
    parent: NDArray[np.int64], data: st.DataObject
) -> None:
    flags = data.draw(st.lists(st.booleans(), min_size=len(parent), max_size=len(parent)))
    wanted = np.array(flags, dtype=bool)
    slow = [
        next((above for above in _line_of(parent, row) if wanted[above]), -1)
        for row in range(len(parent))
    ]
    assert nearest(parent, wanted).tolist() == slow
    some = np.arange(-1, len(parent))
    assert nearest_of(parent, some, wanted).tolist() == [-1, *slow]


@given(_forests(), st.data())
def test_a_sum_is_of_every_row_that_has_it_above(
    parent: NDArray[np.int64], data: st.DataObject
) -> None:
    values = st.lists(st.integers(-5, 5), min_size=len(parent), max_size=len(parent))
    own = [np.array(data.draw(values), dtype=np.int64) for _ in range(2)]
    slow = [np.zeros_like(column) for column in own]
    for row in range(len(parent)):
        for above in _line_of(parent, row):
            for total, column in zip(slow, own, strict=True):
                total[above] += column[row]
    for found, total in zip(with_descendants(parent, *own), slow, strict=True):
        assert found.tolist() == total.tolist()
    assert _in_strides(parent, own[0]).tolist() == slow[0].tolist()


def test_a_chain_of_a_hundred_thousand_takes_few_rounds() -> None:
    chain = np.arange(-1, 99_999)
    (sums,) = with_descendants(chain, np.ones(100_000, dtype=np.int64))
    assert sums[0] == 100_000
    is_first = np.arange(100_000) == 0
    assert not nearest(chain, is_first).any()
    assert not nearest_of(chain, chain[1:], is_first).any()
