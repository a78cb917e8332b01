"""Jobs of hundreds of ranks whose truth is known: who holds the others up, and who does not."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import cross_rank
from rankparts import Job, parts_of, shape
from stepscope.analyses.communication.rank_metrics import compute_time, step_excess_ns
from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.communication.ranked_run import RankRun, rank_run
from stepscope.analyses.communication.run_steps import run_steps
from stepscope.analyses.communication.stragglers import straggler_groups, stragglers
from stepscope.analyses.core.robust_slope import OUTLIER, modified_zscores, outlier_score
from stepscope.rules import Recording, RunEvidence, straggler_rank

pytestmark = pytest.mark.frames

SLOW = 37


def slow(*ranks: int, by: float = 0.3) -> dict[int, float]:
    """These ranks compute so much longer."""
    return dict.fromkeys(ranks, by)


def late_ranks(parts: Sequence[RankSummary]) -> list[int]:
    """The ranks that are stragglers."""
    table = stragglers(parts)
    return sorted(table["rank"][table["is_straggler"]].astype(int))


def told(run: RankRun) -> list[tuple[str, str, list[int]]]:
    """What the stragglers are together, and their ranks."""
    return [
        (each.kind, each.name, sorted(run.ranks[at].rank or 0 for at in each.indexes))
        for each in straggler_groups(run)
    ]


@pytest.mark.parametrize("how", [{}, {"jitter": 0.1}, {"stage_cost": {0: 0.25, 3: 0.1}}])
def test_of_even_ranks_none_is_a_straggler(how: dict[str, Any]) -> None:
    assert late_ranks(parts_of(shape(1_024 if not how else 256, **how))) == []


@pytest.mark.parametrize(
    "how",
    [
        {"slow": slow(SLOW)},
        {"slow": slow(SLOW), "clock_ns": {at: (at * 37 % 11 - 5) * 10**9 for at in range(32)}},
        {"slow": slow(SLOW, by=0.6), "slow_steps": range(2, 4)},
        {"slow": slow(SLOW), "slow_by": "dataloader"},
        {"slow": slow(SLOW), "stage_cost": {0: 0.25, 3: 0.1}},
    ],
    ids=["always", "clocks apart by seconds", "in two steps of five", "loading", "uneven stages"],
)  # fmt: skip
def test_the_slow_rank_of_many_is_the_only_straggler(how: dict[str, Any]) -> None:
    assert late_ranks(parts_of(shape(256, **how))) == [SLOW]


def test_it_is_found_though_two_ranks_are_missing_and_one_has_half_of_its_collectives() -> None:
    parts = parts_of(shape(1_024, slow=slow(611)))
    cut = parts_of(shape(1_024, slow=slow(611), step_count=2))[300]
    left = [cut if at == 300 else part for at, part in enumerate(parts) if at not in {36, 612}]
    assert late_ranks(left) == [611]


def test_since_when_a_rank_has_more_to_do() -> None:
    table = stragglers(parts_of(shape(64, slow=slow(SLOW, by=0.6), slow_steps=range(3, 5))))
    assert list(table.loc[0, ["rank", "since_step", "cause"]]) == [SLOW, 3, "computing"]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"slow": slow(SLOW)}, [("rank", "", [SLOW])]),
        ({"slow": {SLOW: 0.2, 9: 0.3}}, [("rank", "", [9]), ("rank", "", [SLOW])]),
        ({"slow": slow(*range(24, 32))}, [("host", "node003", list(range(24, 32)))]),
        (
            {"slow": slow(*range(24, 32)), "host_size": 4},
            [("group", "mesh_tp (tp3)", list(range(24, 32)))],
        ),
        (
            {"slow": slow(*range(5, 64, 8))},
            [("group", "mesh_dp (dp5)", list(range(5, 64, 8)))],
        ),
        ({"slow": slow(5, 14, 23, 32)}, [("ranks", "", [5, 14, 23, 32])]),
    ],
)
def test_late_ranks_are_told_as_what_they_are_together(
    how: dict[str, Any], expected: list[tuple[str, str, list[int]]]
) -> None:
    assert told(rank_run(parts_of(shape(256, **how)))) == expected


def recorded_again(job: Job, count: int) -> list[RankSummary]:
    """A job of which each rank was recorded several times, one after the other."""
    parts = []
    for number in range(count):
        for part in parts_of(dataclasses.replace(job, seed=number)):
            sent = part.collectives.sequence
            later = dataclasses.replace(
                part.collectives, sequence=np.where(sent < 0, -1, sent + 1_000 * number)
            )
            named = dataclasses.replace(part.evidence, span=str(number + 1))
            parts.append(dataclasses.replace(part, evidence=named, collectives=later))
    return parts


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_rank_that_was_recorded_several_times_is_one(count: int) -> None:
    parts = recorded_again(Job(data=8, slow={3: 0.3}), count)
    recordings = tuple(
        Recording(trace=f"{part.evidence.worker} {part.evidence.span}", part=part, outcomes=(),
                  worker=part.evidence.worker, span=part.evidence.span)
        for part in parts
    )  # fmt: skip
    evidence = RunEvidence(name="run", recordings=recordings)
    [finding] = straggler_rank.check_run(evidence, straggler_rank.Options())
    assert finding.message.startswith("Rank 3 comes last to ")
    assert f" of {25 * count} collectives" in finding.message
    assert "the others wait 2.9" in finding.message
    assert [trace.split()[0] for trace in finding.blamed] == ["rank3"]


def test_a_machine_has_as_many_ranks_however_often_they_were_recorded() -> None:
    job = Job(data=16, slow=slow(*range(8, 12)), host_size=4)
    [late] = straggler_groups(rank_run(recorded_again(job, 3)))
    assert (late.kind, late.name, late.recorded_count) == ("host", "node002", 4)
    assert len(late.indexes) == 12


def test_what_mending_them_wins_is_shared_out_and_sums_to_what_the_slowest_costs() -> None:
    run = rank_run(parts_of(shape(64, slow={SLOW: 0.2, 9: 0.3})))
    first, second = straggler_groups(run)
    excess = compute_time(run).excess_ns
    rest = max(np.delete(excess, [9, SLOW]))
    assert first.gain_ns + second.gain_ns == pytest.approx(excess[9] - rest)
    assert first.gain_ns / second.gain_ns == pytest.approx(excess[9] / excess[SLOW])


def test_own_work_is_what_the_job_gave_each_rank_to_do() -> None:
    job = shape(64, slow=slow(SLOW), step_count=2)
    parts = parts_of(job)
    work = compute_time(rank_run(parts))
    layers = 2 * job.part_count * job.layer_count + job.bucket_count
    longer = layers * job.compute_us * 1_000 * 0.3
    assert work.excess_ns[SLOW] == pytest.approx(longer, rel=0.1)
    assert np.abs(np.delete(work.excess_ns, SLOW)).max() < longer / 10
    assert sorted(np.bincount(work.peers)) == [32, 32]  # its two stages


def test_a_steps_excess_is_against_the_median_of_the_same_step() -> None:
    run = rank_run(parts_of(shape(64, slow=slow(SLOW), slow_steps=range(2, 3))))
    steps, excess = run_steps(run), step_excess_ns(run)
    own = steps.duration_ns - steps.of("waiting") - steps.of("transfer")
    peers = compute_time(run).peers[steps.trace_index]
    for row in range(0, len(own), 7):
        alike = (peers == peers[row]) & (steps.number == steps.number[row])
        assert excess[row] == pytest.approx(own[row] - np.median(own[alike]), abs=1)


@given(st.lists(st.floats(-1e9, 1e9), max_size=12), st.floats(0, 1e6))
@settings(deadline=None)
def test_scores_are_in_order_of_the_values_and_none_without_a_difference(
    values: list[float], least: float
) -> None:
    found = modified_zscores(np.array(values, dtype=float), least)
    if len(values) < 3:
        assert np.isnan(found).all()
        return
    order = np.argsort(values, kind="stable")
    assert (np.diff(found[order]) >= 0).all()
    assert not modified_zscores(np.full(5, 7.0)).any()


def test_nearly_equal_values_have_the_least_scale() -> None:
    values = np.array([100.0] * 20 + [100.5])
    assert modified_zscores(values)[-1] > OUTLIER
    assert modified_zscores(values, least_scale=1.0)[-1] == pytest.approx(0.5)


def test_among_four_of_which_three_are_equal_the_least_scale_decides() -> None:
    values = np.array([100.0, 100.0, 100.0, 130.0])
    assert modified_zscores(values)[-1] < OUTLIER
    assert modified_zscores(values, least_scale=1.0).tolist() == [0, 0, 0, 30]


@pytest.mark.parametrize(("count", "score"), [(2, OUTLIER), (1_024, 4.456), (16_384, 5.04)])
def test_of_more_values_one_must_lie_further_out(count: int, score: float) -> None:
    assert outlier_score(count) == pytest.approx(score, abs=1e-3)


def test_the_benchmark_measures_jobs_smaller_than_its_slow_rank(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["cross_rank", "--ranks", "16", "--steps", "2"])
    cross_rank.main()
    assert "replay prediction" in capsys.readouterr().out
