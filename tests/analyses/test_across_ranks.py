"""Runs of many ranks whose truth is known: what matches, clocks, waiting, and who is late."""

import json
import pickle
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankbuild
import rankparts
from generated import examples
from loading import ROOT, columns_of, trace_at, trace_of
from rankbuild import US, Group, Plan, Truth
from rankparts import Job
from stepscope.analyses.communication.collective_matching import match_collectives
from stepscope.analyses.communication.matched_collectives import matched_collectives
from stepscope.analyses.communication.outlier_ranks import outlier_ranks
from stepscope.analyses.communication.rank_summary import (
    Key,
    RankCollectives,
    RankSummary,
    rank_summary,
)
from stepscope.analyses.communication.rank_table import clock_table, rank_table
from stepscope.analyses.communication.ranked_run import as_ranges
from stepscope.analyses.communication.stragglers import stragglers
from stepscope.analyses.core.robust_slope import modified_zscores
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace, trace_from_columns
from stepscope.tables import RunTable, all_tables

MISSING, DAMAGED, SLOW = 3, 9, 6
ACROSS = ("ranks", "matched-collectives", "clock-alignment", "stragglers")


def _trace(document: Mapping[str, Any], worker: str) -> Trace:
    return trace_from_columns(columns_of(json.dumps(document)), worker=worker)


