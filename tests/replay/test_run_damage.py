"""Damaged summaries: whatever the times, groups and steps are, a replay ends or is refused."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from rankparts import Job, parts_of
from stepscope.analyses.communication.rank_steps import Curve
from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.communication.ranked_run import rank_run
from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import Ints
from stepscope.replay.run_changes import EqualWork
from stepscope.replay.run_savings import savings_of_late_ranks
from stepscope.replay.run_simulation import simulate_run
from stepscope.replay.run_what_if import RunWhatIf, predict_run

pytestmark = pytest.mark.frames
JOB = Job(data=2, tensor=2, step_count=2, part_count=1, layer_count=2)
PARTS = parts_of(JOB)
BEGIN_NS = int(PARTS[0].steps.start_ns[0])
LENGTH_NS = 40_000_000


def damaged(part: RankSummary, random: np.random.Generator) -> RankSummary:
    """Return a summary with some of its columns drawn at random; those that must ascend do."""
    whole, steps = part.collectives, part.steps
    count = len(whole)

    def times(size: int) -> Ints:
        return BEGIN_NS + random.integers(-LENGTH_NS // 4, LENGTH_NS, size)

    columns: dict[str, Any] = {
        "start_ns": times(count),
        "ready_ns": times(count),
        "duration_ns": random.integers(0, LENGTH_NS // 10, count),
        "sequence": random.integers(-1, 3, count),
        "step": random.integers(-1, 3, count),
        "key": random.permutation(whole.key),
    }
    names = random.choice(list(columns), random.integers(0, 4), replace=False)
    at_ns = np.sort(times(2 * count))
    until_ns = np.cumsum(random.integers(0, 2, 2 * count) * np.diff(at_ns, prepend=at_ns[0]))
    curve = Curve(at_ns=at_ns, until_ns=until_ns) if random.integers(2) else steps.exposed
    start_ns = np.sort(times(len(steps))) if random.integers(2) else steps.start_ns
    return replace(
        part,
        collectives=replace(whole, **{name: columns[name] for name in names}),
        steps=replace(steps, exposed=curve, start_ns=start_ns),
    )


@examples(150)
@given(st.integers(0, 2**32 - 1), st.integers(0, 4))
def test_a_damaged_run_is_replayed_or_refused(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    parts = [damaged(part, random) if at < count else part for at, part in enumerate(PARTS)]
    run = rank_run(parts)
    for saving in savings_of_late_ranks(run, [(1,), (2,)]) or ():
        assert 0 <= saving.shared_ns <= saving.gone_ns < np.inf
    with suppress(MissingDataError):
        prediction = predict_run(run, RunWhatIf(ranks_alike=True, network=2.0))
        assert all(rank.simulated_wait_ns >= 0 for rank in prediction.ranks)
    with suppress(MissingDataError):  # also where its error is above the bound
        equal = EqualWork(stage=np.zeros(len(parts), dtype=np.int64))
        simulated = simulate_run(run, [equal])
        assert (simulated.step_ns >= 0).all()
        assert simulated.step_ns.max() < 10 * LENGTH_NS
