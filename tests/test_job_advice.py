"""What is said of a whole job: where and when findings hold, what it saves, whom they blame."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobreports import MS, found, job, over_the_run, passed, rank
from stepscope.advice import blamed_ranks
from stepscope.advice.finding_extent import joined
from stepscope.advice.job_savings import RankSavings, job_saving, total_saving
from stepscope.base.findings import ClaimReport, Outcome
from stepscope.base.formatting import Ranges
from stepscope.base.report import (
    HealthItem,
    JobOutlook,
    JobReport,
    JobSaving,
    MergedOutcome,
    RelatedFinding,
    RunReport,
    StepReport,
    WorkerReport,
)


def merged(run: RunReport, rule: str = "rule") -> MergedOutcome:
    return next(each for each in run.merged if each.outcome.rule == rule)


def job_of(run: RunReport) -> JobReport:
    assert run.job is not None
    return run.job


def in_percent(saved: JobSaving | None) -> tuple[float, float]:
    assert saved is not None
    return round(saved.low_share * 100, 6), round(saved.high_share * 100, 6)


# Where


def places(*numbers: int, workers: tuple[WorkerReport, ...]) -> MergedOutcome:
    return merged(job(*(found(number, 1, 2) for number in numbers), workers=workers))


def on_hosts(count: int) -> tuple[WorkerReport, ...]:
    """Ranks in pairs on machines, in two pipeline stages."""
    return tuple(
        rank(n, host=f"node{n // 2}", groups=(f"pipeline stage {n * 2 // count + 1} of 2",))
        for n in range(count)
    )


def test_all_processes_of_a_machine_are_told_by_its_name() -> None:
    said = places(2, 3, workers=on_hosts(8))
    assert (said.ranks, said.hosts, said.group) == ("2-3", ("node1",), "")
    assert said.where == "ranks 2-3 of 8, all 2 processes of node1"


def test_a_part_of_a_machine_is_told_by_its_ranks_alone() -> None:
    said = places(2, 3, 4, workers=on_hosts(8))
    assert (said.ranks, said.hosts, said.where) == ("2-4", (), "ranks 2-4 of 8")


def test_one_rank_is_told_with_its_machine() -> None:
    assert places(5, workers=on_hosts(8)).where == "rank 5 of 8, on node2"


def test_of_a_job_on_one_machine_that_goes_without_saying() -> None:
    workers = tuple(rank(n, host="node0") for n in range(4))
    assert places(2, workers=workers).where == "rank 2 of 4"


def test_a_pipeline_stage_is_told_and_its_machines() -> None:
    said = places(4, 5, 6, 7, workers=on_hosts(8))
    assert said.group == "pipeline stage 2 of 2"
    assert said.where == (
        "ranks 4-7 of 8, all of pipeline stage 2 of 2, all 4 processes of node2 and node3"
    )


def test_of_all_ranks_no_machine_is_told() -> None:
    said = places(0, 1, 2, 3, workers=on_hosts(4))
    assert (said.where, said.ranks, said.hosts, said.group) == ("all 4 traces", "0-3", (), "")


def test_where_one_machine_is_not_known_none_is_told() -> None:
    workers = (*on_hosts(3), rank(3))
    assert places(0, 1, workers=workers).hosts == ()


def test_a_worker_without_a_rank_makes_ranks_unknown() -> None:
    workers = (rank(0), rank(1, rank=None), rank(2))
    said = places(0, 1, workers=workers)
    assert (said.ranks, said.where) == ("", "w0, w1")


# When


def in_steps(number: int, *steps: tuple[int, int], high_ms: float = 2) -> Outcome:
    outcome = found(number, 1, high_ms)
    assert outcome.claim is not None
    return msgspec.structs.replace(
        outcome, claim=msgspec.structs.replace(outcome.claim, step_ranges=steps)
    )


@pytest.mark.parametrize(
    ("first", "second", "steps", "when"),
    [
        (((0, 9),), ((0, 9),), "0-9", "in every step"),
        (((3, 3), (7, 7)), ((3, 3), (7, 7)), "3, 7", "in steps 3 and 7 of 10"),
        (((3, 3),), ((3, 3),), "3", "in step 3 of 10"),
        (((1, 3),), ((2, 5),), "1-5", "in steps 1-5 of 10, differing between traces"),
        (((3, 3),), (), "", ""),
        (
            ((412, 412), (415, 415)),
            ((412, 412), (415, 415)),
            "412, 415",
            "in steps 412 and 415, 2 of 10 recorded",
        ),
        (((-5, -4),), ((-5, -4),), "-5--4", "in steps -5--4 of 10"),
    ],
)
def test_steps_of_all_ranks_are_told_where_they_can_be(
    first: Ranges, second: Ranges, steps: str, when: str
) -> None:
    said = merged(job(in_steps(0, *first), in_steps(1, *second), workers=(rank(0), rank(1))))
    assert (said.steps, said.when) == (steps, when)


def test_two_findings_of_a_rule_hold_for_the_steps_of_both() -> None:
    outcomes = (in_steps(0, (1, 2)), in_steps(0, (3, 3), (8, 8)))
    said = merged(job(*outcomes, workers=(rank(0), rank(1))))
    assert said.when == "in steps 1-3 and 8 of 10"


def test_steps_of_recordings_one_after_the_other_are_not_counted_together() -> None:
    later = rank(1, span="2", name="w0", rank=0)
    said = merged(job(in_steps(0, (3, 3)), in_steps(1, (13, 13)), workers=(rank(0), later)))
    assert said.when == "in steps 3 and 13"


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), min_size=1, max_size=9))
def test_ranges_together_hold_each_number_once(spans: list[tuple[int, int]]) -> None:
    ranges = joined(((first, first + length),) for first, length in spans)
    numbers = [n for first, last in ranges for n in range(first, last + 1)]
    assert numbers == sorted({n for first, more in spans for n in range(first, first + more + 1)})


# What the job saves


def test_where_all_ranks_have_to_save_the_job_saves_the_least_of_it() -> None:
    workers = tuple(rank(n, waits_ms=0) for n in range(3))
    run = job(found(0, 4, 8), found(1, 2, 4), found(2, 6, 9), workers=workers)
    assert in_percent(merged(run).job_saving) == (2, 4)


def test_a_finding_on_some_ranks_alone_saves_the_job_nothing() -> None:
    run = job(found(0, 4, 8), passed(1), workers=(rank(0, waits_ms=1), rank(1, waits_ms=1)))
    assert in_percent(merged(run).job_saving) == (0, 0)


def test_the_one_rank_for_which_all_wait_saves_the_job_what_it_saves() -> None:
    workers = (rank(0, waits_ms=12), rank(1, waits_ms=2), rank(2, waits_ms=11))
    run = job(passed(0), found(1, 3, 8), passed(2), workers=workers)
    assert in_percent(merged(run).job_saving) == (3, 8)


def test_no_more_than_the_others_wait_for_it() -> None:
    workers = (rank(0, waits_ms=12), rank(1, waits_ms=2), rank(2, waits_ms=7))
    run = job(passed(0), found(1, 3, 8), passed(2), workers=workers)
    assert in_percent(merged(run).job_saving) == (3, 5)


def test_a_rank_that_a_rule_cannot_judge_is_as_the_others() -> None:
    silent = msgspec.structs.replace(passed(2), status="cannot-tell")
    workers = tuple(rank(n, waits_ms=0) for n in range(3))
    run = job(found(0, 4, 8), found(1, 2, 4), silent, workers=workers)
    assert in_percent(merged(run).job_saving) == (2, 4)


def test_a_damaged_recording_does_not_speak_for_the_job() -> None:
    cut = HealthItem("cut", "warning", 1, "It is cut.", nature="damage", effect="low")
    damaged = rank(2, waits_ms=50, health=(cut,), step=StepReport(1, 900 * MS, 0, {}))
    workers = (rank(0, waits_ms=0), rank(1, waits_ms=0), damaged)
    run = job(found(0, 4, 8), found(1, 2, 4), passed(2), workers=workers)
    assert in_percent(merged(run).job_saving) == (2, 4)
    assert job_of(run).step_ns == 100 * MS


def test_a_file_that_is_there_twice_speaks_all_the_same() -> None:
    twice = HealthItem("duplicate-file", "warning", 1, "Twice.", nature="damage", effect="low")
    workers = (rank(0, waits_ms=0, health=(twice,)), rank(1, waits_ms=0))
    run = job(found(0, 2, 4), found(1, 4, 8), workers=workers)
    assert in_percent(merged(run).job_saving) == (2, 4)


def test_a_rank_whose_waiting_cannot_be_told_is_left_out_where_most_can() -> None:
    workers = (rank(0, waits_ms=12), rank(1, waits_ms=2), rank(2, waits_ms=12), rank(3))
    run = job(passed(0), found(1, 3, 8), passed(2), passed(3), workers=workers)
    assert in_percent(merged(run).job_saving) == (3, 8)
    fewer = job(passed(0), found(1, 3, 8), workers=(rank(0), rank(1, waits_ms=2)))
    assert in_percent(merged(fewer).job_saving) == (0, 0)


def test_recordings_of_one_rank_are_averaged() -> None:
    later = rank(1, span="2", name="w0", rank=0)
    run = job(found(0, 2, 8), passed(1), workers=(rank(0), later))
    assert in_percent(merged(run).job_saving) == (1, 4)


def test_a_late_rank_and_what_makes_it_late_are_counted_once() -> None:
    workers = (rank(0, waits_ms=10), rank(1, waits_ms=0), rank(2, waits_ms=10))
    run = job(passed(0), found(1, 6, 8), passed(2), over_the_run(3, 10, 1), workers=workers)
    assert in_percent(merged(run).job_saving) == (6, 8)
    assert in_percent(merged(run, "late").job_saving) == (3, 10)
    assert in_percent(job_of(run).total) == (6, 10)


def test_what_all_ranks_save_comes_beside_the_waiting_for_a_late_one() -> None:
    workers = (rank(0, waits_ms=10), rank(1, waits_ms=0))
    run = job(found(0, 2, 5), found(1, 2, 5), over_the_run(3, 10, 1), workers=workers)
    assert in_percent(job_of(run).total) == (5, 15)


RANGES = st.tuples(st.floats(0, 0.2), st.floats(0, 0.2)).map(lambda both: (min(both), max(both)))


@st.composite
def ranks(draw: st.DrawFn) -> list[RankSavings]:
    rules = draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=4))
    found_ranks = [
        RankSavings(
            saved={rule: draw(RANGES) for rule in rules},
            slack_share=draw(st.floats(0, 0.5)),
        )
        for _ in range(draw(st.integers(1, 5)))
    ]
    critical = RankSavings(saved=found_ranks[0].saved, slack_share=0.0)
    return [critical, *found_ranks[1:]]


@given(ranks(), st.lists(RANGES, max_size=3))
def test_the_job_saves_no_more_than_all_findings_save(
    of_job: list[RankSavings], of_run: list[tuple[float, float]]
) -> None:
    low, high = total_saving(of_job, of_run)
    own = max(sum(high for _, high in rank.saved.values()) for rank in of_job)
    assert 0 <= low <= high + 1e-12
    assert high <= min(1.0, own + sum(high for _, high in of_run)) + 1e-12
    for rule in of_job[0].saved:
        alone = job_saving(of_job, [rank.saved[rule] for rank in of_job])
        assert alone[1] <= max(rank.saved[rule][1] for rank in of_job)
        assert min(rank.saved[rule][1] for rank in of_job) <= alone[1] <= high + 1e-12
        assert alone[0] <= alone[1]


# GPU-hours and money


def test_hours_are_the_share_of_all_devices_for_a_day_and_money_is_their_price() -> None:
    workers = tuple(rank(n, waits_ms=0, world_size=8) for n in range(2))
    run = job(found(0, 2, 10), found(1, 1, 5), workers=workers, price=2.5)
    assert run.job == JobReport(
        step_ns=100 * MS,
        gpu_count=8,
        gpu_source="one per rank, by the recorded world size",
        gpu_hour_price=2.5,
        is_asked=True,
        total=merged(run).job_saving,
        method=(
            "Estimated: the job runs all day as in the trace, and its step becomes shorter by the "
            "smallest saving of any rank, including time that the rank waits for others; 2 "
            "recorded ranks of 8 represent all ranks."
        ),
        outlook=JobOutlook(
            rules=("rule",),
            low_ns=95 * MS,
            high_ns=99 * MS,
            message="With “The DataLoader runs in the training process” fixed, the job's step "
            "takes 95.0–99.0 ms (now 100 ms).",
        ),
    )
    saved = merged(run).job_saving
    assert saved is not None
    assert msgspec.structs.astuple(saved) == pytest.approx((0.01, 0.05, 1.92, 9.6, 4.8, 24.0))


@given(st.floats(0, 100), st.floats(0, 1), st.integers(1, 100_000), st.floats(0, 1e6))
def test_money_is_hours_times_price_for_every_job(
    high_ms: float, part: float, gpus: int, price: float
) -> None:
    run = job(found(0, high_ms * part, high_ms), workers=(rank(0),), gpus=gpus, price=price)
    for saved in (merged(run).job_saving, job_of(run).total):
        if saved is not None:
            assert saved.high_gpu_hours == pytest.approx(saved.high_share * gpus * 24)
            assert saved.low_money == pytest.approx((saved.low_gpu_hours or 0) * price)
            assert saved.high_money == pytest.approx((saved.high_gpu_hours or 0) * price)


@pytest.mark.parametrize(
    ("workers", "gpus", "told"),
    [
        ((rank(0, world_size=8),), None, (8, "one per rank, by the recorded world size")),
        ((rank(0, world_size=8),), 64, (64, "set by --gpus")),
        ((rank(0, world_size=1, devices=(rank(0).devices * 4)),), None, (4, "as recorded")),
        ((rank(0, world_size=8, devices=()),), None, (None, "")),
        ((rank(0),), None, (None, "")),
        ((rank(0, world_size=8), rank(1, world_size=4)), None, (None, "")),
    ],
)
def test_devices_are_told_with_what_tells_them(
    workers: tuple[WorkerReport, ...], gpus: int | None, told: tuple[int | None, str]
) -> None:
    about = job_of(job(workers=workers, gpus=gpus))
    assert (about.gpu_count, about.gpu_source) == told


def test_without_devices_the_share_is_told_and_no_hours() -> None:
    saved = merged(job(found(0, 2, 5), workers=(rank(0),), price=1.0)).job_saving
    assert saved == JobSaving(low_share=0.02, high_share=0.05)


@pytest.mark.parametrize(
    ("workers", "reason"),
    [
        (
            (rank(0, step=StepReport(0, 100 * MS, 0, {})),),
            "No steps were recorded.",
        ),
        (
            (rank(0, is_training=False),),
            "No device hours are given: only in training does a shorter step end the job sooner.",
        ),
        (
            (rank(0, world_size=1), rank(1, world_size=1)),
            "The traces share no collectives: they may be of several jobs.",
        ),
    ],
)
def test_what_cannot_be_told_is_withheld_with_the_reason(
    workers: tuple[WorkerReport, ...], reason: str
) -> None:
    run = job(found(0, 2, 5), workers=workers, gpus=8, price=1.0)
    assert (job_of(run).withheld, job_of(run).total) == (reason, None)
    assert merged(run).job_saving is None


def test_a_finding_whose_time_others_have_saves_the_job_nothing_of_its_own() -> None:
    covered = msgspec.structs.replace(
        found(0, 0, 0, "other"), claim=ClaimReport(0, 10 * MS, 0.1, 0, 0, 0.0, "")
    )
    run = job(found(0, 2, 5), covered, workers=(rank(0),), gpus=1)
    assert merged(run, "other").job_saving is None


def test_a_run_without_recordings_has_no_job() -> None:
    assert job(workers=()).job is None


# Whom a finding blames


def test_a_late_rank_is_told_with_what_it_alone_says_of_itself() -> None:
    run = job(
        *(found(n, 1, 2, "everywhere") for n in range(4)),
        found(3, 1, 20, "far-larger"),
        *(found(n, 1, 3, "far-larger") for n in range(3)),
        found(3, 5, 9, "only-there"),
        over_the_run(5, 10, 3),
        workers=tuple(rank(n, waits_ms=0) for n in range(4)),
    )
    assert merged(run, "late").related == (
        RelatedFinding(
            "only-there",
            found(3, 1, 1).title,
            "t3",
            3,
            "w3",
            is_only_there=True,
            low_ns=5 * MS,
            high_ns=9 * MS,
            peers_high_ns=0,
            where="rank 3",
        ),
        RelatedFinding(
            "far-larger",
            found(3, 1, 1).title,
            "t3",
            3,
            "w3",
            is_only_there=False,
            low_ns=1 * MS,
            high_ns=20 * MS,
            peers_high_ns=3 * MS,
            where="rank 3",
        ),
    )
    assert merged(run, "everywhere").related == ()


def test_what_lateness_does_is_no_cause_of_it() -> None:
    waiting = found(3, 5, 9, "exposed", category="communication")
    run = job(waiting, over_the_run(5, 10, 3), workers=tuple(rank(n) for n in range(4)))
    assert merged(run, "late").related == ()


def test_a_rank_is_held_against_its_own_stage() -> None:
    workers = tuple(
        rank(n, groups=(f"pipeline stage {n // 2 + 1} of 2",), waits_ms=0) for n in range(4)
    )
    run = job(
        found(2, 1, 9, "of-the-stage"), found(3, 1, 9, "of-the-stage"),
        over_the_run(5, 10, 3), workers=workers,
    )  # fmt: skip
    assert merged(run, "late").related == ()


def test_a_tensor_parallel_group_is_no_stage() -> None:
    workers = tuple(rank(n, groups=(f"tensor-parallel group {n // 2 + 1} of 2",)) for n in range(4))
    run = job(found(0, 1, 9, "elsewhere"), found(3, 1, 9, "elsewhere"), over_the_run(5, 10, 3),
              workers=workers)  # fmt: skip
    assert [each.is_only_there for each in merged(run, "late").related] == [False]


def test_other_late_ranks_are_no_measure_of_one() -> None:
    run = job(
        found(2, 1, 9, "cause"), found(3, 1, 9, "cause"), over_the_run(5, 10, 2, 3),
        workers=tuple(rank(n) for n in range(4)),
    )  # fmt: skip
    assert [(each.where, each.is_only_there) for each in merged(run, "late").related] == [
        ("ranks 2-3", True)
    ]


def test_what_half_of_a_job_says_of_itself_is_told_once_with_the_worst() -> None:
    late, others = range(512, 1024), range(512)
    run = job(
        *(found(n, 1, 5 + (n == 700), "only-there") for n in late),
        *(found(n, 1, 20, "far-larger") for n in late if n % 2),
        *(found(n, 1, 3, "far-larger") for n in others),
        over_the_run(5, 10, *late),
        workers=tuple(rank(n) for n in range(1024)),
    )
    told = merged(run, "late").related
    assert [(each.rule, each.where, each.trace_count, each.rank) for each in told] == [
        ("only-there", "ranks 512-1023", 512, 700),
        ("far-larger", "256 ranks (513, 515, 517, 519, …)", 256, 513),
    ]
    assert [(each.high_ns, each.peers_high_ns) for each in told] == [
        (6 * MS, 0),
        (20 * MS, 3 * MS),
    ]


def test_of_what_blamed_ranks_say_of_themselves_the_most_telling_is_told_and_the_rest_counted() -> (
    None
):
    run = job(
        *(found(n, 1, n, f"rule-{n}") for n in range(1, 513)),
        over_the_run(5, 10, *range(1, 513)),
        workers=tuple(rank(n) for n in range(513)),
    )
    late = merged(run, "late")
    assert [each.where for each in late.related] == [f"rank {n}" for n in range(512, 504, -1)]
    assert late.related_more == 504


def test_the_peers_of_many_blamed_ranks_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = blamed_ranks._peer_findings  # noqa: SLF001

    def counted(findings: Sequence[Sequence[Outcome]]) -> object:
        asked.append(len(findings))
        return real(findings)

    monkeypatch.setattr(blamed_ranks, "_peer_findings", counted)
    late = range(512, 1024)
    job(
        *(found(n, 1, 5, "only-there") for n in late),
        over_the_run(5, 10, *late),
        workers=tuple(rank(n, groups=(f"pipeline stage {n % 2 + 1} of 2",)) for n in range(1024)),
    )
    assert asked == [256, 256]


def test_blamed_recordings_without_a_rank_are_told_by_name() -> None:
    run = job(
        found(2, 1, 9, "cause"), found(3, 1, 10, "cause"), over_the_run(5, 10, 2, 3),
        workers=tuple(rank(n, rank=None) for n in range(4)),
    )  # fmt: skip
    assert [each.where for each in merged(run, "late").related] == ["w3 and 1 more trace"]


def test_many_ranks_that_lie_apart_are_counted_and_the_first_named() -> None:
    workers = tuple(rank(n) for n in range(64))
    said = places(*range(0, 64, 2), workers=workers)
    assert said.where == "32 of 64 ranks (0, 2, 4, 6, …)"
    assert said.ranks == ", ".join(str(n) for n in range(0, 64, 2))


@pytest.mark.parametrize(
    ("saved_ms", "job_saves"),
    [
        ((0, 0, 0, 8), 0.08),
        ((0, 0, 0, 15), 0.10),
        ((2, 2, 2, 2), 0.02),
        ((4, 0, 0, 0), 0.0),
    ],
)
def test_the_example_of_the_documentation(saved_ms: tuple[int, ...], job_saves: float) -> None:
    """`docs/advice.md`: rank 3 waits for nobody, the others for 10 ms of a step of 100."""
    workers = tuple(rank(n, waits_ms=10 if n < 3 else 0) for n in range(4))
    outcomes = (found(n, 0, ms) if ms else passed(n) for n, ms in enumerate(saved_ms))
    saved = merged(job(*outcomes, workers=workers, gpus=1024, price=2.5)).job_saving
    assert saved is not None
    assert saved.high_share == pytest.approx(job_saves)
    assert saved.high_gpu_hours == pytest.approx(job_saves * 1024 * 24)
    assert saved.high_money == pytest.approx(job_saves * 1024 * 24 * 2.5)
