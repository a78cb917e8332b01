"""Copies and memory sets: kinds, bytes, rates, what nothing hid, and who asked for them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import SHARED_TRACES as SHARED
from loading import rows_of, shared_trace_names, trace_at, trace_of
from stepscope.analyses.devices.transfer_table import (
    RECORDED_RATE,
    copies,
    copies_by_owner,
    memory_sets,
)
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.model.trace import Trace

US = 1000
H2D = "Memcpy HtoD (Pageable -> Device)"
PINNED = "Memcpy HtoD (Pinned -> Device)"
D2H = "Memcpy DtoH (Device -> Pinned)"


def _copy(name: str, start: int, duration: int, **arguments: Any) -> list[Any]:
    return ["gpu_memcpy", name, start, duration, arguments]


def _stepped(*rows: list[Any]) -> Trace:
    step = ["user_annotation", "ProfilerStep#1", 0, 1000]
    launch = ["cuda_runtime", "cudaMemcpyAsync", 1, 1, {"correlation": 1}]
    return trace_of([step, launch, *rows])


def test_copies_are_told_apart_by_direction_and_memory() -> None:
    trace = _stepped(
        _copy(H2D, 100, 10, bytes=1000),
        _copy(PINNED, 200, 10, bytes=4000),
        _copy(D2H, 300, 5, bytes=10, stream=9),
        _copy(H2D, 400, 30, bytes=5000),
    )
    table = copies(trace)
    kinds = table[["direction", "from_memory", "to_memory", "call_count", "total_bytes"]]
    assert rows_of(kinds) == [
        ("HtoD", "pageable", "device", 2, 6000),
        ("HtoD", "pinned", "device", 1, 4000),
        ("DtoH", "device", "pinned", 1, 10),
    ]
    assert table["total_ns"].tolist() == [40 * US, 10 * US, 5 * US]
    assert table["streams"].tolist() == ["7", "7", "9"]


@pytest.mark.parametrize(
    ("name", "memories"),
    [
        ("Memcpy HtoD (Host -> Device)", ("host", "device")),
        ("Memcpy DtoD (Managed Static -> Array)", ("managed static", "array")),
        ("Memcpy M2D (Memory -> Device)", ("memory", "device")),
        ("CopyHostToDevice", (None, None)),
    ],
)
def test_memory_is_what_the_vendor_calls_it(name: str, memories: tuple[str | None, ...]) -> None:
    (row,) = rows_of(copies(_stepped(_copy(name, 10, 5))))
    assert (row.from_memory, row.to_memory) == memories


def test_where_a_copy_says_no_bytes_its_call_does_unless_it_asked_for_several() -> None:
    # ROCm 6: `hipMemcpyWithStream` has the size, the copy has not
    calls = [
        ["cuda_runtime", "hipMemcpyWithStream", 2, 9, {"correlation": 7, "size": "2560"}],
        ["cuda_runtime", "hipMemcpyWithStream", 12, 9, {"correlation": 8, "size": "8"}],
    ]
    trace = _stepped(
        *calls,
        _copy("Memcpy HtoD (Host -> Device)", 4, 5, correlation=7),
        _copy("Memcpy DtoH (Device -> Host)", 14, 1, correlation=8),
        _copy("Memcpy DtoH (Device -> Host)", 16, 1, correlation=8),
    )
    table = copies(trace)[["total_bytes", "no_bytes_count", "bytes_per_second"]].fillna(-1)
    assert rows_of(table) == [(2560, 0, 2560 / 5e-6), (-1, 2, -1)]


def test_the_rate_of_several_is_all_bytes_over_all_time() -> None:
    trace = _stepped(_copy(H2D, 0, 10, bytes=10_000), _copy(H2D, 20, 90, bytes=990_000))
    (row,) = rows_of(copies(trace))
    assert row.bytes_per_second == pytest.approx(1_000_000 / 100e-6)
    assert row.mean_bytes_per_second == pytest.approx((1e9 + 11e9) / 2)


def test_the_recorded_rate_is_more_exact_than_a_duration_in_microseconds() -> None:
    # 13.92 µs, of which the trace kept 13
    recorded = {"bytes": 12_881_920, "memory bandwidth (GB/s)": 925.4252873563219}
    (row,) = rows_of(copies(_stepped(_copy(H2D, 0, 13, **recorded))))
    assert row.bytes_per_second == pytest.approx(925.4252873563219e9)


@pytest.mark.parametrize("rate", ["inf", "N/A", 0, -5])
def test_a_recorded_rate_that_is_none_is_reckoned(rate: object) -> None:
    trace = _stepped(_copy(H2D, 0, 10, bytes=10_000, **{"memory bandwidth (GB/s)": rate}))
    (row,) = rows_of(copies(trace))
    assert row.bytes_per_second == pytest.approx(1e9)


@pytest.mark.parametrize("size", [{}, {"bytes": -1}, {"bytes": "?"}])
def test_bytes_that_are_not_told_are_not_zero(size: dict[str, Any]) -> None:
    (row,) = rows_of(copies(_stepped(_copy(H2D, 0, 10, **size))))
    assert np.isnan([row.total_bytes, row.bytes_per_second, row.mean_bytes_per_second]).all()
    assert row.no_bytes_count == 1


def test_copies_of_no_length_have_bytes_and_no_rate() -> None:
    (row,) = rows_of(copies(_stepped(_copy(H2D, 5, 0, bytes=8))))
    assert row.total_bytes == 8
    assert np.isnan(row.bytes_per_second)


def test_exposed_is_what_neither_kernels_nor_collectives_hide() -> None:
    trace = _stepped(
        _copy(H2D, 100, 100, bytes=1, correlation=1),
        ["kernel", "gemm", 120, 10],
        ["kernel", "ncclDevKernel_AllReduce", 150, 20],
    )
    (row,) = rows_of(copies(trace))
    assert row.exposed_ns == 70 * US


def test_what_copies_side_by_side_expose_is_the_firsts() -> None:
    trace = _stepped(_copy(H2D, 100, 50, correlation=1), _copy(D2H, 120, 80, stream=9))
    table = copies(trace).set_index("name")["exposed_ns"]
    assert table.to_dict() == {H2D: 50 * US, D2H: 50 * US}


def test_copies_behind_the_steps_expose_none_of_them() -> None:
    trace = _stepped(_copy(H2D, 100, 10, correlation=1), _copy(H2D, 5000, 10))
    (row,) = rows_of(copies(trace))
    assert (row.total_ns, row.exposed_ns) == (20 * US, 10 * US)


def test_the_owner_is_the_operator_and_the_users_own_line() -> None:
    trace = _stepped(
        ["python_function", "train.py(7): step", 0, 90],
        ["python_function", "torch/_tensor.py(1): item", 10, 50],
        ["cpu_op", "aten::item", 20, 30],
        ["cuda_runtime", "cudaMemcpyAsync", 25, 5, {"correlation": 2}],
        _copy(D2H, 40, 5, correlation=2),
        _copy(D2H, 60, 5),
    )
    owners = copies_by_owner(trace)[["operator", "source_line", "call_count"]]
    assert sorted(rows_of(owners), key=str) == [
        ("aten::item", "train.py(7): step", 1),
        (None, None, 1),
    ]


def test_a_line_is_known_from_a_stack_that_the_file_holds_as_text() -> None:
    stack = {"Call stack": "torch/_tensor.py(1): item;train.py(9): step;train.py(30): <module>"}
    trace = _stepped(
        ["Operator", "aten::item", 20, 30, stack],
        ["Runtime", "cudaMemcpyAsync", 25, 5, {"correlation": 2}],
        _copy(D2H, 40, 5, correlation=2),
    )
    (row,) = rows_of(copies_by_owner(trace))
    assert row.source_line == "train.py(9): step"


def test_memory_sets_are_no_copies() -> None:
    trace = _stepped(
        ["cpu_op", "aten::zero_", 20, 30],
        ["cuda_runtime", "cudaMemsetAsync", 25, 5, {"correlation": 2}],
        ["gpu_memset", "Memset (Device)", 100, 10, {"bytes": 512, "correlation": 2}],
        _copy(H2D, 105, 10, bytes=1),
    )
    (row,) = rows_of(memory_sets(trace))
    assert (row.operator, row.total_bytes) == ("aten::zero_", 512)
    assert row.bytes_per_second == pytest.approx(51.2e6)
    assert row.exposed_ns == 5 * US
    (copy,) = rows_of(copies(trace))
    assert (copy.call_count, copy.exposed_ns) == (1, 10 * US)


def test_without_any_the_tables_are_empty() -> None:
    trace = trace_of([["cpu_op", "aten::mm", 0, 5]])
    assert [len(table(trace)) for table in (copies, copies_by_owner, memory_sets)] == [0, 0, 0]


PIECE = st.tuples(st.sampled_from(["copy", "kernel", "set"]), st.integers(0, 30), st.integers(0, 9))


@given(st.lists(PIECE, max_size=12))
def test_exposed_is_a_bitmaps_and_sums_to_the_steps(pieces: list[tuple[str, int, int]]) -> None:
    rows = {
        "copy": lambda start, length: _copy([H2D, D2H][start % 2], start, length, correlation=1),
        "kernel": lambda start, length: ["kernel", "gemm", start, length, {"correlation": 1}],
        "set": lambda start, length: ["gpu_memset", "Memset", start, length, {"correlation": 1}],
    }
    trace = _stepped(*(rows[kind](start, length) for kind, start, length in pieces))
    covered = {kind: np.zeros(60, dtype=bool) for kind in rows}
    for kind, start, length in pieces:
        covered[kind][start : start + length] = True
    of_copies = covered["copy"] & ~covered["kernel"]
    of_sets = covered["set"] & ~covered["copy"] & ~covered["kernel"]
    assert copies(trace)["exposed_ns"].sum() == of_copies.sum() * US
    assert memory_sets(trace)["exposed_ns"].sum() == of_sets.sum() * US
    steps = step_breakdown(trace)
    memcpy, memset = (steps.categories.index(category) for category in ("memcpy", "memset"))
    assert copies(trace)["exposed_ns"].sum() == steps.parts_ns[:, memcpy].sum()
    assert memory_sets(trace)["exposed_ns"].sum() == steps.parts_ns[:, memset].sum()


@pytest.mark.parametrize("name", shared_trace_names())
def test_exposed_time_of_real_traces_sums_to_the_steps_and_bytes_to_the_events(name: str) -> None:
    trace = trace_at(SHARED / name)
    steps = step_breakdown(trace)
    for table, category in ((copies, "memcpy"), (memory_sets, "memset")):
        of_steps = steps.parts_ns[:, steps.categories.index(category)].sum()
        assert table(trace)["exposed_ns"].sum() == of_steps
    by_kind, by_owner = copies(trace), copies_by_owner(trace)
    assert by_kind["total_bytes"].sum() == trace.copies["bytes"].sum()
    assert by_owner["total_bytes"].sum() == trace.copies["bytes"].sum()
    assert by_owner["total_ns"].sum() == by_kind["total_ns"].sum()
    assert by_kind["total_ns"].sum() == trace.copies["duration_ns"].sum()


@pytest.mark.parametrize("name", shared_trace_names())
def test_rates_are_those_of_looking_at_one_copy_after_the_other(name: str) -> None:
    trace = trace_at(SHARED / name)
    recorded = trace.source.number(RECORDED_RATE, trace.copies["event"].to_numpy())
    seconds: dict[Any, list[tuple[float, float]]] = {}
    for copy, rate in zip(rows_of(trace.copies), recorded, strict=True):
        if copy.bytes > 0 and (rate > 0 or copy.duration_ns):
            took = copy.bytes / rate / 1e9 if rate > 0 else copy.duration_ns / 1e9
            seconds.setdefault((copy.name, copy.direction), []).append((copy.bytes, took))
    for row in rows_of(copies(trace)):
        timed = seconds.get((row.name, row.direction))
        if timed is None:
            assert np.isnan(row.bytes_per_second)
            continue
        moved, took = (sum(each) for each in zip(*timed, strict=True))
        assert row.bytes_per_second == pytest.approx(moved / took)
        rates = [amount / duration for amount, duration in timed]
        assert row.mean_bytes_per_second == pytest.approx(np.mean(rates))
