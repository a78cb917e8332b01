"""Quantiles of calls' times, against numpy's, group by group."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analyses.operators.call_metrics import QUANTILES, quantiles, sorted_times

TIMES = st.one_of(st.just(0), st.integers(0, 50), st.integers(2**60, 2**61))


@given(st.lists(st.tuples(st.integers(0, 4), TIMES, st.booleans()), min_size=1, max_size=40))
def test_quantiles_are_numpys_of_each_group(calls: list[tuple[int, int, bool]]) -> None:
    values = np.array([time for _, time, _ in calls], dtype=np.int64)
    group = np.unique([group for group, _, _ in calls], return_inverse=True)[1]
    is_left_out = np.array([left_out for _, _, left_out in calls])
    is_left_out[np.unique(group, return_index=True)[1]] = False  # one of each group stays
    size = np.bincount(group[~is_left_out])
    found = quantiles(sorted_times(values).without(is_left_out), group, size)
    for name, share in {**QUANTILES, "max": 1.0}.items():
        wanted = [
            np.quantile(values[(group == which) & ~is_left_out], share)
            for which in range(len(size))
        ]
        assert found[name].tolist() == pytest.approx(wanted)


def test_more_groups_than_16_bits_number() -> None:
    count = 2**16 + 5
    values = np.arange(count, dtype=np.int64)
    found = quantiles(sorted_times(values), values, np.ones(count, dtype=np.int64))
    assert found["max"].tolist() == values.tolist()
