"""Statistics of groups, beside numpy's of each group by itself."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analyses.core import group_statistics

INT64 = np.iinfo(np.int64)
ROWS = st.lists(
    st.tuples(
        st.one_of(st.integers(-50, 50), st.integers(-(2**52), 2**52)),
        st.integers(0, 4),
        st.integers(0, 5),
    ),
    max_size=40,
)
COUNT = 6
Rows = list[tuple[int, int, int]]


def _columns(rows: Rows) -> tuple[Any, Any, Any]:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _each(rows: Rows, of: Callable[[Any, Any], float]) -> list[float]:
    """The oracle: one group after the other."""
    values, group, weight = _columns(rows)
    return [
        of(values[group == which], weight[group == which]) if (group == which).any() else np.nan
        for which in range(COUNT)
    ]


@given(ROWS, st.sampled_from([0.0, 0.25, 0.5, 0.95, 1.0]))
def test_a_quantile_is_numpys(rows: Rows, share: float) -> None:
    values, group, _ = _columns(rows)
    found = group_statistics.quantile(values, group, COUNT, share)
    expected = _each(rows, lambda mine, _: float(np.quantile(mine, share)))
    assert found == pytest.approx(expected, nan_ok=True)


@given(ROWS)
def test_means_are_numpys(rows: Rows) -> None:
    values, group, weight = _columns(rows)
    assert group_statistics.mean(values, group, COUNT) == pytest.approx(
        _each(rows, lambda mine, _: mine.mean()), nan_ok=True
    )
    weighted = group_statistics.weighted_mean(values, weight, group, COUNT)
    assert weighted == pytest.approx(
        _each(rows, lambda mine, by: np.average(mine, weights=by) if by.any() else np.nan),
        nan_ok=True,
        abs=1e-6,
    )


@given(ROWS)
def test_deviations_and_extremes_are_numpys(rows: Rows) -> None:
    values, group, _ = _columns(rows)
    deviations = group_statistics.standard_deviation(values, group, COUNT)
    expected = _each(rows, lambda mine, _: np.std(mine, ddof=1) if len(mine) > 1 else np.nan)
    assert deviations == pytest.approx(expected, nan_ok=True, abs=1)
    least, most = group_statistics.extremes(values, group, COUNT)
    of_each = [values[group == which].tolist() or [0] for which in range(COUNT)]
    assert least.tolist() == list(map(min, of_each))
    assert most.tolist() == list(map(max, of_each))


@given(ROWS)
def test_sums_are_exact_and_numbers_are_listed_once(rows: Rows) -> None:
    values, group, weight = _columns(rows)
    expected = [int(values[group == which].sum()) for which in range(COUNT)]
    assert group_statistics.sums(values, group, COUNT).tolist() == expected
    listed = group_statistics.distinct_numbers(weight, group, COUNT).tolist()
    assert listed == [
        ", ".join(map(str, sorted(set(weight[group == which].tolist())))) for which in range(COUNT)
    ]


@given(ROWS, st.lists(st.booleans(), min_size=40, max_size=40))
def test_sums_of_chosen_rows_leave_out_those_of_no_group(rows: Rows, choices: list[bool]) -> None:
    values, group, _ = _columns(rows)
    group, chosen = group - 1, np.array(choices)[: len(values)]
    for mask, choice in ((chosen, [chosen]), (np.ones_like(chosen), [])):
        expected = [int(values[mask & (group == which)].sum()) for which in range(COUNT)]
        assert group_statistics.sums_where(values, group, COUNT, *choice).tolist() == expected


def test_a_mean_of_what_is_known_leaves_the_rest_out() -> None:
    values, group = np.array([1.0, np.nan, 4.0, np.nan]), np.array([0, 0, 0, 1])
    found = group_statistics.nan_mean(values, group, 3)
    assert found == pytest.approx([2.5, np.nan, np.nan], nan_ok=True)


def test_a_ratio_is_known_where_the_whole_is_above_zero() -> None:
    found = group_statistics.ratio(np.array([1, 1, 1, 1]), np.array([4.0, 0.0, -1.0, np.nan]))
    assert found == pytest.approx([0.25, np.nan, np.nan, np.nan], nan_ok=True)


def test_values_that_one_number_does_not_hold_beside_their_group_are_ordered_too() -> None:
    values = np.array([INT64.max, 0, INT64.min, 5, 3], dtype=np.int64)
    group = np.array([1, 0, 0, 1, 0])
    assert group_statistics.quantile(values, group, 2, 0.5).tolist() == [0, 2.0**62]
