"""Simulated savings of a run whose late ranks work as the others do."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.communication.rank_metrics import stages_of
from stepscope.analyses.communication.ranked_run import RankRun
from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import Mask
from stepscope.replay.run_changes import EqualWork, PromptTransfers, RunChange, UsualWork
from stepscope.replay.run_simulation import MOST_ERROR, run_replay_error, simulate_run, uncut


@dataclass(frozen=True, kw_only=True)
class RunSaving:
    """Time that a run saves per step."""

    shared_ns: float
    """If the late ranks' additional work is shared with the others; never more than `gone_ns`."""
    gone_ns: float
    """If it is gone."""


def savings_of_late_ranks(
    run: RankRun, groups: Sequence[Sequence[int]]
) -> tuple[RunSaving, ...] | None:
    """Return the saving of each group of late ranks after those before it; they sum to the total.

    None where the run cannot be replayed.

    Args:
        run: The run.
        groups: Traces of late ranks, as indexes of `run.parts`.
    """
    try:
        whole = uncut(run)
        if run_replay_error(whole) > MOST_ERROR:
            return None
        return _savings(whole, [_mask(run, whole, group) for group in groups])
    except MissingDataError:
        return None


def saved_by_equal_work_ns(run: RankRun) -> float | None:
    """Return the time that a run saves per step if all ranks of a stage work as long as their mean.

    None where the run cannot be replayed, or each stage has one rank.
    """
    try:
        whole = uncut(run)
        if run_replay_error(whole) > MOST_ERROR:
            return None
        return max(0.0, _step_ns(whole) - _step_ns(whole, EqualWork(stage=stages_of(whole))))
    except MissingDataError:
        return None


def _mask(run: RankRun, whole: RankRun, group: Sequence[int]) -> Mask:
    late = {run.parts[index].evidence.worker for index in group}
    return np.array([part.evidence.worker in late for part in whole.parts], dtype=bool)


def _savings(run: RankRun, late: Sequence[Mask]) -> tuple[RunSaving, ...]:
    stage = stages_of(run)
    before_ns = _step_ns(run)
    shared_ns = before_ns - _step_ns(run, EqualWork(stage=stage))
    savings, mended = [], np.zeros(len(run.parts), dtype=bool)
    for group in late:
        mended = mended | group
        after_ns = _step_ns(run, UsualWork(stage=stage, is_changed=mended))
        gone_ns = max(0.0, before_ns - after_ns)
        savings.append(RunSaving(shared_ns=max(0.0, min(shared_ns, gone_ns)), gone_ns=gone_ns))
        before_ns = min(before_ns, after_ns)
    return tuple(savings)


def _step_ns(run: RankRun, *changes: RunChange) -> float:
    """Return the mean step of the run's ranks with changes."""
    return float(simulate_run(run, (PromptTransfers(), *changes)).step_ns.mean())
