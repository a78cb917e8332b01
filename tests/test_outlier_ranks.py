"""Ranks that lie apart from what is usual, and the few of many that are worth a look."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rankparts import parts_of, shape
from stepscope.analyses.communication.outlier_ranks import outlier_ranks
from stepscope.analyses.communication.rank_metrics import FIGURES, rank_figures
from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.communication.ranked_run import rank_run
from stepscope.analyses.communication.representative_ranks import representative_ranks
from stepscope.analyses.communication.run_steps import run_steps
from stepscope.api import distributed_ranks
from stepscope.api.endpoint import Group
from stepscope.api.run_ranks import SharedRun
from stepscope.base.report import Problem

pytestmark = pytest.mark.frames

SLOW = {37: 0.3}


def found(parts: list[RankSummary]) -> set[tuple[Any, ...]]:
    """What lies apart: rank or machine, figure, and to which side."""
    table = outlier_ranks(parts)
    who = table["host"].where(table["is_machine"], table["rank"])
    sides = np.where(table["score"] > 0, "more", "less")
    return set(zip(who, table["figure"], sides, strict=True))


@pytest.mark.parametrize("how", [{}, {"jitter": 0.1}, {"stage_cost": {0: 0.3}}])
def test_of_even_ranks_none_lies_apart(how: dict[str, Any]) -> None:
    assert found(parts_of(shape(256, **how))) == set()


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (
            {"slow": SLOW},
            {(37, "own_work", "more"), (37, "computing", "more"), (37, "waiting", "less")},
        ),
        (
            {"slow": SLOW, "slow_by": "memcpy"},
            {
                (37, "own_work", "more"),
                (37, "copies", "more"),
                (37, "waiting", "less"),
                (37, "idle", "more"),
            },
        ),
        (
            {"memory_bytes": {9: 75e9}, "kernel_count": {11: 500.0}},
            {(9, "memory", "more"), (11, "kernels", "less")},
        ),
    ],
)
def test_what_lies_apart_is_told_and_nothing_else(
    how: dict[str, Any], expected: set[tuple[Any, ...]]
) -> None:
    assert found(parts_of(shape(256, **how))) == expected


def test_a_slow_machine_lies_apart_as_its_ranks_do() -> None:
    apart = found(parts_of(shape(256, slow=dict.fromkeys(range(24, 32), 0.3))))
    assert {each for each in apart if isinstance(each[0], str)} == {
        ("node003", "own_work", "more"),
        ("node003", "computing", "more"),
        ("node003", "waiting", "less"),
    }
    assert {each[0] for each in apart} - {"node003"} == set(range(24, 32))


def test_the_evidence_is_in_words_and_figures() -> None:
    table = outlier_ranks(parts_of(shape(64, memory_bytes={9: 75e9})))
    [row] = table.to_dict("records")
    assert (row["value"], row["usual"], row["apart_share"]) == (75e9, 60e9, 0.25)
    assert (row["score"], row["peer_count"], row["confidence"]) == (25.0, 32, "high")
    assert row["reason"] == (
        "Its memory peak is 69.8 GiB: 25.0 % more than the median of 32 ranks (55.9 GiB)."
    )


def test_among_few_ranks_it_is_told_less_surely() -> None:
    table = outlier_ranks(parts_of(shape(6, kernel_count={2: 2_000.0})))
    assert table[["rank", "figure", "confidence"]].to_numpy().tolist() == [[2, "kernels", "low"]]
    assert found(parts_of(shape(2, kernel_count={1: 2_000.0}))) == set()


def test_ranks_beside_one_that_was_not_recorded_do_not_seem_to_wait_less() -> None:
    parts = [part for at, part in enumerate(parts_of(shape(64))) if at != 38]
    assert found(parts) == set()


def test_a_recording_of_fewer_steps_is_compared_in_those_steps() -> None:
    job = {"slow": dict.fromkeys(range(64), 0.5), "slow_steps": range(1)}
    parts = parts_of(shape(64, **job))
    parts[20] = parts_of(shape(64, step_count=1, **job))[20]  # it has the slow step only
    assert found(parts) == set()
    figures = rank_figures(rank_run(parts))
    assert np.flatnonzero(figures.is_short).tolist() == [20]


def test_figures_are_means_over_steps_and_medians_over_peers_of_the_same_steps() -> None:
    run = rank_run(parts_of(shape(16, slow={3: 0.4}, step_count=3)))
    steps, figures = run_steps(run), rank_figures(run)
    column = list(FIGURES).index("step")
    for at in range(16):
        own = steps.trace_index == at
        medians = [np.median(steps.duration_ns[steps.number == n]) for n in steps.number[own]]
        assert figures.value[at, column] == pytest.approx(steps.duration_ns[own].mean())
        assert figures.usual[at, column] == pytest.approx(np.mean(medians))


def kinds(parts: list[RankSummary]) -> list[tuple[str, int, str]]:
    """The ranks to look at, without the fastest and the usual one among equals."""
    table = representative_ranks(parts)
    rows = zip(table["kind"], table["rank"].astype(int), table["figure"], strict=True)
    return [each for each in rows if each[0] in {"slowest", "odd"}]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"slow": SLOW}, [("slowest", 37, "own_work")]),
        (
            {"slow": SLOW | {9: 0.2}},
            [("slowest", 37, "own_work"), ("odd", 9, "own_work")],
        ),
        (
            {"slow": SLOW, "memory_bytes": {9: 75e9, 10: 74e9}, "kernel_count": {11: 500.0}},
            [("slowest", 37, "own_work"), ("odd", 11, "kernels"), ("odd", 9, "memory")],
        ),
    ],
)
def test_the_slowest_and_those_odd_in_another_way_are_chosen(
    how: dict[str, Any], expected: list[tuple[str, int, str]]
) -> None:
    assert kinds(parts_of(shape(256, **how))) == expected


def test_the_slowest_of_a_slow_machine_stands_for_it() -> None:
    [(kind, rank, _)] = kinds(parts_of(shape(256, slow=dict.fromkeys(range(24, 32), 0.3))))
    assert (kind, rank in range(24, 32)) == ("slowest", True)


def test_the_fastest_has_least_to_do_and_the_usual_one_lies_nowhere_apart() -> None:
    slow = dict.fromkeys(range(64), 0.3)
    del slow[5], slow[7]
    table = representative_ranks(parts_of(shape(64, slow=slow | {5: 0.1}))).set_index("kind")
    assert table.loc["fastest", "rank"] == 7
    assert abs(float(str(table.loc["median", "score"]))) < 1
    assert str(table.loc["median", "reason"]).startswith("Of all ranks it is nearest to the median")
    assert len({*table["rank"]}) == len(table)


def test_a_recording_that_was_cut_stands_for_none() -> None:
    parts = parts_of(shape(64))
    parts[20] = parts_of(shape(64, step_count=1, slow={20: 0.9}))[20]
    assert 20 not in set(representative_ranks(parts)["rank"])


def test_of_ranks_that_are_all_the_same_none_is_the_slowest_or_the_fastest() -> None:
    table = representative_ranks(parts_of(shape(8, jitter=0.0)))
    assert list(table["kind"]) == ["median"]


def test_two_ranks_have_no_usual_one() -> None:
    assert representative_ranks(parts_of(shape(2))).empty


def test_the_page_is_told_of_them_in_answers_that_stay_small() -> None:
    parts = parts_of(shape(256, slow=dict.fromkeys(range(0, 256, 2), 0.3), step_count=2))
    parts = [replace(part, world_size=260) for part in parts if part.evidence.header != 100]
    problems = [Problem(path="logs/rank100.pt.trace.json.gz", message="cut off", remedy="")]
    shared = SharedRun(rank_run(parts))
    group = Group(name="job", parts=parts, problems=problems)
    answer = distributed_ranks.distributed(shared, group)
    assert (answer.missing_ranks, answer.unreadable_ranks) == ("100, 256-259", "100")
    assert {each.kind for each in answer.representatives} >= {"slowest", "fastest", "median"}
    assert len(answer.stragglers) <= 120
    assert len(answer.outliers) <= 100 <= max(100, answer.outlier_count)
    assert {each.role for each in answer.groups} == {"TP", "DP", "EP", "PP"}
    assert distributed_ranks.heat(shared, "own", group).label == "Compute time"
