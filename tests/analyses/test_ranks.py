"""Which rank a recording is: header, then file name, then content, each with its confidence."""

from typing import Any

import pytest

from loading import ROOT, SHARED_TRACES, trace_at, trace_of
from stepscope.analyses.communication.rank_assignment import (
    RankEvidence,
    rank_evidence,
    ranks_of_names,
    recorded_ranks,
)
from stepscope.analyses.communication.rank_summary import rank_summary


def _evidence(worker: str, **more: Any) -> RankEvidence:
    known: dict[str, Any] = {"span": "1", "name": f"{worker}.pt.trace.json", "header": None,
                             "content": None, "device": None}  # fmt: skip
    return RankEvidence(worker=worker, **(known | more))


def _told(*evidence: RankEvidence) -> list[tuple[Any, ...]]:
    return [(of.rank, of.source, of.confidence) for of in recorded_ranks(evidence)]


@pytest.mark.parametrize(
    ("names", "ranks"),
    [
        (["rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz"], (34,)),
        (["rank3.json", "rank12.json"], (3, 12)),
        (["sampled_rank-0.json.gz", "sampled_rank-1.json.gz"], (0, 1)),
        (["job_rank_0_of_8.json", "job_rank_7_of_8.json"], (0, 7)),
        (["trace_r0.json", "trace_r1.json"], (0, 1)),
        (["worker0.17.pt.trace.json", "worker1.18.pt.trace.json"], (0, 1)),
        (["gpu1.json", "gpu0.json"], (1, 0)),
        (["x-TP-0-PP-1.json", "x-TP-1-PP-1.json", "x-TP-0-PP-0.json", "x-TP-1-PP-0.json"],
         (2, 3, 0, 1)),
        (["host7_4021.json", "host7_4022.json"], None),
        (["rank0.json", "other.json"], None),
        (["a_rank0.json", "b_rank0.json"], None),
        (["local_rank0.json", "local_rank1.json"], None),
        (["tp0_pp0.json", "tp1_pp1.json"], None),
        (["tp0.json", "pp1.json"], None),
    ],
)  # fmt: skip
def test_names_tell_ranks_where_all_of_them_do_and_differ(
    names: list[str], ranks: tuple[int, ...] | None
) -> None:
    assert ranks_of_names(names) == ranks


def test_the_header_counts_before_the_name() -> None:
    assert _told(_evidence("rank5", header=5), _evidence("rank6")) == [
        (5, "header", "high"),
        (6, "file name", "medium"),
    ]


def test_a_name_that_contradicts_a_header_tells_nothing() -> None:
    assert _told(_evidence("rank0", header=8), _evidence("rank1")) == [
        (8, "header", "high"),
        (None, None, None),
    ]


def test_a_header_that_several_workers_share_gives_way() -> None:
    shared = [_evidence("rank0", header=0), _evidence("rank1", header=0)]
    assert [rank for rank, *_ in _told(*shared)] == [0, 1]
    unnamed = [_evidence("a", header=0), _evidence("b", header=0)]
    assert _told(*unnamed) == [(0, "header", "low")] * 2


def test_a_single_name_is_confirmed_by_no_other() -> None:
    assert _told(_evidence("worker0")) == [(0, "file name", "low")]


def test_spans_of_a_worker_are_one_rank() -> None:
    spans = [_evidence("a", header=3, span=span) for span in "12"]
    assert _told(*spans) == [(3, "header", "high")] * 2


def test_content_tells_where_nothing_else_does_and_the_device_last() -> None:
    assert _told(_evidence("a", content=6), _evidence("b", content=7, device=1)) == [
        (6, "content", "medium"),
        (7, "content", "medium"),
    ]
    assert _told(_evidence("a", device=1), _evidence("b", device=0)) == [
        (1, "device", "low"),
        (0, "device", "low"),
    ]
    assert _told(_evidence("a", device=1), _evidence("b", device=1)) == [(None, None, None)] * 2
    assert _told(_evidence("a", device=3)) == [(None, None, None)]


def test_the_groups_of_a_recording_tell_its_rank() -> None:
    def kernel(start: int, ranks: str, **more: Any) -> list[Any]:
        told = {"Collective name": "allreduce", "Process Group Ranks": ranks, **more}
        return ["kernel", "ncclDevKernel_AllReduce", start, 5, told]

    in_two = trace_of([kernel(0, "[4, 5, 6, 7]"), kernel(10, "[2, 6, 10]")])
    assert rank_evidence(in_two).content == 6
    by_place = trace_of([kernel(0, "[4, 5, 6, 7]", Rank=1)])
    assert rank_evidence(by_place).content == 5
    assert rank_evidence(trace_of([kernel(0, "[4, 5]")])).content is None


def test_the_header_may_be_text_or_nonsense() -> None:
    rows = [["cpu_op", "aten::mm", 0, 5]]
    ranks = [trace_of(rows, distributedInfo={"rank": rank}) for rank in ("7", -3, "x", None)]
    assert [rank_evidence(trace).header for trace in ranks] == [7, None, None, None]


def test_real_runs_have_ranks() -> None:
    gloo = sorted((ROOT / "sample_logs/ranks/one_slow_rank").glob("*.gz"))
    assert _told(*(rank_evidence(trace_at(path)) for path in gloo)) == [
        (0, "header", "high"),
        (1, "header", "high"),
    ]
    if SHARED_TRACES.is_dir():
        [path] = (SHARED_TRACES / "hta/cpu_only").glob("*.gz")
        assert _told(rank_evidence(trace_at(path))) == [(34, "header", "high")]


def test_shapes_beyond_all_numbers_have_a_limit() -> None:
    dims = {"Input Dims": [[10**18] * 40]}
    trace = trace_of([["cpu_op", "aten::mm", 0, 10, dims], ["cpu_op", "aten::mm", 20, 10, dims]])
    assert rank_summary(trace).totals.element_count == 2 * 2.0**62
