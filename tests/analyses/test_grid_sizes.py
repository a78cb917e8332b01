"""How far kernels fill a device: a few kernels, the whole answer."""

import pytest

import loading
import tracebuild
from stepscope.analyses.devices.device_metrics import grid_sizes
from stepscope.model.trace import Trace


def trace_of(*kernels: tuple[str, float, object, int]) -> Trace:
    rows = [
        ["kernel", name, 100 * number, us, {"blocks per SM": blocks, "device": device}]
        for number, (name, us, blocks, device) in enumerate(kernels)
    ]
    rows.append(["cuda_runtime", "cudaLaunchKernel", 0, 5, {"correlation": 1}])
    return loading.trace_of(document=tracebuild.document(rows=rows))


def test_shares_are_of_kernel_time_and_collectives_do_not_count() -> None:
    trace = trace_of(
        ("elementwise", 10, 0.5, 0),
        ("ampere_bf16_s16816gemm_bf16_64x64_ldg8_tn", 30, 0.8, 0),
        ("elementwise", 60, 3, 0),
        ("ncclDevKernel_AllReduce", 900, 0.1, 0),
        ("elementwise", 900, 0.1, 1),
    )
    sizes = grid_sizes(trace, 0)
    assert sizes.small_share == pytest.approx(0.4)
    assert sizes.small_matrix_share == pytest.approx(0.3)
    assert sizes.filled_share == pytest.approx(0.1 * 0.5 + 0.3 * 0.8 + 0.6)


def test_absurd_figures_are_not_told() -> None:
    sizes = grid_sizes(trace_of(("a", 10, -1, 0), ("b", 10, 1e30, 0), ("c", 10, None, 0)), 0)
    assert len(sizes.rows) == 0
    assert sizes.small_share is None
    assert sizes.filled_share is None
