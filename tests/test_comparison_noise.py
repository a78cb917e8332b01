"""The test that tells changes from noise: as often wrong as it says, and not blind to 10 %."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from generated import examples
from loading import ROOT, trace_at
from stepscope.comparison.samples import sample
from stepscope.comparison.side import cost_table, sampled, side_samples
from stepscope.comparison.significance import holm, incomplete_beta, permutation_test, two_sided_p

pytestmark = pytest.mark.frames

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]
STEPS: dict[str, Draw] = {
    "normal": lambda random, shape: random.normal(100, 3, shape),
    "skewed": lambda random, shape: 50 + random.exponential(5, shape),
    "now and then a slow step": lambda random, shape: (
        random.normal(100, 2, shape) + (random.random(shape) < 0.08) * random.exponential(60, shape)
    ),
    "heavy tails": lambda random, shape: 100 + 3 * random.standard_t(3, shape),
}
COUNTS = [(3, 3), (3, 4), (3, 10), (4, 4), (6, 6), (5, 50), (20, 20), (50, 50)]
TRIALS = 1000
MOST_FALSE = 0.05 + 3 * math.sqrt(0.05 * 0.95 / TRIALS)
"""Three standard errors above what is promised: seeds are fixed, so this never varies."""


def alone(before: Floats, after: Floats) -> NDArray[np.bool_]:
    """Whether each row, tested by itself, is told from noise."""
    pairs = zip(before, after, strict=True)
    return np.array([permutation_test(a[None, :], b[None, :], 0.01).p[0] < 0.05 for a, b in pairs])


@pytest.mark.slow
@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("counts", COUNTS)
def test_what_has_not_changed_is_rarely_called_changed(kind: str, counts: tuple[int, int]) -> None:
    random = np.random.default_rng(7)
    before, after = (STEPS[kind](random, (TRIALS, count)) for count in counts)
    assert alone(before, after).mean() <= MOST_FALSE


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(4, 4), (6, 6), (20, 20)])
@pytest.mark.parametrize(
    ("kind", "least"), [("normal", 0.8), ("now and then a slow step", 0.6), ("heavy tails", 0.55)]
)
def test_ten_percent_are_seen(kind: str, least: float, counts: tuple[int, int]) -> None:
    random = np.random.default_rng(8)
    before, after = (STEPS[kind](random, (300, count)) for count in counts)
    assert alone(before, 1.1 * after).mean() >= least


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(3, 3), (6, 6), (10, 20)])
def test_among_a_hundred_figures_one_false_alarm_is_as_rare(counts: tuple[int, int]) -> None:
    random = np.random.default_rng(9)
    trials = 200
    alarms = 0
    for _ in range(trials):
        shared = [random.normal(1, 0.05, (1, count)) for count in counts]  # steps slow as a whole
        before, after = (each * random.gamma(20, 5, (100, each.shape[1])) for each in shared)
        alarms += bool((permutation_test(before, after, 0.01).p < 0.05).any())
    assert alarms / trials <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)


def test_one_changed_figure_among_many_is_found() -> None:
    random = np.random.default_rng(10)
    before, after = (random.normal(100, 2, (100, count)) for count in (6, 6))
    after[17] *= 1.3
    assert np.flatnonzero(permutation_test(before, after, 0.01).p < 0.05).tolist() == [17]


def test_one_slow_step_hides_no_change_and_makes_none() -> None:
    steady = np.array([[100.0, 101, 102, 103, 104, 105, 106, 107]])
    slow = steady.copy()
    slow[0, 0] = 900
    assert permutation_test(steady, slow, 1.0).p[0] > 0.3
    assert permutation_test(steady, slow + 20, 1.0).p[0] < 0.05


def test_figures_without_jitter_are_told_apart_beyond_their_resolution() -> None:
    same, other = np.full((1, 3), 5.0), np.full((1, 3), 6.0)
    assert permutation_test(same, other, 0.01).p[0] < 0.001
    assert permutation_test(same, same, 0.01).p[0] == 1
    assert permutation_test(same, other, 10.0).p[0] > 0.5


def test_fewer_than_three_steps_say_nothing() -> None:
    found = permutation_test(np.ones((4, 2)), np.ones((4, 9)), 1.0)
    assert np.isnan(found.p).all()
    assert not np.isnan(found.error).any()
    assert np.isnan(permutation_test(np.ones((1, 1)), np.ones((1, 9)), 1.0).error).all()


@examples(50)
@given(
    st.lists(st.integers(0, 1000), min_size=4, max_size=6),
    st.lists(st.integers(0, 1000), min_size=4, max_size=6),
    st.sampled_from([0.5, 2.0, 1024.0]),
)
def test_neither_the_order_of_steps_nor_that_of_sides_matters(
    before: list[int], after: list[int], scale: float
) -> None:
    first, second = np.array([before], float), np.array([after], float)
    p = permutation_test(first, second, 1.0).p[0]
    assert 0 < p <= 1
    assert permutation_test(first[:, ::-1], second, 1.0).p[0] == pytest.approx(p)
    assert permutation_test(second, first, 1.0).p[0] == pytest.approx(p)
    assert permutation_test(first * scale, second * scale, scale).p[0] == pytest.approx(p)


def test_nor_does_that_of_sides_where_dealings_are_random() -> None:
    random = np.random.default_rng(5)
    first, second = random.normal(100, 3, (40, 12)), random.normal(101, 3, (40, 9))
    for before, after in ((first, second), (first, second[:, [*range(9), 0, 1, 2]])):
        assert (
            permutation_test(before, after, 0.01).p.tolist()
            == permutation_test(after, before, 0.01).p.tolist()
        )


@pytest.mark.parametrize(
    ("freedom", "t", "p"),
    # critical values of Student's t, from any table
    [(1, 12.706, 0.05), (2, 4.303, 0.05), (4, 2.776, 0.05), (10, 3.169, 0.01), (30, 2.042, 0.05)],
)
def test_students_t_is_as_in_the_tables(freedom: float, t: float, p: float) -> None:
    assert two_sided_p(t, freedom) == pytest.approx(p, rel=1e-3)
    assert two_sided_p(0, freedom) == 1


@given(st.floats(0.5, 50), st.floats(0.5, 50), st.floats(0.001, 0.999))
def test_the_beta_function_is_symmetric(a: float, b: float, x: float) -> None:
    assert incomplete_beta(a, b, x) == pytest.approx(1 - incomplete_beta(b, a, 1 - x), abs=1e-9)


def test_holm_steps_down() -> None:
    assert holm(np.array([0.04, 0.01, 0.03])).tolist() == pytest.approx([0.06, 0.03, 0.06])


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 6, 20])
def test_steps_of_one_real_job_are_rarely_told_apart(count: int) -> None:
    """Of 96 recorded steps, dealt out anew each time, with all operators tested together."""
    [path] = (ROOT / "sample_logs" / "batch_size" / "batch_8").glob("*.gz")
    side = side_samples("job", [sample(trace_at(path))])
    found = cost_table(side, [each.operators for each in side.traces])
    every = np.arange(len(found.keys))
    operators = sampled(side, found, every, "host_ns", len(every))
    operators = operators[(operators > 0).any(axis=1)]
    random = np.random.default_rng(11)
    trials, alarms = 100, 0
    for _ in range(trials):
        chosen = random.permutation(operators.shape[1])[: 2 * count]
        p = permutation_test(operators[:, chosen[:count]], operators[:, chosen[count:]], 1000.0).p
        alarms += bool((p < 0.05).any())
    assert alarms / trials <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)
