"""Which kernels run on matrix units: yes, no, or not to be told by the name.

The names stand in `tests/dialects/<vendor>.yml` under `uses_matrix_unit`.
"""

import time
from pathlib import Path
from typing import Any

import pytest

from loading import SHARED_TRACES, document_at, shared_trace_names, trace_at, trace_of
from stepscope.analyses.core.kernel_names import operand_type, short
from stepscope.analyses.devices.device_metrics import device_metrics
from stepscope.analyses.operators.matrix_units import are_classified, are_used, is_eligible
from stepscope.analyses.operators.work_formulas import FORMULAS
from stepscope.dialects import all_dialects

ANSWERS = {"used": True, "not_used": False, "untold": None}
CASES = [
    (path.stem, name, ANSWERS[answer])
    for path in sorted((Path(__file__).parents[1] / "dialects").glob("*.yml"))
    for answer, names in document_at(path).get("uses_matrix_unit", {}).items()
    for name in names
]


@pytest.mark.parametrize(("vendor", "kernel", "expected"), CASES)
def test_a_name_tells_or_does_not(vendor: str, kernel: str, expected: bool | None) -> None:  # noqa: FBT001
    assert all_dialects()[vendor].uses_matrix_unit(kernel) is expected


def test_every_vendor_with_matrix_units_has_cases() -> None:
    told = {name for name, dialect in all_dialects().items() if dialect.matrix_unit_kernel}
    assert {vendor for vendor, _, _ in CASES} == told


def test_no_name_tells_where_the_vendor_is_not_known() -> None:
    assert all_dialects()["generic"].uses_matrix_unit("ampere_h1688gemm_128x128_nn") is None
    assert all_dialects()["mtia"].uses_matrix_unit("pe_exe") is None


def _kernels(*named: tuple[str, int]) -> list[list[Any]]:
    rows: list[list[Any]] = [["cuda_runtime", "cudaLaunchKernel", 0, 1, {"correlation": 1}]]
    start = 10
    for name, duration in named:
        rows.append(["kernel", name, start, duration])
        start += duration
    return rows


def test_copies_are_no_kernels_whatever_they_are_called() -> None:
    rows = [*_kernels(("nvjet_tst_64x8", 5), ("triton_0", 5)), ["gpu_memcpy", "nvjet", 50, 5]]
    trace = trace_of(rows)
    assert are_used(trace).tolist() == [True, False, False]
    assert are_classified(trace).tolist() == [True, False, False]


def test_what_is_not_told_makes_the_devices_share_a_lower_bound_and_says_so() -> None:
    trace = trace_of(_kernels(("nvjet_tst_64x8", 30), ("triton_0", 20), ("ampere_sgemm_nn", 50)))
    (device,) = device_metrics(trace)
    assert device.tensor_core_share == pytest.approx(0.3)
    assert device.notes["tensor_core_share"] == (
        "At least: for 20.0 % of the kernel time, kernel names do not show whether Tensor Cores"
        " are used, as Triton's do not."
    )


def test_a_device_none_of_whose_kernels_tells_has_no_share() -> None:
    (device,) = device_metrics(trace_of(_kernels(("triton_0", 20))))
    assert device.tensor_core_share is None
    assert "do not tell" in device.notes["tensor_core_share"]


LENGTH = 30_000
PIECES = (
    *("a", "a_", "a::", "(", "<", "1", "->", "void ", "std::enable_if<", "fmha_v2_", "flash_fwd_"),
    *("flashinfer::Prefill", "marlin", "gemm", "cudnn_a", "Cijk_", "ck_tile::Fmha", "_ZN5aiter1"),
    *("float", "lambda(", "SM90_1x1x1", "_MI1x", "_ZN1a", "fmha_cutlassF_f16_", "deep_gemm::a"),
)


@pytest.mark.slow
@pytest.mark.parametrize("begins", ["", "_ZN", "ck_tile::"])
def test_no_name_takes_longer_than_its_length_warrants(begins: str) -> None:
    # what a hostile file could stop the server with: a pattern that looks at a name again and again
    for piece in PIECES:
        name = begins + piece * (LENGTH // len(piece))
        began = time.process_time()
        for dialect in all_dialects().values():
            dialect.uses_matrix_unit(name)
            operand_type(dialect, name)
        short(name)
        assert time.process_time() - began < 5, piece


@pytest.mark.parametrize("name", shared_trace_names())
def test_of_real_traces_little_is_not_told_beside_triton(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    if trace.dialect.matrix_unit_kernel is None or not len(trace.kernels):
        pytest.skip("no kernels of a vendor with matrix units")
    by_name = trace.kernels.groupby(trace.kernels["name"].astype(object))["duration_ns"].sum()
    total = by_name.sum()
    # Triton's kernels are named as Python functions are: no `::`, no arguments
    compiled = [kernel for kernel in by_name.index if "(" in kernel or "::" in kernel]
    untold = [k for k in compiled if trace.dialect.uses_matrix_unit(str(k)) is None]
    assert by_name[untold].sum() <= 0.02 * total


def test_operators_whose_work_is_products_are_eligible_but_those_of_cpus_alone() -> None:
    of_cpus = {
        "aten::mkldnn_convolution",
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    }
    products = {name for name, formula in FORMULAS.items() if not formula.is_elementwise}
    assert {name for name in products if not is_eligible(name)} == of_cpus
