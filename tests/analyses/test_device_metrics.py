"""Devices' figures: small cases with known answers, and properties against a slow version."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import trace_of
from stepscope.analyses.devices.device_metrics import capped_sum_ns, device_metrics
from stepscope.base.report import DeviceReport
from stepscope.model.trace import Trace

PROPERTIES = [
    {"id": 1, "name": "second", "totalGlobalMem": 2_000},
    {"id": 0, "name": "first", "totalGlobalMem": 1_000},
]


def _trace(*rows: list[Any], properties: Any = None) -> Trace:
    given = PROPERTIES if properties is None else properties
    host = [
        ["user_annotation", "ProfilerStep#1", 0, 1000],
        ["cuda_runtime", "cudaLaunchKernel", 10, 5, {"correlation": 1}],
    ]
    return trace_of([*host, *rows], deviceProperties=given)


def _kernel(
    start: int, duration: int, name: str = "ampere_sgemm_128x32_nn", **arguments: Any
) -> list[Any]:
    return ["kernel", name, start, duration, arguments]


def _fill(blocks: float, occupancy: float) -> dict[str, Any]:
    return {"blocks per SM": blocks, "est. achieved occupancy %": occupancy}


def _only(trace: Trace) -> DeviceReport:
    (device,) = device_metrics(trace)
    return device


def test_busy_counts_everything_and_kernel_busy_kernels_alone() -> None:
    device = _only(
        _trace(
            _kernel(100, 200, correlation=1),
            _kernel(150, 100, stream=9),  # beside the first
            ["gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 500, 100, {}],
            ["gpu_memset", "Memset (Device)", 600, 50, {}],
        )
    )
    assert device.busy_share == pytest.approx(0.35)
    assert device.kernel_busy_share == pytest.approx(0.2)


def test_steps_reach_to_the_device_work_launched_in_them() -> None:
    device = _only(_trace(_kernel(900, 1100, correlation=1)))
    assert device.kernel_busy_share == pytest.approx(1100 / 2000)
    assert device.busy_share == pytest.approx(1100 / 2000)


def test_kernel_busy_leaves_out_work_after_the_last_step_that_no_step_launched() -> None:
    device = _only(_trace(_kernel(100, 500, correlation=1), _kernel(1500, 500)))
    assert device.kernel_busy_share == pytest.approx(0.5)
    assert device.busy_share == pytest.approx(1000 / 2000)


def test_sm_efficiency_adds_concurrent_blocks_and_stops_at_one() -> None:
    device = _only(
        _trace(
            _kernel(0, 400, correlation=1, **_fill(0.25, 10)),
            _kernel(200, 400, stream=9, **_fill(0.5, 10)),
            _kernel(700, 100, **_fill(17.0, 10)),
        )
    )
    assert device.sm_efficiency_share == pytest.approx(0.25 * 0.2 + 0.75 * 0.2 + 0.5 * 0.2 + 0.1)


def test_occupancy_is_of_the_kernels_that_report_one() -> None:
    device = _only(
        _trace(
            _kernel(0, 100, correlation=1, **_fill(1, 80)),
            _kernel(200, 300, **_fill(1, 40)),
            _kernel(600, 300, **_fill(1, 0)),
        )
    )
    assert device.occupancy_share == pytest.approx((100 * 0.8 + 300 * 0.4) / 400)


def test_matrix_unit_share_is_of_kernel_time() -> None:
    device = _only(_trace(_kernel(0, 100, correlation=1), _kernel(200, 300, "sm90_xmma_gemm")))
    assert device.tensor_core_share == pytest.approx(0.75)


def test_properties_belong_by_id_and_devices_come_in_order() -> None:
    trace = _trace(_kernel(200, 100, device=1), _kernel(100, 100, device=0, correlation=1))
    first, second = device_metrics(trace)
    assert (first.id, first.name, first.memory_capacity_bytes) == (0, "first", 1_000)
    assert (second.id, second.name, second.memory_capacity_bytes) == (1, "second", 2_000)


def test_a_device_without_properties_has_the_vendors_word_and_its_number() -> None:
    device = _only(_trace(_kernel(0, 5, device=5, correlation=1)))
    assert (device.name, device.memory_capacity_bytes) == ("GPU 5", None)
    assert "GPU 5" in device.notes["memory_capacity_bytes"]


def _memory(**arguments: Any) -> list[Any]:
    return ["cpu_instant_event", "[memory]", 5, None, {"Bytes": 8, "Device Type": 1, **arguments}]


def test_memory_peak_is_the_devices_own() -> None:
    trace = _trace(
        _kernel(0, 5, correlation=1),
        _memory(**{"Device Id": 0, "Total Allocated": 300, "Total Reserved": 700}),
        _memory(**{"Device Id": 0, "Total Allocated": 100, "Total Reserved": 700}),
        _memory(**{"Device Id": 1, "Total Allocated": 900, "Total Reserved": 900}),
        _memory(**{"Device Type": 0, "Device Id": -1, "Total Allocated": 5000}),
    )
    assert _only(trace).memory_peak_bytes == 700


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "profile_memory=True"),
        ([_memory(**{"Device Id": 3, "Total Allocated": 5})], "device 3 only"),
        ([_memory(**{"Device Id": 0})], "no totals"),
        ([_memory(**{"Device Type": 0, "Device Id": -1, "Total Allocated": 5})], "on the host"),
    ],
)
def test_a_missing_memory_peak_is_explained(rows: list[Any], says: str) -> None:
    device = _only(_trace(_kernel(0, 5, correlation=1), *rows))
    assert device.memory_peak_bytes is None
    assert says in device.notes["memory_peak_bytes"]


def test_notes_name_exactly_the_figures_that_are_missing() -> None:
    bare = _only(_trace(_kernel(0, 5, correlation=1)))
    assert set(bare.notes) == {"sm_efficiency_share", "occupancy_share", "memory_peak_bytes"}
    full = _only(
        _trace(
            _kernel(0, 5, correlation=1, **_fill(1, 50)),
            _memory(**{"Device Id": 0, "Total Allocated": 300, "Total Reserved": 700}),
        )
    )
    assert full.notes == {}


def test_zeros_alone_are_no_occupancy_and_say_so() -> None:
    device = _only(_trace(_kernel(0, 5, correlation=1, **_fill(1, 0))))
    assert device.occupancy_share is None
    assert "reports 0" in device.notes["occupancy_share"]


def test_a_vendor_that_cannot_tell_is_not_asked_to_record_again() -> None:
    trace = trace_of(
        [
            ["cuda_runtime", "hipLaunchKernel", 0, 5, {"correlation": 1}],
            _kernel(10, 5, "Cijk_SB_GA", correlation=1),
        ]
    )
    device = _only(trace)
    assert "no setting records it" in device.notes["occupancy_share"]
    assert device.tensor_core_share == 0


def test_copies_alone_give_no_kernel_figure() -> None:
    device = _only(_trace(["gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0, 100, {}]))
    assert (device.kernel_busy_share, device.tensor_core_share) == (0, None)
    assert "No kernel ran on GPU 0" in device.notes["tensor_core_share"]


def test_without_a_device_there_is_nothing() -> None:
    assert device_metrics(trace_of([["cpu_op", "aten::mm", 0, 5]])) == ()


KERNELS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 20), st.sampled_from([0.125, 0.5, 1.0, 3.0])),
    min_size=1,
    max_size=12,
)


@given(KERNELS)
def test_the_capped_sum_is_that_of_counting_nanosecond_by_nanosecond(
    kernels: list[tuple[int, int, float]],
) -> None:
    level = np.zeros(100)
    for start, duration, value in kernels:
        level[start : start + duration] += value
    starts, durations, values = (np.array(column) for column in zip(*kernels, strict=True))
    found = capped_sum_ns(starts, starts + durations, values.astype(float))
    assert found == pytest.approx(np.minimum(level, 1).sum())
