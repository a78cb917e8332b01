"""Allocations that are live at the peak; the rest of the total is called unrecorded."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import SHARED_TRACES, rows_of, shared_trace_names, trace_at, trace_of
from memorybuild import in_turn, memory, with_totals
from stepscope.analyses.memory.at_peak import memory_at_peak, memory_peak_table
from stepscope.analyses.memory.holders import By, memory_holders
from stepscope.model.trace import Trace


def _held(trace: Trace, by: By = "operator") -> list[tuple[Any, ...]]:
    table = memory_holders(trace, by)
    return [
        (row.holder, row.origin, row.held_bytes, row.allocation_count) for row in rows_of(table)
    ]


def test_the_peak_is_shared_out_among_those_who_allocated() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::mm", 0, 2.5],
            ["cpu_op", "aten::add", 2.5, 10],
            *with_totals(["+512@1", "+512@2", "-512@1", "+256@3", "+1024@4", "-1024@4"]),
        ]
    )
    assert _held(trace) == [("aten::add", "recorded", 1280, 2), ("aten::mm", "recorded", 512, 1)]
    (row,) = rows_of(memory_peak_table(trace))
    assert (row.peak_ns, row.allocated_bytes, row.recorded_bytes) == (4000, 1792, 1792)
    assert memory_holders(trace)["peak_share"].tolist() == [1280 / 1792, 512 / 1792]
    assert memory_holders(trace)["largest_bytes"].tolist() == [1024, 512]


def test_what_was_there_before_is_told_as_far_as_it_is_freed_later() -> None:
    trace = trace_of(with_totals(["+512@1", "-100@9", "-512@1"], before=4096))
    assert _held(trace) == [
        (None, "unrecorded", 3996, 0),
        (None, "recorded", 512, 1),
        (None, "earlier", 100, 1),
    ]
    (row,) = rows_of(memory_peak_table(trace))
    assert (row.recorded_bytes, row.earlier_bytes, row.unrecorded_bytes) == (512, 100, 3996)


def test_without_totals_it_is_what_the_recording_shows() -> None:
    trace = trace_of(in_turn(["+512@1", "-100@9", "+8@2"]))
    assert _held(trace) == [(None, "recorded", 512, 1), (None, "earlier", 100, 1)]
    assert np.isnan(memory_peak_table(trace)["unrecorded_bytes"]).all()


def test_without_addresses_nobody_can_be_told() -> None:
    trace = trace_of([["Operator", "aten::mm", 0, 9], *in_turn(["+512", "+8", "-8"])])
    assert _held(trace) == [(None, "unrecorded", 520, 0)]


def test_by_module_and_by_stack() -> None:
    trace = trace_of(
        [
            ["python_function", "train.py(1): main", 0, 90],
            ["python_function", "nn.Module: Linear_0", 1, 3],
            memory(2, "+8@1"),
            ["python_function", "nn.Module: Linear_1", 5, 4],
            memory(6, "+16@2"),
        ]
    )
    assert _held(trace, "module") == [
        ("nn.Module: Linear_1", "recorded", 16, 1),
        ("nn.Module: Linear_0", "recorded", 8, 1),
    ]
    assert _held(trace, "stack") == [("train.py(1): main", "recorded", 24, 2)]


def test_reserved_and_capacity() -> None:
    properties = [{"id": 0, "totalGlobalMem": 8192}]
    launch = {"correlation": 1}
    rows = [
        *with_totals(["+512@1"], reserved=2048),
        ["cuda_runtime", "cudaLaunchKernel", 1, 1, launch],
        ["kernel", "gemm", 3, 1, launch],
    ]
    (row,) = rows_of(memory_peak_table(trace_of(rows, deviceProperties=properties)))
    assert (row.reserved_bytes, row.unused_bytes, row.most_reserved_bytes) == (2048, 1536, 2048)
    assert (row.capacity_bytes, row.capacity_share) == (8192, 0.25)


@pytest.mark.parametrize("by", ["operator", "module", "stack"])
@pytest.mark.parametrize("name", shared_trace_names())
def test_in_real_traces_holders_sum_to_the_peak(name: str, by: By) -> None:
    trace = trace_at(SHARED_TRACES / name)
    if not len(trace.memory):
        return
    sums = memory_holders(trace, by).groupby(["device_type", "device"], observed=True)["held_bytes"]
    peaks = memory_peak_table(trace).set_index(["device_type", "device"])
    told = peaks["allocated_bytes"].fillna(peaks["change_bytes"])
    assert sums.sum().astype(float).to_dict() == told.to_dict()
    assert (peaks["unrecorded_bytes"].dropna() >= 0).all()


@given(
    st.lists(st.sampled_from(["+8@1", "+16@2", "-8@1", "-16@2", "+32@3", "-64@4"]), min_size=1),
    st.integers(0, 200),
)
def test_what_is_held_at_the_peak_is_what_was_allocated_and_not_freed(
    events: list[str], before: int
) -> None:
    trace = trace_of(with_totals(events, before=before + 1000))
    (peak,) = memory_at_peak(trace)
    held: dict[str, int] = {}
    for event in events[: peak.at + 1]:
        size, address = event[1:].split("@")
        if event[0] == "+":
            held[address] = int(size)
        elif held.get(address) == int(size) or event[0] == "-":
            held.pop(address, None)
    assert peak.recorded_bytes == sum(held.values())
    assert (
        peak.recorded_bytes + peak.earlier_bytes + peak.unrecorded_bytes
        == memory_peak_table(trace)["allocated_bytes"].max()
    )
