"""Steps of generated jobs after changes, compared with jobs that are so from the start.

The generator (`rankparts`) plays the ranks forward in time; the replay sees only their summaries.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankparts
from rankparts import Job, parts_of, shape
from stepscope.analyses.communication.rank_summary import RankCollectives, RankSummary
from stepscope.analyses.communication.ranked_run import RankRun, rank_run
from stepscope.base.errors import MissingDataError, UsageError
from stepscope.replay import run_what_if
from stepscope.replay.run_changes import ScaleWork
from stepscope.replay.run_graph import run_graph
from stepscope.replay.run_simulation import MOST_ERROR, run_replay_error, simulate_run
from stepscope.replay.run_what_if import (
    RunPrediction,
    RunWhatIf,
    StageScale,
    parse_stage,
    predict_run,
)

pytestmark = pytest.mark.frames
SLOW = 5
SLOWER = {SLOW: 0.3}
SMALL = Job(data=2, tensor=2, step_count=3, slow={1: 0.5})


def run_of(job: Job) -> RankRun:
    return rank_run(parts_of(job))


def step_ns(job: Job) -> float:
    """Return the mean step of a job as it was played."""
    return float(np.mean([part.steps.duration_ns.mean() for part in parts_of(job)]))


def predicted(job: Job, **what_if: Any) -> RunPrediction:
    return predict_run(run_of(job), RunWhatIf(**what_if))


@pytest.mark.parametrize(
    "job",
    [
        shape(16, slow=SLOWER),
        shape(64, slow=SLOWER),
        shape(256, stage_cost={0: 0.25, 3: 0.1}),
        shape(64, clock_ns={at: (at * 37 % 11 - 5) * 10**9 for at in range(8)}),
    ],
    ids=["one stage", "two stages", "uneven stages", "clocks apart by seconds"],
)
def test_an_unchanged_replay_gives_the_recorded_steps(job: Job) -> None:
    prediction = predicted(job)
    assert prediction.replay_error < 0.005
    assert prediction.recorded_ns == pytest.approx(step_ns(job))
    assert prediction.simulated_ns == pytest.approx(prediction.recorded_ns, rel=0.005)


@pytest.mark.parametrize("size", [16, 64, 256])
def test_without_the_straggler_the_step_is_that_of_the_job_without_one(size: int) -> None:
    prediction = predicted(shape(size, slow=SLOWER), without_ranks=(SLOW,))
    assert prediction.recorded_ns > 1.07 * step_ns(shape(size))
    assert prediction.simulated_ns == pytest.approx(step_ns(shape(size)), rel=0.01)


@pytest.mark.parametrize("size", [16, 64, 256])
def test_with_all_ranks_alike_the_step_is_that_of_a_job_without_jitter(size: int) -> None:
    prediction = predicted(shape(size, slow=SLOWER), ranks_alike=True)
    mean_slowdown = 1 + 0.3 / (size // max(1, size // 64))
    most = step_ns(shape(size, jitter=0.0))
    assert 0.99 * most < prediction.simulated_ns < 1.01 * mean_slowdown * most


@pytest.mark.parametrize("size", [16, 64])
def test_a_faster_network_halves_the_transfers(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    prediction = predicted(shape(size, slow=SLOWER), network=2.0)
    half = {axis: took / 2 for axis, took in rankparts.TRANSFER_US.items()}
    monkeypatch.setattr(rankparts, "TRANSFER_US", half)
    assert prediction.simulated_ns == pytest.approx(step_ns(shape(size, slow=SLOWER)), rel=0.01)


def test_a_slow_stage_slows_the_job_as_if_it_had_been_slow() -> None:
    stages = (StageScale(stage=2, factor=1.5),)
    prediction = predicted(shape(256), stages=stages)
    expected = step_ns(shape(256, stage_cost={1: 0.5}))
    assert prediction.simulated_ns == pytest.approx(expected, rel=0.01)
    assert {rank.stage for rank in prediction.ranks} == {1, 2, 3, 4}


def test_waiting_moves_with_the_work() -> None:
    """The other ranks wait for the straggler, and no longer if it works as they do."""
    prediction = predicted(shape(16, slow=SLOWER), without_ranks=(SLOW,))
    slow, *others = sorted(prediction.ranks, key=lambda rank: rank.rank != SLOW)
    assert slow.recorded_work_ns == pytest.approx(1.3 * others[0].recorded_work_ns, rel=0.02)
    assert slow.simulated_work_ns == pytest.approx(others[0].simulated_work_ns, rel=0.02)
    assert slow.recorded_wait_ns < 0.1 * np.mean([rank.recorded_wait_ns for rank in others])
    assert all(rank.simulated_wait_ns < 0.3 * rank.recorded_wait_ns for rank in others)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 3), st.floats(0, 1))
def test_less_work_of_a_rank_never_makes_a_step_end_later(rank: int, factor: float) -> None:
    run = run_of(SMALL)
    change = ScaleWork(is_changed=np.arange(4) == rank, factor=factor)
    before, after = simulate_run(run, ()), simulate_run(run, (change,))
    ends = (simulation.step_ns.cumsum(axis=1) for simulation in (before, after))
    last, first = ends
    assert (first <= last).all()


# --- refusals


def changed(part: RankSummary, rows: Any) -> RankSummary:
    """Return a rank's summary with only some of its collectives."""
    whole = part.collectives
    columns = {
        name: getattr(whole, name)[rows]
        for name in RankCollectives.__annotations__
        if name != "keys"
    }
    return replace(part, collectives=RankCollectives(keys=whole.keys, **columns))


