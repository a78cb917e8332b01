"""Every nanosecond of a step in exactly one category: against a slow count of microseconds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import trace_of
from stepscope.analyses.steps.step_breakdown import (
    CATEGORIES,
    step_breakdown,
    step_breakdown_table,
    whole_parts,
)
from stepscope.model.trace import Trace

US = 1000
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
STEP_US = 30


def step(number: int, start: int, duration: int = STEP_US) -> list[Any]:
    return ["user_annotation", f"ProfilerStep#{number}", start, duration]


def launched(category: str, name: str, start: int, duration: int, by: int = 0) -> list[Any]:
    """A device event and its launch, which lasts 1 us from `by` on."""
    correlation = {"correlation": start * 100 + duration}
    return [
        ["cuda_runtime", "cudaLaunchKernel", by, 1, correlation],
        [category, name, start, duration, correlation],
    ]


def parts_us(trace: Trace, place: int = 0) -> dict[str, float]:
    """One step's categories in microseconds, without those of no time."""
    found = step_breakdown(trace)
    parts = zip(found.categories, found.parts_ns[place].tolist(), strict=True)
    return {name: time / US for name, time in parts if time}


# Each category in a minimal step


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["kernel", "gemm", 5, 10]], {"kernel": 10, "other": 20}),
        ([["kernel", NCCL, 5, 10]], {"communication": 10, "other": 20}),
        ([["user_annotation", "gloo:all_reduce", 5, 10]], {"communication": 10, "other": 20}),
        ([["gpu_memcpy", "Memcpy HtoD", 5, 10]], {"memcpy": 10, "other": 20}),
        ([["gpu_memset", "Memset (Device)", 5, 10]], {"memset": 10, "other": 20}),
        ([["cuda_runtime", "cudaLaunchKernel", 5, 10]], {"runtime": 10, "other": 20}),
        ([["user_annotation", LOADER, 5, 10]], {"dataloader": 10, "other": 20}),
        ([["cpu_op", "aten::mm", 5, 10]], {"cpu": 10, "other": 20}),
        ([["user_annotation", "forward", 5, 10]], {"cpu": 10, "other": 20}),
        ([["python_function", "train.py(1): f", 5, 10]], {"other": 30}),
        ([], {"other": 30}),
    ],
)
def test_a_category_has_the_time_in_which_it_alone_is_active(
    rows: list[Any], expected: dict[str, float]
) -> None:
    assert parts_us(trace_of([step(1, 0), *rows])) == expected


def test_the_hosts_collectives_are_exposed_where_no_operator_computes() -> None:
    """All-reduce overlaps the backward pass on a CPU; only the rest of it costs the step time."""
    trace = trace_of(
        [
            step(1, 0),
            ["user_annotation", "gloo:all_reduce", 5, 20, {"tid": 9}],
            ["cpu_op", "aten::mm", 2, 10],
            ["cpu_op", "c10d::allreduce_", 14, 2],
        ]
    )
    assert parts_us(trace) == {"cpu": 10, "communication": 13, "other": 7}


def test_where_several_are_active_the_first_category_has_the_time() -> None:
    """Each layer starts 2 us before the one above it and all end together."""
    trace = trace_of(
        [
            step(1, 0),
            ["cpu_op", "aten::mm", 2, 18],
            ["user_annotation", LOADER, 4, 16, {"tid": 2}],
            ["cuda_runtime", "cudaMemcpyAsync", 6, 14],
            ["gpu_memset", "Memset (Device)", 8, 12, {"stream": 1}],
            ["gpu_memcpy", "Memcpy HtoD", 10, 10, {"stream": 2}],
            ["kernel", NCCL, 12, 8, {"stream": 3}],
            ["kernel", "gemm", 14, 6, {"stream": 4}],
        ]
    )
    assert list(CATEGORIES)[:-1] == list(parts_us(trace))[:-1]
    two = dict.fromkeys(list(CATEGORIES)[1:-1], 2.0)
    assert parts_us(trace) == {"kernel": 6, **two, "other": 12}


