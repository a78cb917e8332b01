"""Recordings of a run that stand for the same rank."""

from typing import Any

import msgspec
import pytest

from loading import trace_of
from stepscope.advice import TraceAdvice, run_report, worker_report
from stepscope.advice.duplicate_ranks import fingerprint
from stepscope.base.report import HealthItem, WorkerReport

ROWS: list[list[Any]] = [["cpu_op", "aten::mm", 10 * n, 5] for n in range(20)]


def worker(
    name: str, rows: list[list[Any]], *, rank: int | None = None, span: str = "1"
) -> WorkerReport:
    info = {} if rank is None else {"distributedInfo": {"rank": rank}}
    return msgspec.structs.replace(worker_report(trace_of(rows, **info)), name=name, span=span)


def told(*workers: WorkerReport) -> list[list[HealthItem]]:
    run = run_report("run", [TraceAdvice(worker=each, outcomes=()) for each in workers])
    return [[i for i in each.health if i.kind.startswith("duplicate")] for each in run.workers]


def test_one_file_under_two_names_is_told_of_both() -> None:
    first, other, second = told(
        worker("a", ROWS, rank=0), worker("b", ROWS[1:], rank=1), worker("copy", ROWS, rank=0)
    )
    assert other == []
    assert [item.message for item in first + second] == [
        "this trace holds the same events as copy, span 1",
        "this trace holds the same events as a, span 1",
    ]
    assert {(i.kind, i.severity, i.effect, i.affects) for i in first + second} == {
        ("duplicate-file", "warning", "low", ("comparison of ranks",))
    }


def test_two_recordings_of_one_rank_are_told_of_both() -> None:
    found = told(worker("a", ROWS, rank=3), worker("b", ROWS[1:], rank=3))
    assert [[item.message for item in each] for each in found] == [
        ["rank 3 was recorded in b, span 1, too: two jobs wrote to one folder"],
        ["rank 3 was recorded in a, span 1, too: two jobs wrote to one folder"],
    ]


def test_many_are_counted() -> None:
    found = told(*(worker(name, ROWS) for name in "abcde"))
    assert found[0][0].count == 4
    assert found[0][0].message.endswith("as b, span 1; c, span 1; d, span 1 and 1 more")


def test_ranks_spans_and_jobs_without_ranks_are_no_duplicates() -> None:
    workers = (
        worker("a", ROWS, rank=0),
        worker("b", ROWS[1:], rank=1),
        worker("a", ROWS[2:], rank=0, span="2"),
        worker("c", ROWS[3:]),
        worker("d", ROWS[4:]),
    )
    assert told(*workers) == [[], [], [], [], []]


@pytest.mark.parametrize(
    "rows",
    [
        ROWS[:-1],
        [*ROWS[:-1], ["cpu_op", "aten::mm", 190, 6]],
        [*ROWS[:-1], ["cpu_op", "aten::mm", 191, 5]],
        [*ROWS[:-1], ["cpu_op", "aten::relu", 190, 5]],
    ],
    ids=["an event less", "another duration", "another time", "another name"],
)
def test_a_fingerprint_is_of_the_events(rows: list[list[Any]]) -> None:
    assert fingerprint(trace_of(ROWS)) == fingerprint(trace_of(ROWS, traceName="other"))
    assert fingerprint(trace_of(rows)) != fingerprint(trace_of(ROWS))


def test_a_fingerprint_tells_when_it_was_recorded() -> None:
    assert fingerprint(trace_of(ROWS)) != fingerprint(trace_of(ROWS, baseTimeNanoseconds=1))
