"""Memory over time: totals as recorded, and what can be said where there are none."""

import numpy as np
import pytest

from loading import trace_of
from memorybuild import in_turn, memory, with_totals
from stepscope.analyses.memory.curve import SCHEMA, memory_curve, memory_curves
from stepscope.analyses.memory.memory_devices import memory_devices
from stepscope.base.errors import MissingDataError
from tracebuild import Row


def test_totals_are_the_allocators() -> None:
    trace = trace_of(with_totals(["+512@1", "+1024@2", "-512@1"], before=4096, reserved=8192))
    curve = memory_curve(trace)
    assert list(curve.columns) == [column.name for column in SCHEMA]
    assert curve["time_ns"].tolist() == [0, 1000, 2000]
    assert curve["allocated_bytes"].tolist() == [4608, 5632, 5120]
    assert curve["change_bytes"].tolist() == [512, 1536, 1024]
    assert curve["unused_bytes"].tolist() == [3584, 2560, 3072]


def test_without_totals_it_is_the_change_since_the_recording_began() -> None:
    trace = trace_of(in_turn(["-100", "+512", "+512", "-512"]))
    curve = memory_curve(trace)
    assert curve["change_bytes"].tolist() == [-100, 412, 924, 412]
    assert curve["allocated_bytes"].isna().all()
    assert curve["reserved_bytes"].isna().all()
    (only,) = memory_curves(trace)
    assert not only.has_totals
    assert only.level_bytes.tolist() == [-100, 412, 924, 412]


def test_an_allocator_without_a_cache_reserves_nothing_which_is_not_0_bytes() -> None:
    trace = trace_of(with_totals(["+512@1"], type_code=0, device=-1))
    assert memory_curve(trace)["reserved_bytes"].isna().all()


def test_every_type_and_number_is_a_device_of_its_own() -> None:
    rows = [
        memory(0, "+1@1", type_code=1, device=1),
        memory(1, "+2@1", type_code=6),
        memory(2, "+4@1", type_code=0, device=-1),
        memory(3, "+8@1", type_code=1, device=1),
        memory(4, "+16@1", type_code=99, device=2),
    ]
    trace = trace_of(rows)
    labels = [device.label for device in memory_devices(trace)]
    assert labels == ["CPU", "CUDA 1", "HIP 0", "type 99 2"]
    curve = memory_curve(trace)
    assert curve["change_bytes"].tolist() == [4, 1, 9, 2, 16]
    assert curve["device_type"].tolist() == ["CPU", "CUDA", "CUDA", "HIP", "type 99"]


@pytest.mark.parametrize("size", ["+0@1", "+999999999999999999@1", "-999999999999999999@1"])
def test_events_of_no_or_absurd_size_are_left_out(size: str) -> None:
    trace = trace_of([memory(0, "+8@2"), memory(1, size)])
    assert memory_curve(trace)["change_bytes"].tolist() == [8]


def test_absurd_totals_are_not_known() -> None:
    rows: list[Row] = [
        ["cpu_instant_event", "[memory]", 0, None, {"Bytes": 8, "Total Allocated": 1e300}],
        memory(1, "+8@2"),
    ]
    rows.append(["cpu_instant_event", "[memory]", 2, None, {"Bytes": 8, "Total Allocated": -5}])
    assert np.isnan(memory_curve(trace_of(rows))["allocated_bytes"]).all()


def test_nothing_recorded_says_what_to_record() -> None:
    with pytest.raises(MissingDataError) as missing:
        memory_curve(trace_of([["cpu_op", "aten::mm", 0, 1]]))
    assert missing.value.remedy == "torch.profiler.profile(..., profile_memory=True)"


def test_only_unusable_events_give_an_empty_curve() -> None:
    curve = memory_curve(trace_of([memory(0, "+0@1")]))
    assert len(curve) == 0
    assert {str(kind) for kind in curve.dtypes} == {column.dtype for column in SCHEMA}


def test_a_device_number_for_every_event_costs_no_more_than_the_busiest() -> None:
    rows = [memory(n, "+8@1", device=n) for n in range(100)] + [memory(2000, "+8@1", device=7)]
    devices = memory_devices(trace_of(rows))
    assert len(devices) == 64
    assert max(len(device.rows) for device in devices) == 2
