"""Copies between host and device, with the calls that asked for them."""

from typing import Any

import pytest

from loading import trace_of
from stepscope.analyses.core.device_activity import DeviceActivity, main_device
from stepscope.analyses.devices.host_copies import copies_to_device, copies_to_host
from stepscope.model.trace import Trace

US = 1000
STEP = ["user_annotation", "ProfilerStep#1", 0, 1000]


def copy(name: str, start: int, size: int, number: int, **more: Any) -> list[Any]:
    return [
        ["cuda_runtime", "cudaMemcpyAsync", start - 20, 15, {"correlation": number}],
        ["gpu_memcpy", f"Memcpy {name}", start, 10, {"correlation": number, "bytes": size, **more}],
    ]


def device_of(trace: Trace) -> DeviceActivity:
    device = main_device(trace)
    assert device is not None
    return device


def test_each_direction_has_its_copies_with_bytes_calls_and_owner() -> None:
    trace = trace_of(
        [
            STEP,
            ["cpu_op", "aten::copy_", 75, 30],
            *copy("HtoD (Pageable -> Device)", 100, 4000, 1),
            *copy("HtoD (Pinned -> Device)", 200, 6000, 2),
            *copy("DtoH (Device -> Pageable)", 300, 500, 3),
            *copy("DtoD (Device -> Device)", 400, 9000, 4),
        ]
    )
    to_device = copies_to_device(trace, device_of(trace))
    assert to_device.bytes.tolist() == [4000, 6000]
    assert to_device.is_pageable.tolist() == [True, False]
    assert to_device.call_start_ns.tolist() == [80 * US, 180 * US]
    assert to_device.call_end_ns.tolist() == [95 * US, 195 * US]
    assert to_device.owner[1] == -1
    assert trace.host_calls["name"].iloc[to_device.owner[0]] == "aten::copy_"
    assert (to_device.total_bytes, to_device.host_ns) == (10_000, 30 * US)
    assert to_device.bytes_per_second == pytest.approx(10_000 / 20e-6)
    to_host = copies_to_host(trace, device_of(trace))
    assert to_host.bytes.tolist() == [500]
    pageable = to_device.select(to_device.is_pageable)
    assert (pageable.total_bytes, len(pageable.owner)) == (4000, 1)


def test_the_time_of_copies_that_overlap_counts_once() -> None:
    trace = trace_of(
        [
            STEP,
            *copy("HtoD (Pinned -> Device)", 100, 4000, 1, stream=1),
            *copy("HtoD (Pinned -> Device)", 105, 4000, 2, stream=2),
        ]
    )
    copies = copies_to_device(trace, device_of(trace))
    assert copies.on_device.tolist() == [[100 * US, 115 * US]]
    assert copies.bytes_per_second == pytest.approx(8000 / 15e-6)


def test_small_copies_other_devices_and_other_times_are_left_out() -> None:
    trace = trace_of(
        [
            STEP,
            ["kernel", "gemm", 500, 100],
            *copy("HtoD (Pinned -> Device)", 100, 100, 1),
            *copy("HtoD (Pinned -> Device)", 200, 4000, 2, device=1),
            *copy("HtoD (Pinned -> Device)", 300, 4000, 3),
            *copy("HtoD (Pinned -> Device)", -100, 4000, 4),
        ]
    )
    copies = copies_to_device(trace, device_of(trace), least_bytes=101)
    assert copies.bytes.tolist() == [4000]
    assert len(copies_to_device(trace, device_of(trace)).rows) == 2


def test_a_copy_without_a_launch_stands_for_its_own_call() -> None:
    trace = trace_of([STEP, ["gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 100, 10]])
    copies = copies_to_device(trace, device_of(trace))
    assert copies.bytes.tolist() == [0]
    assert (copies.call_start_ns.tolist(), copies.host_ns) == ([100 * US], 0)
    assert copies.owner.tolist() == [-1]


def test_no_copy_has_no_rate() -> None:
    trace = trace_of([STEP, ["kernel", "gemm", 5, 10]])
    copies = copies_to_device(trace, device_of(trace))
    assert (copies.total_bytes, copies.bytes_per_second, copies.host_ns) == (0, 0, 0)