def test_a_fully_covered_step_is_full_once() -> None:
    trace = trace_of(
        [
            step(1, 0),
            ["kernel", "gemm", 0, STEP_US, {"stream": 1}],
            ["kernel", "gemm", 0, STEP_US, {"stream": 2}],
            ["cpu_op", "aten::mm", 0, STEP_US],
        ]
    )
    assert parts_us(trace) == {"kernel": STEP_US}


# Steps


def test_the_devices_copies_of_steps_never_double_them() -> None:
    mirrors = [["gpu_user_annotation", f"ProfilerStep#{n}", n * STEP_US + 5, 40] for n in (0, 1)]
    trace = trace_of([step(0, 0), step(1, STEP_US), *mirrors, ["kernel", "gemm", 5, 10]])
    found = step_breakdown(trace)
    assert found.numbers == (0, 1)
    assert found.duration_ns.tolist() == [STEP_US * US] * 2


def test_a_step_need_not_be_numbered() -> None:
    names = ["ProfilerStep#", "ProfilerStep#epoch", "ProfilerStep #7"]
    rows = [["user_annotation", name, place * STEP_US, STEP_US] for place, name in enumerate(names)]
    found = step_breakdown(trace_of(rows))
    assert found.names == tuple(names)
    assert found.numbers == (-1, -2, 7)


def test_a_step_ends_with_its_device_work_and_the_next_begins_there() -> None:
    """As in torch-tb-profiler: the kernel of step 0 ends 10 us into step 1."""
    work = launched("kernel", "gemm", 20, 20, by=10)
    more = launched("kernel", "gemm", 45, 10, by=42)
    found = step_breakdown(trace_of([step(0, 0), step(1, STEP_US), *work, *more]))
    assert found.start_ns.tolist() == [0, 40 * US]
    assert found.duration_ns.tolist() == [40 * US, 20 * US]
    assert found.parts_ns.sum(axis=1).tolist() == found.duration_ns.tolist()


@pytest.mark.parametrize(("last_count", "kept"), [(8, 2), (7, 1)])
def test_a_last_step_with_less_than_four_fifths_of_the_work_was_cut(
    last_count: int, kept: int
) -> None:
    rows = [step(0, 0, 100), step(1, 100, 100)]
    for number, count in enumerate((10, last_count)):
        for place in range(count):
            at = number * 100 + place * 8
            rows += launched("kernel", "gemm", at + 2, 3, by=at)
    assert step_breakdown(trace_of(rows)).step_count == kept


def test_without_steps_the_recording_is_one_row() -> None:
    found = step_breakdown(trace_of([["cpu_op", "aten::mm", 0, 10], ["kernel", "gemm", 5, 25]]))
    assert (found.step_count, found.names) == (0, ("whole recording",))
    assert found.mean_ns == 25 * US
    assert sum(found.mean_parts_ns.values()) == found.mean_ns


def test_mean_and_deviation_are_of_the_population() -> None:
    found = step_breakdown(trace_of([step(0, 0, 10), step(1, 10, 30)]))
    assert (found.mean_ns, found.standard_deviation_ns) == (20 * US, 10 * US)


# Against a slow version

KINDS: dict[str, Callable[[int, int, int], list[Any]]] = {
    "op": lambda s, d, t: [["cpu_op", "aten::mm", s, d, {"tid": t}]],
    "range": lambda s, d, t: [["user_annotation", "forward", s, d, {"tid": t}]],
    "loader": lambda s, d, t: [["user_annotation", LOADER, s, d, {"tid": t}]],
    "gloo": lambda s, d, t: [["user_annotation", "gloo:all_reduce", s, d, {"tid": t}]],
    "call": lambda s, d, t: [["cuda_runtime", "cudaEventRecord", s, d, {"tid": t}]],
    "kernel": lambda s, d, t: device("kernel", "gemm", s, d, t),
    "nccl": lambda s, d, t: device("kernel", NCCL, s, d, t),
    "copy": lambda s, d, t: device("gpu_memcpy", "Memcpy HtoD", s, d, t),
    "set": lambda s, d, t: device("gpu_memset", "Memset (Device)", s, d, t),
}
CATEGORY = {
    "kernel": "kernel",
    "nccl": "communication",
    "gloo": "communication",
    "copy": "memcpy",
    "set": "memset",
    "call": "runtime",
    "loader": "dataloader",
    "op": "cpu",
    "range": "cpu",
}


