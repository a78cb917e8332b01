"""Idle streams, launches and queues: small traces with their whole answer, and laws of any."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import rows_of, trace_of
from stepscope.analyses.devices.kernel_launches import launches, launches_by_call, launches_by_name
from stepscope.analyses.devices.queue_length import queue_lengths, queue_series, queues
from stepscope.analyses.idle.idle_kinds import KINDS, idle_kinds
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.model.trace import Trace

US = 1000
CALL = "cudaLaunchKernel"
LAUNCHES = st.lists(
    st.tuples(st.integers(1, 60), st.integers(1, 60), st.integers(0, 9), st.integers(7, 8)),
    max_size=12,
)
"""When the call began, when the work began, how long that took, on which stream."""


def _launched(
    launches_us: Iterable[tuple[int, int, int, int]], *, call_us: int = 1, call: str = CALL
) -> Trace:
    rows: list[list[Any]] = [["cpu_op", "aten::mm", 0, 1]]
    for number, (launched, began, duration, stream) in enumerate(launches_us):
        rows.append(["cuda_runtime", call, launched, call_us, {"correlation": number}])
        where = {"correlation": number, "stream": stream}
        rows.append(["kernel", "gemm", began, duration, where])
    return trace_of(rows)


def _idle_us(trace: Trace, stream: int = 7) -> dict[str, int]:
    table = idle_kinds(trace)
    mine = table[(table["stream"] == stream) & (table["gap_count"] > 0)]
    return dict(zip(mine["kind"], (mine["idle_ns"] // US).tolist(), strict=True))


# Idle streams


def test_a_gap_is_a_host_wait_a_kernel_wait_or_other() -> None:
    trace = _launched(
        [(0, 5, 10, 7), (20, 25, 10, 7), (21, 40, 10, 7), (22, 80, 10, 7)]
    )  # ends at 15, 35, 50, 90
    assert _idle_us(trace) == {"host_wait": 10, "kernel_wait": 5, "other": 30}


@pytest.mark.parametrize(("gap", "kind"), [(29, "kernel_wait"), (30, "other")])
def test_thirty_microseconds_is_too_long_for_a_kernel_wait(gap: int, kind: str) -> None:
    assert _idle_us(_launched([(0, 5, 10, 7), (1, 15 + gap, 10, 7)])) == {kind: gap}


def test_work_without_a_known_launch_is_no_host_wait() -> None:
    rows = [["kernel", "a", 0, 10], ["kernel", "b", 100, 10]]
    assert _idle_us(trace_of(rows)) == {"other": 90}


def test_a_gap_begins_when_all_work_before_has_ended() -> None:
    """The long kernel runs until 100, over the short one: HTA's gap would begin at 25."""
    trace = _launched([(0, 0, 100, 7), (1, 20, 5, 7), (2, 110, 10, 7)])
    assert _idle_us(trace) == {"kernel_wait": 10}


def test_while_another_stream_works_the_device_is_not_idle() -> None:
    trace = _launched([(0, 5, 10, 7), (90, 95, 10, 7), (1, 20, 50, 8)])
    (row,) = idle_kinds(trace).query("stream == 7 and gap_count > 0").to_dict("records")
    assert (row["kind"], row["idle_ns"], row["device_idle_ns"]) == ("host_wait", 80 * US, 30 * US)


@given(LAUNCHES)
def test_kinds_share_out_what_the_stream_did_not_work(
    given_launches: list[tuple[int, int, int, int]],
) -> None:
    trace = _launched(given_launches)
    table = idle_kinds(trace)
    for stream in {launch[3] for launch in given_launches}:
        busy: set[int] = set()
        extent: list[int] = []
        for _, began, duration, where in given_launches:
            if where == stream:
                busy |= set(range(began, began + duration))
                extent += [began, began + duration]
        idle = (max(extent) - min(extent) - len(busy)) * US
        mine = table[table["stream"] == stream]
        assert tuple(mine["kind"]) == KINDS
        assert mine["idle_ns"].sum() == idle
        assert (mine["device_idle_ns"] <= mine["idle_ns"]).all()
        if idle:
            assert mine["stream_idle_share"].sum() == pytest.approx(1)


