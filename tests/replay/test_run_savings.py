"""Savings of late ranks: each after those before it, together that of the job without any."""

import numpy as np
import pytest

from rankparts import Job, parts_of, shape
from stepscope.analyses.communication.ranked_run import RankRun, rank_run
from stepscope.replay.run_savings import saved_by_equal_work_ns, savings_of_late_ranks

pytestmark = pytest.mark.frames


def run_of(job: Job) -> RankRun:
    return rank_run(parts_of(job))


def step_ns(job: Job) -> float:
    """Return the mean step of a job as it was played."""
    return float(np.mean([part.steps.duration_ns.mean() for part in parts_of(job)]))


def gone_ns(job: Job, *groups: tuple[int, ...]) -> list[float]:
    savings = savings_of_late_ranks(run_of(job), groups)
    assert savings is not None
    return [saving.gone_ns for saving in savings]


@pytest.mark.parametrize("size", [16, 64])
def test_one_straggler_costs_what_the_job_without_it_saves(size: int) -> None:
    slow = shape(size, slow={5: 0.3})
    saved = step_ns(slow) - step_ns(shape(size))
    assert gone_ns(slow, (5,)) == [pytest.approx(saved, rel=0.02)]


def test_of_two_stragglers_that_meet_the_first_saves_nothing_and_both_all() -> None:
    """The ranks of a group wait for the slower one: mending one of two is of no use."""
    both = shape(64, slow={36: 0.3, 37: 0.3})
    first, second = gone_ns(both, (37,), (36,))
    assert first < 0.05 * second
    assert first + second == pytest.approx(step_ns(both) - step_ns(shape(64)), rel=0.02)
    assert gone_ns(both, (36, 37)) == [pytest.approx(first + second)]


def test_shared_work_of_one_of_two_ranks_saves_half() -> None:
    job = Job(data=2, slow={1: 0.5}, jitter=0.0)
    savings = savings_of_late_ranks(run_of(job), [(1,)])
    assert savings is not None
    assert savings[0].shared_ns == pytest.approx(savings[0].gone_ns / 2, rel=0.01)


def test_a_rank_that_is_not_late_saves_nothing() -> None:
    assert gone_ns(shape(16, slow={5: 0.3}), (2,)) == [pytest.approx(0, abs=0.05e6)]


@pytest.mark.parametrize("late", [(0, 1), (0,)])
def test_a_run_that_cannot_be_replayed_has_no_simulated_saving(late: tuple[int, ...]) -> None:
    """All ranks late: there is none to compare with. One rank: there is nobody who waits."""
    parts = parts_of(Job(data=2))[: len(late)]
    assert savings_of_late_ranks(rank_run(parts), [late]) is None


def test_equal_work_saves_the_mean_of_what_ranks_work_beyond_it() -> None:
    job = Job(data=4, slow={2: 0.5, 3: 0.5}, jitter=0.0)
    even = Job(data=4, slow=dict.fromkeys(range(4), 0.25), jitter=0.0)
    saved = saved_by_equal_work_ns(run_of(job))
    assert saved == pytest.approx(step_ns(job) - step_ns(even), rel=0.02)


def test_stages_that_differ_by_design_save_nothing_by_equal_work() -> None:
    job = shape(64, stage_cost={1: 0.5}, jitter=0.0)
    assert saved_by_equal_work_ns(run_of(job)) == pytest.approx(0, abs=0.001 * step_ns(job))


def test_one_rank_has_none_to_be_equal_to() -> None:
    assert saved_by_equal_work_ns(rank_run(parts_of(Job(data=2))[:1])) is None
