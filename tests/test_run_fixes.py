"""Fixes of findings over a run: the change that the finding's saving was simulated with."""

import pytest

from rankparts import Job, parts_of, shape
from stepscope.advice.run_fixes import is_of_run, with_fixes
from stepscope.advice.settings import AdviceSettings, Changes
from stepscope.analyses.communication.ranked_run import rank_run
from stepscope.base.errors import UsageError
from stepscope.replay.run_savings import saved_by_equal_work_ns, savings_of_late_ranks
from stepscope.replay.run_what_if import RunWhatIf, predict_run

LATE = shape(16, slow={5: 0.3})
UNEQUAL = shape(8, slow={0: 0.2, 1: 0.2, 2: 0.2, 3: 0.2})


def saved_ns(job: Job, what_if: RunWhatIf) -> float:
    """The saving of changes, compared with an unchanged replay."""
    run = rank_run(parts_of(job))
    return predict_run(run, RunWhatIf()).simulated_ns - predict_run(run, what_if).simulated_ns


def test_the_fix_of_a_late_rank_is_the_run_without_it() -> None:
    what_if = with_fixes(RunWhatIf(network=2), parts_of(LATE), ["straggler-rank"])
    assert what_if == RunWhatIf(network=2, without_ranks=(5,))
    savings = savings_of_late_ranks(rank_run(parts_of(LATE)), [[5]])
    assert savings is not None
    # the command keeps the recorded transfers, the claim takes each rank's shortest
    alone = RunWhatIf(without_ranks=(5,))
    assert saved_ns(LATE, alone) == pytest.approx(savings[0].gone_ns, rel=0.01)


def test_the_fix_of_an_imbalance_is_equal_work() -> None:
    what_if = with_fixes(RunWhatIf(), parts_of(UNEQUAL), ["rank-compute-imbalance"])
    assert what_if == RunWhatIf(ranks_alike=True)
    assert saved_ns(UNEQUAL, what_if) == pytest.approx(
        saved_by_equal_work_ns(rank_run(parts_of(UNEQUAL))), rel=0.04
    )


def test_both_apply_together() -> None:
    what_if = with_fixes(
        RunWhatIf(without_ranks=(2,)), parts_of(LATE), ["straggler-rank", "rank-compute-imbalance"]
    )
    assert what_if == RunWhatIf(without_ranks=(2, 5), ranks_alike=True)


@pytest.mark.parametrize("name", ["straggler-rank", "no-such-rule", "moe-imbalance"])
def test_a_rule_without_a_finding_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} has no finding in this run"):
        with_fixes(RunWhatIf(), parts_of(UNEQUAL), [name])


def test_thresholds_are_the_users() -> None:
    options = {"straggler-rank": {"least_wait_share": 0.9}}
    settings = AdviceSettings(changes=Changes(options=options))
    with pytest.raises(UsageError, match="straggler-rank has no finding in this run"):
        with_fixes(RunWhatIf(), parts_of(LATE), ["straggler-rank"], settings)


def test_rules_over_a_run_are_told_from_those_of_a_trace() -> None:
    names = ("straggler-rank", "missing-ranks", "item-sync", "no-such-rule")
    assert [is_of_run(name) for name in names] == [True, True, False, False]
