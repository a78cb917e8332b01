"""What is won of the time that a finding claims."""

import pytest

from stepscope.base import calibration
from stepscope.base.calibration import Factor, at_most, speedup


def test_work_that_becomes_twice_to_four_times_as_fast_wins_half_to_three_quarters() -> None:
    assert speedup(2, 4, "a sheet") == Factor(low=0.5, high=0.75, source="a sheet")


def test_what_cannot_become_so_much_faster_wins_less() -> None:
    factor = speedup(2, 6, "a sheet")
    assert at_most(factor, 8) is factor
    assert at_most(factor, 2) == Factor(low=0.25, high=0.5, source="a sheet")
    assert at_most(factor, 0.5) == Factor(low=0, high=0, source="a sheet")


def constants() -> dict[str, Factor]:
    return {name: each for name, each in vars(calibration).items() if isinstance(each, Factor)}


@pytest.mark.parametrize("name", sorted(constants()))
def test_a_factor_is_a_share_with_a_source(name: str) -> None:
    factor = constants()[name]
    assert 0 <= factor.low <= factor.high <= 1
    assert len(factor.source) > 10
