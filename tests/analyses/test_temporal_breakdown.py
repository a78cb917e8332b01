"""What a device did with its time sums to it: small traces, and a bitmap of any."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import trace_of
from stepscope.analyses.core.exposed_communication import exposure
from stepscope.analyses.devices.kernel_breakdown import (
    PARTS,
    SCHEMA,
    temporal_breakdown,
    type_overlaps,
    type_statistics,
)
from stepscope.model.trace import Trace

US = 1000
NAMES = {
    "compute": ("kernel", "gemm"),
    "communication": ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)"),
    "memory": ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)"),
}
EVENTS = st.lists(
    st.tuples(st.sampled_from(sorted(NAMES)), st.integers(0, 30), st.integers(0, 12)), max_size=12
)
Events = list[tuple[str, int, int]]


def _trace(events: Events, steps: list[tuple[int, int]] = []) -> Trace:  # noqa: B006
    rows: list[list[Any]] = [["cpu_op", "aten::add", 0, 1]]
    rows += [
        ["user_annotation", f"ProfilerStep#{number}", start, duration]
        for number, (start, duration) in enumerate(steps)
    ]
    rows += [[*NAMES[what], start, duration] for what, start, duration in events]
    return trace_of(rows)


def _row(table: pd.DataFrame, span: str = "device") -> dict[str, Any]:
    (row,) = table[table["span"] == span].to_dict("records")
    return {str(key): value for key, value in row.items()}


SMALL: Events = [
    ("compute", 0, 10),
    ("communication", 5, 20),
    ("compute", 20, 10),
    ("memory", 28, 10),
    ("memory", 50, 5),
]


def test_a_small_trace_has_every_part() -> None:
    row = _row(temporal_breakdown(_trace(SMALL)))
    found = {name: value // US for name, value in row.items() if name.endswith("_ns")}
    assert found == {
        "start_ns": 0,
        "duration_ns": 55,
        "compute_ns": 20,
        "exposed_communication_ns": 10,
        "exposed_memory_ns": 13,
        "idle_ns": 12,
        "communication_ns": 20,
        "memory_ns": 15,
    }
    assert row["overlap_share"] == pytest.approx(0.5)
    assert row["idle_share"] == pytest.approx(12 / 55)


def test_types_of_work_and_what_ran_at_once() -> None:
    statistics = type_statistics(_trace(SMALL)).set_index("type")
    assert statistics["call_count"].to_dict() == {"compute": 2, "communication": 1, "memory": 2}
    assert statistics["total_ns"].to_dict() == {
        "compute": 20 * US,
        "communication": 20 * US,
        "memory": 15 * US,
    }
    assert statistics.loc["memory", "standard_deviation_ns"] == pytest.approx(5 * US / 2**0.5)
    assert np.isnan(statistics["standard_deviation_ns"]["communication"])
    overlaps = type_overlaps(_trace(SMALL)).set_index("types")["duration_ns"] // US
    assert overlaps.to_dict() == {
        "memory": 13,
        "communication": 10,
        "compute + communication": 10,
        "compute": 8,
        "compute + memory": 2,
    }


def test_a_device_is_known_by_its_window_its_extent_and_its_steps() -> None:
    table = temporal_breakdown(_trace(SMALL, steps=[(0, 40), (40, 60)]))
    spans = table.set_index("span")[["start_ns", "duration_ns"]] // US
    assert spans.to_dict("index") == {
        "window": {"start_ns": 0, "duration_ns": 100},
        "device": {"start_ns": 0, "duration_ns": 55},
        "ProfilerStep#0": {"start_ns": 0, "duration_ns": 40},
        "ProfilerStep#1": {"start_ns": 40, "duration_ns": 60},
    }


def test_without_a_device_there_are_no_rows() -> None:
    for table in (temporal_breakdown, type_statistics, type_overlaps):
        assert table(_trace([])).empty
    columns = {column.name: column.dtype for column in SCHEMA}
    assert temporal_breakdown(_trace([])).dtypes.astype(str).to_dict() == columns


def _bitmap(events: Events, start: int, end: int) -> dict[str, set[int]]:
    bits: dict[str, set[int]] = {what: set() for what in NAMES}
    for what, begin, duration in events:
        bits[what] |= set(range(begin, begin + duration)) & set(range(start, end))
    return bits


@given(EVENTS, st.lists(st.integers(1, 15), max_size=4))
def test_the_parts_of_every_span_are_a_bitmaps_and_sum_to_it(
    events: Events, steps: list[int]
) -> None:
    starts = np.cumsum([0, *steps]).tolist()
    trace = _trace(events, list(zip(starts, steps, strict=False)))
    for row in temporal_breakdown(trace).to_dict("records"):
        start, duration = row["start_ns"] // US, row["duration_ns"] // US
        bits = _bitmap(events, start, start + duration)
        compute, communication, memory = (bits[what] for what in NAMES)
        assert row["compute_ns"] == len(compute) * US
        assert row["communication_ns"] == len(communication) * US
        assert row["memory_ns"] == len(memory) * US
        assert row["exposed_communication_ns"] == len(communication - compute) * US
        assert row["exposed_memory_ns"] == len(memory - compute - communication) * US
        assert sum(row[f"{part}_ns"] for part in PARTS) == row["duration_ns"]


@given(EVENTS)
def test_what_ran_at_once_is_a_bitmaps_and_sums_to_the_busy_time(events: Events) -> None:
    bits = _bitmap(events, 0, 100)
    expected: dict[str, int] = {}
    for at in set.union(*bits.values()):
        together = " + ".join(what for what in NAMES if at in bits[what])
        expected[together] = expected.get(together, 0) + US
    found = type_overlaps(_trace(events))
    assert dict(zip(found["types"], found["duration_ns"], strict=True)) == expected
    if expected:
        assert found["busy_share"].sum() == pytest.approx(1)


@given(EVENTS)
def test_exposed_communication_is_that_of_the_collectives(events: Events) -> None:
    trace = _trace(events)
    of_collectives = exposure(trace, 0, 100 * US)
    for row in temporal_breakdown(trace).to_dict("records"):
        if row["span"] == "device":
            assert row["communication_ns"] == of_collectives.communication_ns
            assert row["exposed_communication_ns"] == of_collectives.exposed_ns
