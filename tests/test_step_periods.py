"""Which steps make a period, by their durations."""

import pytest

from stepscope.recording.step_periods import MOST_NS, MOST_STEPS, has_long_steps, period


@pytest.mark.parametrize("every", [3, 16, MOST_STEPS])
def test_long_steps_at_even_distances_have_a_period(every: int) -> None:
    assert period([*[10] * (every - 1), 100] * 3) == every


def test_a_delay_by_another_program_hides_no_period() -> None:
    durations = [*[10] * 15, 100] * 3
    durations[5] = durations[22] = 200
    assert period(durations) == 16


@pytest.mark.parametrize(
    ("durations", "why"),
    [
        ([], "no step"),
        ([10] * 50, "none is long"),
        ([*[10] * 20, 100, *[10] * 20, 100], "two long steps may be an accident"),
        ([*[10] * 5, 100, *[10] * 20, 100, *[10] * 8, 100], "distances of 21 and 9"),
        ([*[1000] * 40, 3000] * 3, "long steps take 7 % of the time"),
        ([*[10] * MOST_STEPS, 1000] * 3, "too many steps"),
        ([*[MOST_NS // 10] * 9, MOST_NS] * 3, "too much time"),
    ],
)
def test_other_steps_have_none(durations: list[int], why: str) -> None:
    assert period(durations) == 0, why


@pytest.mark.parametrize(
    ("durations", "has_long"),
    [
        ([], False),
        ([10] * 13, False),
        ([*[10] * 12, 29], False),
        ([*[10] * 12, 30], True),
        ([*[1000] * 40, 3000], False),
    ],
)
def test_long_steps_matter_if_they_take_a_tenth_of_the_time(
    durations: list[int], *, has_long: bool
) -> None:
    assert has_long_steps(durations) is has_long