def _parts(
    truth: Truth, *, without: Sequence[int] = (), damaged: Sequence[int] = (), **how: Any
) -> list[RankSummary]:
    parts = []
    for rank in range(truth.plan.world_size):
        if rank in without:
            continue
        document = rankbuild.document(truth, rank, **how)
        if rank in damaged:  # the file ends in the middle of the run
            until = sorted(event["ts"] for event in document["traceEvents"])
            half = until[len(until) // 2]
            document["traceEvents"] = [e for e in document["traceEvents"] if e["ts"] < half]
        parts.append(rank_summary(_trace(document, f"w{rank}")))
    return parts


OFFSETS = {rank: (rank * 37 % 11 - 5) * 1e5 for rank in range(64)}
PLAN = Plan(groups=rankbuild.grid(16, 4), world_size=16, slow_us={SLOW: 300.0}, slow_from=2,
            offset_us=OFFSETS)  # fmt: skip


@pytest.fixture(scope="module")
def truth() -> Truth:
    """Sixteen ranks, TP 4 and DP 4, clocks apart by up to a second, rank 6 slow from step 2."""
    return rankbuild.run(PLAN)


@pytest.fixture(scope="module")
def parts(truth: Truth) -> list[RankSummary]:
    """Of those, rank 3 was not recorded and rank 9's file was cut."""
    return _parts(truth, without=[MISSING], damaged=[DAMAGED])


def _true(truth: Truth, group: str, sequence: int) -> dict[int, Any]:
    """A collective's part on each rank."""
    return {
        rank: one
        for rank, seen in truth.seen.items()
        for one in seen
        if one.group.name == group and one.sequence == sequence
    }


def test_collectives_are_matched_by_group_and_sequence(
    truth: Truth, parts: list[RankSummary]
) -> None:
    table = matched_collectives(parts)
    assert set(table["matched_by"]) == {"sequence"}
    assert len(table) == len(PLAN.groups) * PLAN.step_count
    for row in table.to_dict("records"):
        true = _true(truth, row["group"], row["sequence"])
        true.pop(MISSING, None)
        if DAMAGED in true and row["rank_count"] < len(true):
            true.pop(DAMAGED)
        took = {rank: one.end_ns - one.start_ns for rank, one in true.items()}
        assert row["rank_count"] == len(took)
        assert row["transfer_ns"] == min(took.values())
        assert row["wait_ns"] == sum(took.values()) - min(took.values()) * len(took)
        assert row["last_rank"] == min(took, key=took.__getitem__)
        assert {one.step for one in true.values()} == {row["step"]}


def test_ranks_without_a_recording_and_lost_collectives_are_named(parts: list[RankSummary]) -> None:
    table = matched_collectives(parts)
    missing = table.groupby("group")["missing_ranks"].agg(list)
    assert set(missing["t0"]) == set(missing["d3"]) == {str(MISSING)}
    assert missing["t1"] == [""] * PLAN.step_count
    assert missing["t2"][0] == ""
    assert missing["t2"][-1] == str(DAMAGED)
    assert set(table["expected_count"]) == {4}


def test_clocks_are_found_within_their_error(truth: Truth, parts: list[RankSummary]) -> None:
    table = clock_table(parts)
    assert set(table["link"]) == {"reference", "collectives"}
    _check_clocks(truth, table)
    assert table["error_ns"].max() < 3 * truth.plan.transfer_us * US
    skew = matched_collectives(parts)
    spread = truth.plan.transfer_us * US  # ranks leave within the transfer of each other
    assert (skew["end_skew_ns"] <= spread + 2 * skew["clock_error_ns"]).all()


def _check_clocks(truth: Truth, table: pd.DataFrame) -> None:
    for row in table.to_dict("records"):
        reference, rank = int(row["reference_rank"]), int(row["rank"])
        true_ns = truth.by_clock(reference, 0) - truth.by_clock(rank, 0)
        assert abs(row["offset_ns"] - true_ns) <= row["error_ns"] + 1
        assert abs(row["offset_ns"] - true_ns) <= row["likely_error_ns"] + 1


@examples(10)
@given(
    offsets=st.lists(st.integers(-(10**9), 10**9), min_size=8, max_size=8),
    slow=st.integers(0, 7),
    seed=st.integers(0, 1000),
)
def test_whatever_the_clocks_and_the_waiting_the_error_holds(
    offsets: list[int], slow: int, seed: int
) -> None:
    plan = Plan(
        groups=[Group(name="0", ranks=tuple(range(8)))],
        world_size=8,
        step_count=3,
        slow_us={slow: 5000.0},
        offset_us={rank: float(offset) for rank, offset in enumerate(offsets)},
        seed=seed,
    )
    truth = rankbuild.run(plan)
    _check_clocks(truth, clock_table(_parts(truth)))


def test_a_clock_that_runs_faster_is_told() -> None:
    plan = Plan(
        groups=[Group(name="0", ranks=(0, 1, 2, 3))],
        world_size=4,
        step_count=40,
        compute_us=50_000.0,
        drift={2: 100e-6},
        offset_us=OFFSETS,
    )
    truth = rankbuild.run(plan)
    table = clock_table(_parts(truth)).set_index("rank")
    assert table["drift_ppm"].tolist() == pytest.approx([0, 0, -100, 0], abs=2)
    skew = matched_collectives(_parts(truth))
    assert skew["end_skew_ns"].max() <= plan.transfer_us * US * 0.3


def test_ranks_of_one_machine_share_a_clock_unless_their_collectives_deny_it() -> None:
    plan = Plan(groups=[Group(name="0", ranks=tuple(range(8)))], world_size=8)
    hosts = {rank: f"node{rank // 4}" for rank in range(8)}

    def table(**more: Any) -> pd.DataFrame:
        truth = rankbuild.run(replace(plan, **more))
        parts = [
            rank_summary(_trace(rankbuild.document(truth, rank, host=host), f"w{rank}"))
            for rank, host in hosts.items()
        ]
        _check_clocks(truth, found := clock_table(parts))
        return found

    shared = table(offset_us={rank: 7000.0 * (rank // 4) for rank in range(8)})
    assert list(shared["link"][:4]) == ["reference", *["same machine"] * 3]
    assert len(set(shared["offset_ns"][4:])) == 1
    assert list(table(offset_us={2: 9000.0})["link"][:4]) == ["reference", *["collectives"] * 3]


def test_the_slow_rank_is_found_with_its_first_step_and_its_cause(parts: list[RankSummary]) -> None:
    table = stragglers(parts)
    assert list(table["rank"][table["is_straggler"]]) == [SLOW]
    worst = table.iloc[0]
    assert worst["since_step"] == 2
    assert worst["cause"] == "computing"
    extra_us = 2 * 300.0 * (PLAN.step_count - PLAN.slow_from) / PLAN.step_count
    assert worst["cause_ns"] == pytest.approx(extra_us * US, rel=0.05)
    assert worst["wait_caused_share"] == table["wait_caused_share"].max()


@pytest.mark.parametrize("seed", range(5))
def test_ranks_that_differ_by_chance_are_no_stragglers(seed: int) -> None:
    truth = rankbuild.run(replace(PLAN, slow_us={}, seed=seed))
    assert not stragglers(_parts(truth))["is_straggler"].any()


TWO = Plan(groups=[Group(name="w", ranks=(0, 1))], world_size=2, step_count=6)


@pytest.mark.parametrize("seed", range(20))
def test_of_two_ranks_none_is_late_by_chance(seed: int) -> None:
    truth = rankbuild.run(replace(TWO, jitter=0.3, seed=seed))
    assert not stragglers(_parts(truth))["is_straggler"].any()


@pytest.mark.parametrize(("slow_from", "since"), [(0, 0), (6, 6)])
def test_of_two_ranks_the_slow_one_is_told_since_when(slow_from: int, since: int) -> None:
    plan = replace(TWO, step_count=12, slow_us={1: 200.0}, slow_from=slow_from, jitter=0.02)
    worst = stragglers(_parts(rankbuild.run(plan))).iloc[0]
    assert (worst["is_straggler"], worst["rank"], worst["since_step"]) == (True, 1, since)


@pytest.mark.parametrize("jitter", [0.0, 0.02, 0.1, 0.2])
@pytest.mark.parametrize("rank_count", [2, 3, 4, 5, 8])
def test_a_rank_that_is_30_percent_slow_is_a_straggler_among_few(
    rank_count: int, jitter: float
) -> None:
    for seed in range(3):
        job = Job(data=rank_count, jitter=jitter, seed=seed, step_count=6)
        for slow, expected in (({1: 0.3}, [1]), ({}, [])):
            parts = rankparts.parts_of(replace(job, slow=slow))
            table, apart = stragglers(parts), outlier_ranks(parts)
            assert sorted(table["rank"][table["is_straggler"]]) == expected
            outliers = apart["rank"][apart["figure"] == "own_work"]
            assert sorted(outliers.dropna()) == (expected if rank_count > 2 else [])


def test_three_steps_are_enough_where_a_rank_is_last_in_every_collective() -> None:
    job = Job(data=2, slow={1: 0.3}, step_count=3)
    table = stragglers(rankparts.parts_of(job))
    assert list(table["rank"][table["is_straggler"]]) == [1]


def test_among_many_ranks_a_thousandth_of_a_step_is_no_straggler() -> None:
    job = Job(data=64, jitter=0.0, slow={1: 0.001}, step_count=6)
    assert not stragglers(rankparts.parts_of(job))["is_straggler"].any()


@pytest.mark.slow
@pytest.mark.parametrize(("world_size", "slow"), [(8, (5,)), (96, (20,)), (64, (8, 9, 10, 11))])
def test_one_slow_rank_or_a_slow_machine_are_found_among_many(
    world_size: int, slow: tuple[int, ...]
) -> None:
    plan = Plan(
        groups=[Group(name="w", ranks=tuple(range(world_size)))],
        world_size=world_size,
        step_count=4,
        slow_us=dict.fromkeys(slow, 100.0),
        offset_us=OFFSETS,
    )
    table = stragglers(_parts(rankbuild.run(plan)))
    assert sorted(table["rank"][table["is_straggler"]]) == list(slow)


def test_where_no_numbers_were_recorded_order_gives_the_same(truth: Truth) -> None:
    by_number = matched_collectives(_parts(truth))
    by_order = matched_collectives(_parts(truth, with_sequence=False))
    assert set(by_order["matched_by"]) == {"order"}
    same = [name for name in by_number if name not in ("sequence", "matched_by")]
    pd.testing.assert_frame_equal(by_order[same], by_number[same])


# --- matching, on collectives of one key ---------------------------------------------------------

KEY = Key("0", "[0,1,2]", "all_reduce", "float32", 4.0, -1, -1)


def _part(rank: int, steps: Sequence[int], sequence: Sequence[int] | None = None) -> RankSummary:
    """A rank that has one collective each 100 us, in these steps."""
    count = len(steps)
    start = np.arange(count, dtype=np.int64) * 100
    own = RankCollectives(
        keys=(KEY,) if count else (),
        key=np.zeros(count, dtype=np.int32),
        sequence=np.array(sequence if sequence is not None else [-1] * count, dtype=np.int64),
        start_ns=start,
        ready_ns=start,
        duration_ns=np.full(count, 10 + rank, dtype=np.int64),
        message_bytes=np.full(count, 4.0),
        step=np.array(steps, dtype=np.int64),
        hidden_ns=np.zeros(count, dtype=np.int64),
        event=np.arange(count, dtype=np.int64),
    )
    return replace(_EMPTY, evidence=replace(_EMPTY.evidence, worker=f"w{rank}", header=rank),
                   collectives=own)  # fmt: skip


_EMPTY = rank_summary(_trace(rankbuild.document(rankbuild.run(PLAN), 0), "w"))


def _grouped(parts: Sequence[RankSummary]) -> list[list[tuple[int, int]]]:
    """Each match as its members: rank, and which of that rank's collectives."""
    found = match_collectives(parts)
    members: dict[int, list[tuple[int, int]]] = {}
    rows = zip(found.match, found.trace_index, found.start_ns // 100, strict=True)
    for match, recording, place in rows:
        members.setdefault(int(match), []).append((int(recording), int(place)))
    return sorted(members.values())


def test_a_window_that_began_later_is_matched_by_steps() -> None:
    assert _grouped([_part(0, [3, 4, 5]), _part(1, [4, 5])]) == [
        [(0, 0)],
        [(0, 1), (1, 0)],
        [(0, 2), (1, 1)],
    ]


def test_steps_that_disagree_are_left_for_order_where_there_are_as_many() -> None:
    assert _grouped([_part(0, [3, 3, 4]), _part(1, [3, 4, 4])]) == [
        [(0, at), (1, at)] for at in range(3)
    ]


def test_a_rank_that_has_other_counts_than_most_is_left_alone() -> None:
    same = [_part(0, [3, 4]), _part(1, [3, 4])]
    assert _grouped([*same, _part(2, [3, 3, 4])]) == [
        [(0, 0), (1, 0)],
        [(0, 1), (1, 1), (2, 2)],
        [(2, 0)],
        [(2, 1)],
    ]


def test_where_no_count_is_that_of_most_nothing_is_matched() -> None:
    assert _grouped([_part(0, [3, 3]), _part(1, [3])]) == [[(0, 0)], [(0, 1)], [(1, 0)]]


def test_numbers_that_repeat_are_matched_in_their_order() -> None:
    parts = [_part(0, [3, 3, 3], [7, 7, 8]), _part(1, [3, 3], [7, 8])]
    assert _grouped(parts) == [[(0, 0), (1, 0)], [(0, 1)], [(0, 2), (1, 1)]]


@given(
    numbers=st.lists(st.lists(st.integers(0, 6), max_size=8), min_size=1, max_size=5),
)
def test_matching_by_number_is_what_a_dictionary_gives(numbers: list[list[int]]) -> None:
    expected: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for rank, own in enumerate(numbers):
        for place, number in enumerate(own):
            again = own[:place].count(number)
            expected.setdefault((number, again), []).append((rank, place))
    parts = [_part(rank, [0] * len(own), own) for rank, own in enumerate(numbers)]
    assert _grouped(parts) == sorted(expected.values())


def test_the_two_ends_of_a_transfer_are_one_though_each_rank_counts_by_itself() -> None:
    told = {"Collective name": "send", "Process Group Name": "p", "Group size": 2, "dtype": "Float",
            "Process Group Ranks": "[0, 1]", "In msg nelems": 8, "Out msg nelems": 8,
            "Src Rank": 0, "Dst Rank": 1}  # fmt: skip
    kernel = ["kernel", "ncclDevKernel_SendRecv", 0, 10]
    sender = trace_of([[*kernel, {**told, "Seq": 4}]])
    receiver = trace_of([[*kernel[:3], 25, {**told, "Collective name": "recv", "Seq": 9}]])
    parts = [
        replace(part, evidence=replace(part.evidence, worker=f"w{rank}", header=rank))
        for rank, part in enumerate(map(rank_summary, (sender, receiver)))
    ]
    [only] = matched_collectives(parts).to_dict("records")
    assert (only["kind"], only["matched_by"], only["rank_count"]) == ("send", "order", 2)
    assert (only["transfer_ns"], only["wait_ns"]) == (10 * US, 15 * US)
    assert np.isnan(only["last_rank"])  # a rank may leave before the other came
    assert not clock_table(parts)["offset_ns"].notna().any()


@pytest.mark.slow
def test_a_thousand_ranks_take_seconds() -> None:
    count, ranks = 200, 1024
    world = json.dumps(list(range(ranks)))
    keys = tuple(KEY._replace(group=group, ranks=world) for group in "abcd")
    random = np.random.default_rng(0)
    base = np.arange(count) * 2_000_000
    parts = []
    for rank in range(ranks):
        late = random.integers(0, 50_000, count) + 300_000 * (rank == 77)
        own = RankCollectives(
            keys=keys,
            key=(np.arange(count) % 4).astype(np.int32),
            sequence=np.arange(count) // 4,
            start_ns=base + late + rank,
            ready_ns=base + late + rank,
            duration_ns=900_000 - late,
            message_bytes=np.full(count, 4.0),
            step=np.arange(count) // 20,
            hidden_ns=np.zeros(count, dtype=np.int64),
            event=np.arange(count),
        )
        evidence = replace(_EMPTY.evidence, worker=f"w{rank}", header=rank)
        parts.append(replace(_EMPTY, evidence=evidence, collectives=own))
    began = time.process_time()
    tables = [all_tables()[name].build(parts) for name in ACROSS]  # type: ignore[arg-type]
    assert time.process_time() - began < 10
    assert [len(table) for table in tables] == [ranks, count, ranks, ranks]
    assert list(tables[3]["rank"][tables[3]["is_straggler"]]) == [77]


# --- tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ACROSS)
def test_tables_across_ranks_have_the_columns_of_their_schema(
    name: str, parts: list[RankSummary]
) -> None:
    table = all_tables()[name]
    assert isinstance(table, RunTable)
    shuffled = [parts[at] for at in np.random.default_rng(1).permutation(len(parts))]
    frame = table.build(pickle.loads(pickle.dumps(shuffled)))  # noqa: S301 - our own
    wanted = {column.name: column.dtype for column in table.schema}
    assert {str(column): str(dtype) for column, dtype in frame.dtypes.items()} == wanted
    pd.testing.assert_frame_equal(frame, table.build(parts))


@pytest.mark.parametrize("name", ["matched-collectives", "clock-alignment", "stragglers"])
def test_one_rank_alone_says_what_to_record(name: str, parts: list[RankSummary]) -> None:
    table = all_tables()[name]
    assert isinstance(table, RunTable)
    with pytest.raises(MissingDataError, match="only one rank") as missing:
        table.build(parts[:1])
    assert "worker_name" in missing.value.remedy


def test_a_part_is_small_beside_its_recording(parts: list[RankSummary]) -> None:
    assert all(len(pickle.dumps(part)) < 8_000 for part in parts)


def test_a_step_of_each_rank_is_told_apart(truth: Truth, parts: list[RankSummary]) -> None:
    table = rank_table(parts).set_index("rank")
    assert list(table.index) == [rank for rank in range(16) if rank != MISSING]
    assert set(table["rank_source"]) == {"header"}
    assert set(table["device_name"]) == {"Test GPU"}
    row, count = table.loc[0], PLAN.step_count
    assert row["step_count"] == count
    computed = sum(end - start for start, end in truth.computed[0])
    assert row["computing_ns"] == pytest.approx(computed / count)
    sent = sum(one.end_ns - one.start_ns for one in truth.seen[0])
    assert row["communication_ns"] == row["exposed_ns"] == pytest.approx(sent / count)
    assert row["transfer_ns"] + row["wait_ns"] == pytest.approx(row["communication_ns"])
    parts_ns = row["computing_ns"] + row["communication_ns"] + row["idle_ns"]
    assert parts_ns == pytest.approx(row["step_ns"])
    assert table.loc[SLOW, "wait_ns"] == table["wait_ns"].min()


@pytest.mark.parametrize(
    ("ranks", "text"), [([], ""), ([5], "5"), ([3, 0, 1, 2, 9], "0-3, 9"), ([4, 6], "4, 6")]
)
def test_ranks_are_written_as_ranges(ranks: list[int], text: str) -> None:
    assert as_ranges(ranks) == text


def test_scores_are_modified_z_scores() -> None:
    found = modified_zscores(np.array([1.0, 2.0, 3.0, 4.0, 100.0, np.nan]))
    assert found[:5] == pytest.approx(0.6745 * np.array([-2, -1, 0, 1, 97]))
    assert np.isnan(found[5])
    assert modified_zscores(np.array([5.0, 5.0, 5.0])).tolist() == [0, 0, 0]
    assert np.isnan(modified_zscores(np.array([1.0, 2.0]))).all()
    assert modified_zscores(np.array([0.0] * 9 + [1.0]))[-1] > 3.5


def test_two_real_ranks_of_which_one_is_slow() -> None:
    paths = sorted((ROOT / "sample_logs/ranks/one_slow_rank").glob("*.gz"))
    parts = [rank_summary(trace_at(path)) for path in paths]
    slow, fast = stragglers(parts).to_dict("records")
    assert (slow["rank"], slow["is_straggler"], slow["last_share"]) == (1, True, 1)
    assert (slow["cause"], slow["since_step"]) == ("computing", 3)
    assert not fast["is_straggler"]
    ranks = rank_table(parts)
    assert ranks["wait_ns"][0] > 0.7 * ranks["step_ns"][0]  # it computes an eighth of the other
    assert ranks["wait_ns"][1] == 0
    together = ranks["transfer_ns"] + ranks["wait_ns"]
    assert together.to_numpy() == pytest.approx(ranks["communication_ns"].to_numpy())
    balanced = sorted((ROOT / "sample_logs/ranks/balanced").glob("*.gz"))
    assert not stragglers([rank_summary(trace_at(path)) for path in balanced])["is_straggler"].any()