def device(category: str, name: str, start: int, duration: int, number: int) -> list[Any]:
    correlation = {"correlation": number}
    return [
        ["cuda_runtime", "cudaLaunchKernel", max(0, start - 7), 2, {**correlation, "tid": number}],
        [category, name, start, duration, {**correlation, "stream": number}],
    ]


EVENT = st.tuples(st.sampled_from(sorted(KINDS)), st.integers(0, 100), st.integers(1, 25))


def slow(step_count: int, events: list[tuple[str, int, int]]) -> list[dict[str, int]]:
    """Count microsecond by microsecond."""
    active: list[tuple[str, int, int]] = []
    work: list[list[int]] = [[] for _ in range(step_count)]
    for kind, start, duration in events:
        active.append((CATEGORY[kind], start, start + duration))
        if kind in ("kernel", "nccl", "copy", "set"):
            call = max(0, start - 7)
            active.append(("runtime", call, call + 2))
            for number in range(step_count):
                if number * STEP_US <= call and call + 2 <= (number + 1) * STEP_US:
                    work[number].append(start + duration)
    found, begin = [], 0
    last = max((n for n in range(step_count) if work[n]), default=step_count - 1)
    if last > 0 and any(work) and len(work[last]) < 0.8 * len(work[last - 1]):
        last -= 1
    for number in range(last + 1):
        begin = max(begin, number * STEP_US)
        until = max([begin, (number + 1) * STEP_US, *work[number]])
        counts = dict.fromkeys(CATEGORIES, 0)
        for at in range(begin, until):
            now = {name for name, start, end in active if start <= at < end} | {"other"}
            counts[next(name for name in CATEGORIES if name in now)] += 1
        found.append(counts)
        begin = until
    return found


@given(st.integers(1, 3), st.lists(EVENT, max_size=14))
def test_it_agrees_with_a_slow_count(step_count: int, events: list[tuple[str, int, int]]) -> None:
    rows = [step(number, number * STEP_US) for number in range(step_count)]
    for number, (kind, start, duration) in enumerate(events, start=1):
        rows += KINDS[kind](start, duration, number)
    found = step_breakdown(trace_of(rows))
    assert found.parts_ns.sum(axis=1).tolist() == found.duration_ns.tolist()
    assert (found.parts_ns >= 0).all()
    counted = [
        dict(zip(found.categories, (row // US).tolist(), strict=True)) for row in found.parts_ns
    ]
    assert counted == slow(step_count, events)
    assert sum(found.mean_parts_ns.values()) == found.mean_ns


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=8), st.integers(0, 10**10))
def test_whole_parts_sum_to_the_total_and_keep_proportion(weights: list[int], total: int) -> None:
    parts = whole_parts(np.array(weights, dtype=np.int64), total)
    if not sum(weights):
        assert parts == [0] * len(weights)
        return
    assert sum(parts) == total
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part * sum(weights) - weight * total) <= sum(weights)


def test_the_table_has_a_row_per_step_and_category_which_sum_to_the_step() -> None:
    trace = trace_of([step(1, 0), ["kernel", "gemm", 5, 10], step(2, 30), ["cpu_op", "a", 35, 15]])
    table = step_breakdown_table(trace)
    taken = table[table["duration_ns"] > 0]
    assert taken[["number", "category", "duration_ns", "step_share"]].to_numpy().tolist() == [
        [1, "kernel", 10_000, pytest.approx(1 / 3)],
        [1, "other", 20_000, pytest.approx(2 / 3)],
        [2, "cpu", 15_000, 0.5],
        [2, "other", 15_000, 0.5],
    ]
    assert len(table) == 2 * len(CATEGORIES)