def with_steps(part: RankSummary, count: int) -> RankSummary:
    """Return a rank's summary with only its first steps."""
    names = ("number", "start_ns", "duration_ns", "computing_ns", "overlapped_ns", "exposed_ns")
    more = ("copies_ns", "loading_ns", "idle_ns")
    first = {name: getattr(part.steps, name)[:count] for name in (*names, *more)}
    totals = replace(part.totals, step_count=count)
    return replace(part, steps=replace(part.steps, **first), totals=totals)


def refused(parts: list[RankSummary]) -> str:
    with pytest.raises(MissingDataError) as refusal:
        predict_run(rank_run(parts), RunWhatIf())
    assert refusal.value.remedy
    return str(refusal.value)


def test_one_rank_is_refused() -> None:
    assert refused(parts_of(SMALL)[:1]) == "only one rank was recorded"


def test_a_rank_without_a_collective_of_its_group_is_refused() -> None:
    parts = parts_of(SMALL)
    parts[3] = changed(parts[3], slice(0, -1))
    assert refused(parts) == (
        "1 of 123 collectives lack a rank: of the 4 recorded ranks of group 0, only ranks 0-2 took "
        "part in one all_reduce of step 2"
    )


def test_ranks_with_different_steps_are_refused() -> None:
    parts = parts_of(SMALL)
    parts[3] = with_steps(parts[3], 2)
    assert refused(parts) == (
        "the ranks recorded different steps: ranks 0-2 steps 0-2, rank 3 steps 0-1"
    )


def test_several_traces_of_a_rank_are_refused() -> None:
    parts = parts_of(SMALL)
    again = replace(parts[0], evidence=replace(parts[0].evidence, span="2"))
    assert (
        refused([*parts, again]) == "ranks have several traces (spans 1, 2): select one with --span"
    )


def test_collectives_in_another_order_on_a_rank_are_refused() -> None:
    """Rank 0 enters collective 1 before 0, so that both wait for one another."""
    parts = parts_of(Job(data=2, step_count=1))
    sequence = parts[0].collectives.sequence.copy()
    sequence[[0, 1]] = sequence[[1, 0]]
    parts[0] = replace(parts[0], collectives=replace(parts[0].collectives, sequence=sequence))
    assert "circle" in refused(parts)


def test_ranks_that_share_no_collective_are_refused() -> None:
    parts = [changed(part, slice(0, 0)) for part in parts_of(SMALL)]
    assert refused(parts) == "no collective of a rank matches another rank's"


def test_a_replay_that_misses_the_recorded_steps_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = parts_of(shape(64))
    assert 0.001 < run_replay_error(rank_run(parts)) < MOST_ERROR == 0.02
    monkeypatch.setattr(run_what_if, "MOST_ERROR", 0.001)
    assert "replayed with typical transfers, the ranks' steps are 0." in refused(parts)


def test_a_rank_or_stage_that_does_not_exist_is_refused() -> None:
    run = run_of(SMALL)
    with pytest.raises(UsageError, match="there is no rank 17; the run has ranks 0-3"):
        predict_run(run, RunWhatIf(without_ranks=(17,)))
    stages = (StageScale(stage=2, factor=2.0),)
    with pytest.raises(UsageError, match="no pipeline stage 2: the run has no pipeline stages"):
        predict_run(run, RunWhatIf(stages=stages))


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_a_speed_or_factor_out_of_range_is_refused(speed: float) -> None:
    run = run_of(SMALL)
    with pytest.raises(UsageError, match="is not a number above 0"):
        predict_run(run, RunWhatIf(network=speed))
    with pytest.raises(UsageError, match="of stage 1 is not a number from 0"):
        predict_run(run, RunWhatIf(stages=(StageScale(stage=1, factor=-1 + 0 * speed),)))


def test_a_rank_without_peers_is_refused() -> None:
    run = run_of(SMALL)
    with pytest.raises(MissingDataError, match="no other rank of its pipeline stage"):
        predict_run(run, RunWhatIf(without_ranks=(0, 1, 2, 3)))


@pytest.mark.parametrize("text", ["2", "0=1.5", "a=2", "2=-1", ""])
def test_another_form_of_a_stage_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not of the form STAGE=FACTOR"):
        parse_stage(text)


def test_a_stage_is_a_number_and_a_factor() -> None:
    assert parse_stage("2=.5") == StageScale(stage=2, factor=0.5)


# --- ranks that were not recorded


def test_a_trace_that_was_cut_off_is_left_out() -> None:
    parts = parts_of(shape(16, slow=SLOWER))
    parts[7] = with_steps(parts[7], 1)
    prediction = predict_run(rank_run(parts), RunWhatIf(without_ranks=(SLOW,)))
    assert (prediction.left_out, prediction.missing_ranks) == (("rank7",), (7,))
    assert prediction.simulated_ns == pytest.approx(step_ns(shape(16)), rel=0.01)


def test_waiting_for_a_missing_rank_is_not_transfer() -> None:
    """Collectives with rank 4, which is missing, take what like ones with all ranks take."""
    job = Job(data=4, tensor=2, slow={5: 0.5})
    parts = [part for at, part in enumerate(parts_of(job)) if at != 4]
    prediction = predict_run(rank_run(parts), RunWhatIf(without_ranks=(5,)))
    assert prediction.missing_ranks == (4,)
    even = step_ns(Job(data=4, tensor=2))
    assert prediction.simulated_ns == pytest.approx(even, rel=0.02)
    transfers = run_graph(rank_run(parts)).duration_ns[run_graph(rank_run(parts)).members]
    assert transfers.max() < 0.5e6
