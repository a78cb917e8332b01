"""Savings of rules over ranks: by a replay of the run, or where it is refused, by the waiting."""

import dataclasses

import pytest

from rules.test_rules import RULES, planned
from stepscope.advice import advise
from stepscope.base.findings import ClaimReport
from stepscope.model.trace import Run
from stepscope.replay import run_savings

ONE_LATE = {"world_size": 8, "step_count": 6, "slow_us": {3: 100}}
HALF_LATE = {"world_size": 4, "step_count": 6, "slow_us": {2: 250, 3: 250}}


def claim(stem: str, plan: dict[str, object]) -> ClaimReport:
    workers = tuple(
        dataclasses.replace(trace, worker=f"rank{rank}", id=str(rank))
        for rank, trace in enumerate(planned(plan))
    )
    [outcome] = advise(Run(name="run", workers=workers), [RULES[stem]]).outcomes
    assert outcome.claim is not None
    return outcome.claim


def test_a_late_rank_is_replayed_as_fast_as_the_others_and_with_shared_work() -> None:
    """100 us are gone; shared by eight ranks, 87.5 us, of which 65 % are the least."""
    replayed = claim("straggler_rank", ONE_LATE)
    assert replayed.method.startswith("The run replayed with this rank working as long as the")
    assert (replayed.net_low_ns, replayed.net_high_ns) == (56_875, 100_000)


def test_ranks_with_unequal_work_are_replayed_with_equal_work() -> None:
    replayed = claim("rank_compute_imbalance", HALF_LATE)
    assert replayed.method.startswith("The run replayed with equal work on the ranks of a stage")
    assert (replayed.net_low_ns, replayed.net_high_ns) == (62_500, 125_000)


def test_where_no_replay_is_possible_the_waiting_is_claimed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_savings, "MOST_ERROR", -1.0)
    late = claim("straggler_rank", ONE_LATE)
    assert late.method.startswith("The others' waiting in collectives")
    assert (late.net_low_ns, late.net_high_ns) == (30_000, 100_000)
    uneven = claim("rank_compute_imbalance", HALF_LATE)
    assert uneven.method.startswith("The longest computing time per step less the mean")
    assert (uneven.net_low_ns, uneven.net_high_ns) == (62_500, 125_000)