def test_of_one_stream_host_waits_are_the_ledgers_causes_of_a_late_host() -> None:
    trace = _launched([(0, 5, 10, 7), (20, 25, 10, 7), (21, 40, 10, 7)])
    ledger = idle_ledger(trace)[0].idle_ns
    late = sum(ledger[cause] for cause in ("dispatch", "host-stall", "post-sync", "alloc"))
    kinds = idle_kinds(trace).set_index("kind")["idle_ns"]
    assert kinds["host_wait"] == late == 10 * US
    assert kinds["kernel_wait"] + kinds["other"] == ledger["queued"] == 5 * US


# Launches


def test_launches_have_a_delay_and_may_be_short_slow_or_late() -> None:
    rows = [
        ["cuda_runtime", CALL, 0, 6, {"correlation": 1}],
        ["kernel", "gemm", 8, 5, {"correlation": 1}],  # shorter than its call
        ["cuda_runtime", CALL, 20, 60, {"correlation": 2}],
        ["kernel", "gemm", 70, 5, {"correlation": 2}],  # began before its slow call returned
        ["cuda_runtime", "cudaMemcpyAsync", 100, 5, {"correlation": 3}],
        ["gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 206, 9, {"correlation": 3}],  # late
        ["kernel", "gemm", 300, 5],
    ]
    found = launches(trace_of(rows))
    assert (found.delay_ns // US).tolist() == [2, 0, 101]
    assert found.is_short.tolist() == [True, False, False]
    assert found.is_slow.tolist() == [False, True, False]
    assert found.is_late.tolist() == [False, False, True]
    by_name = launches_by_name(trace_of(rows)).set_index("name")
    gemm = by_name.loc["gemm"]
    assert (gemm["launch_count"], gemm["unlinked_count"], gemm["graph_count"]) == (2, 1, 0)
    assert (gemm["host_total_ns"], gemm["device_total_ns"]) == (66 * US, 10 * US)
    assert (gemm["delay_mean_ns"], gemm["delay_max_ns"]) == (US, 2 * US)
    by_call = launches_by_call(trace_of(rows))
    assert list(by_call["call"]) == [CALL, "cudaMemcpyAsync", "all"]
    assert by_call.iloc[-1]["launch_count"] == 3
    assert by_call.iloc[-1]["unlinked_count"] == 1


def test_a_limit_itself_is_not_over_it() -> None:
    on_it = launches(_launched([(0, 150, 60, 7)], call_us=50))
    assert not on_it.is_slow.any()
    assert not on_it.is_late.any()
    over = launches(_launched([(0, 152, 60, 7)], call_us=51))
    assert over.is_slow.all()
    assert over.is_late.all()


def test_what_a_graph_replays_has_no_launch_of_its_own() -> None:
    rows: list[list[Any]] = [
        ["cuda_runtime", "cudaGraphLaunch", 0, 9, {"correlation": 1}],
        ["kernel", "gemm", 20, 5, {"correlation": 1, "graph id": 3}],
        ["kernel", "gemm", 30, 5, {"correlation": 1, "graph id": 3}],
    ]
    (row,) = rows_of(launches_by_name(trace_of(rows)))
    assert (row.launch_count, row.graph_count) == (0, 2)
    assert np.isnan([row.delay_mean_ns, row.delay_max_ns]).all()
    assert list(launches_by_call(trace_of(rows))["call"]) == ["cudaGraphLaunch", "all"]


@given(LAUNCHES)
def test_every_piece_of_work_is_counted_once(
    given_launches: list[tuple[int, int, int, int]],
) -> None:
    trace = _launched(given_launches)
    counts = ["launch_count", "graph_count", "unlinked_count"]
    for table in (launches_by_name(trace), launches_by_call(trace).query("call == 'all'")):
        assert table[counts].to_numpy().sum() == len(given_launches)
    by_call = launches_by_call(trace)
    summed = by_call[by_call["call"] != "all"]["host_total_ns"].sum()
    assert summed == by_call[by_call["call"] == "all"]["host_total_ns"].sum()


# Queues


def test_a_queue_grows_by_launches_and_shrinks_by_beginnings() -> None:
    trace = _launched([(0, 10, 5, 7), (2, 20, 5, 7), (12, 22, 5, 8)])
    series = queue_series(trace)
    assert [(row.stream, row.time_ns // US, row.length) for row in rows_of(series)] == [
        (7, 0, 1),
        (7, 2, 2),
        (7, 10, 1),
        (7, 20, 0),
        (8, 12, 1),
        (8, 22, 0),
    ]
    seven, eight = rows_of(queue_lengths(trace))
    assert (seven.change_count, seven.length_mean, seven.length_max) == (4, 1, 2)
    assert seven.length_time_mean == pytest.approx((2 * 1 + 8 * 2 + 10 * 1) / 20)
    assert (eight.length_min, eight.empty_share, eight.full_ns) == (0, 0, 0)


def test_work_without_a_known_launch_is_counted_beside_the_queue() -> None:
    rows = [
        ["cuda_runtime", CALL, 1, 1, {"correlation": 1}],
        ["kernel", "gemm", 5, 5, {"correlation": 1}],
        ["kernel", "gemm", 20, 5],
    ]
    (row,) = rows_of(queue_lengths(trace_of(rows)))
    assert (row.change_count, row.unlinked_count, row.length_max) == (2, 1, 1)


def test_a_stream_without_any_known_launch_has_a_row_and_no_lengths() -> None:
    (row,) = rows_of(
        queue_lengths(trace_of([["kernel", "gemm", 20, 5], ["kernel", "gemm", 30, 5]]))
    )
    assert (row.change_count, row.unlinked_count, row.full_ns) == (0, 2, 0)
    assert np.isnan([row.length_min, row.length_mean, row.length_max, row.empty_share]).all()


def test_a_queue_is_full_with_1024_pieces_of_work() -> None:
    trace = _launched([(number, 2000 + number, 1, 7) for number in range(1024)])
    (row,) = rows_of(queue_lengths(trace))
    assert (row.length_max, row.full_ns) == (1024, (2000 - 1023) * US)


def test_all_that_a_graph_replays_is_queued_by_its_one_call() -> None:
    rows: list[list[Any]] = [["cuda_runtime", "cudaGraphLaunch", 0, 9, {"correlation": 1}]]
    rows += [["kernel", "gemm", 20 + 10 * n, 5, {"correlation": 1}] for n in range(3)]
    assert queue_series(trace_of(rows))["length"].tolist() == [1, 2, 3, 2, 1, 0]


@given(LAUNCHES)
def test_a_queue_is_a_count_of_what_was_launched_and_not_begun(
    given_launches: list[tuple[int, int, int, int]],
) -> None:
    found = queues(_launched(given_launches))
    changes = found.changes
    for place, (_, stream) in enumerate(found.streams):
        mine = [launch for launch in given_launches if launch[3] == stream]
        at, length = (of[changes.group == place] for of in (changes.time_ns, changes.level))
        assert length[-1] == 0
        assert (np.diff(at) >= 0).all()
        for time in set((at // US).tolist()):
            last = length[at // US == time][-1]
            assert last == sum(launched <= time for launched, *_ in mine) - sum(
                began <= time for _, began, *_ in mine
            )
        lasts = changes.lasts_ns[changes.group == place]
        assert lasts.sum() == at[-1] - at[0]


@pytest.mark.parametrize("table", [idle_kinds, launches_by_name, launches_by_call, queue_lengths])
def test_without_device_work_there_are_no_rows(table: Any) -> None:
    assert table(_launched([])).empty
