"""The roofline: operations and bytes over kernel time, under the roofs of known devices alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loading import SAMPLE_LOGS, SHARED_TRACES, rows_of, shared_trace_names, trace_at, trace_of
from stepscope.analyses.core.links import links
from stepscope.analyses.devices.roofline import (
    COLLECTIVE,
    NO_LAUNCH,
    NO_OPERATOR,
    PREPARES,
    roofline,
)
from stepscope.analyses.devices.roofline_coverage import roofline_coverage
from stepscope.analyses.operators.operator_categories import UNOWNED
from stepscope.analyses.operators.operator_traffic import NO_MODEL, operator_traffic
from stepscope.analyses.operators.traffic_formulas import PARTS
from stepscope.analyses.operators.work_inputs import NO_LIST_SHAPES, NO_SHAPES, NO_VALUES
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.dialects import Kind
from stepscope.model.trace import Trace

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}
MI300 = {"id": 0, "name": "AMD Instinct MI300X", "numSms": 304}
BF16 = "c10::BFloat16"
TENSOR_CORE = "nvjet_tst_128x256_64x4"
N = 1024


def _mm(
    *kernels: tuple[str, float], of: str = BF16, size: int = N, runtime: str = "cudaLaunchKernel"
) -> list[list[Any]]:
    """A product of two matrices with the kernels that it launched, and how long each took in µs."""
    dims = {"Input Dims": [[size, size], [size, size]], "Input type": [of, of]}
    rows: list[list[Any]] = [["cpu_op", "aten::mm", 0, 50, dims]]
    start = 100.0
    for place, (name, duration) in enumerate(kernels):
        rows.append(["cuda_runtime", runtime, 1 + 2 * place, 1, {"correlation": place}])
        rows.append(["kernel", name, start, duration, {"correlation": place}])
        start += duration
    return rows


def _trace(*rows: list[Any], device: dict[str, Any] | None = None) -> Trace:
    return trace_of(list(rows), deviceProperties=[H100 if device is None else device])


def test_rates_are_work_over_kernel_time() -> None:
    (row,) = rows_of(roofline(_trace(*_mm((TENSOR_CORE, 4)))))
    flops, moved = 2 * N**3, 3 * N * N * 2
    assert (row.flop_count, row.moved_bytes, row.kernel_ns) == (flops, moved, 4000)
    assert row.flops_per_second == pytest.approx(flops / 4e-6)
    assert row.bytes_per_second == pytest.approx(moved / 4e-6)
    assert row.flops_per_byte == pytest.approx(flops / moved)
    assert row.data_type == "bfloat16"
    assert row.device_name == H100["name"]
    assert row.note is None


def test_shares_are_of_the_roofs_and_the_lower_one_bounds() -> None:
    (row,) = rows_of(roofline(_trace(*_mm((TENSOR_CORE, 4)))))
    assert row.compute_share == pytest.approx(2 * N**3 / 4e-6 / 794.5e12)
    assert (row.peak_source, row.peak_flops_per_second) == ("measured", 794.5e12)
    assert row.sheet_flops_per_second == 989.5e12
    assert row.memory_share == pytest.approx(3 * N * N * 2 / 4e-6 / 3350e9)
    assert row.bound == "compute"
    # TraceLens: the time at the roof over the time
    at_roof = max(2 * N**3 / 794.5e12, 6 * N * N / 3350e9)
    assert row.roofline_share == pytest.approx(at_roof / 4e-6)


def test_few_operations_a_byte_are_bound_by_memory() -> None:
    dims = {"Input Dims": [[1, N], [N, N]], "Input type": [BF16, BF16]}
    rows = _mm((TENSOR_CORE, 4))
    rows[0] = ["cpu_op", "aten::mm", 0, 50, dims]
    (row,) = rows_of(roofline(_trace(*rows)))
    assert row.flops_per_byte < 1
    assert row.bound == "memory"
    assert row.roofline_share == row.memory_share


def test_all_kernels_of_a_call_count_and_copies_do_not() -> None:
    rows = _mm((TENSOR_CORE, 4), ("void cublasLt::splitKreduce_kernel<32>(int)", 2))
    rows += [
        ["cuda_runtime", "cudaMemsetAsync", 30, 1, {"correlation": 9}],
        ["gpu_memset", "Memset (Device)", 200, 100, {"correlation": 9}],
    ]
    (row,) = rows_of(roofline(_trace(*rows)))
    assert row.kernel_ns == 6000


def test_calls_of_the_same_shapes_are_one_row() -> None:
    dims = {"Input Dims": [[N, N], [N, N]], "Input type": [BF16, BF16]}
    rows = [
        row
        for n in (0, 1)
        for row in (
            ["cpu_op", "aten::mm", 100 * n, 50, dims],
            ["cuda_runtime", "cudaLaunchKernel", 100 * n + 1, 1, {"correlation": n}],
            ["kernel", TENSOR_CORE, 300 + 10 * n, 4 + 4 * n, {"correlation": n}],
        )
    ]
    (row,) = rows_of(roofline(_trace(*rows)))
    assert (row.call_count, row.kernel_ns) == (2, 12000)
    assert row.flops_per_second == pytest.approx(2 * 2 * N**3 / 12e-6)


@pytest.mark.parametrize(
    ("kernel", "data_type", "peak"),
    [
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x6_nn>()", "tf32", 494.5e12),
        ("ampere_sgemm_128x64_nn", "float32", 67e12),
    ],
)
def test_float32_is_tf32_where_the_kernels_say_so(kernel: str, data_type: str, peak: float) -> None:
    (row,) = rows_of(roofline(_trace(*_mm((kernel, 100), of="float"))))
    assert row.data_type == data_type
    assert row.compute_share == pytest.approx(2 * N**3 / 100e-6 / peak)


def test_float32_of_kernels_that_do_not_tell_has_no_share() -> None:
    (row,) = rows_of(roofline(_trace(*_mm(("triton_tem_fused_mm_0", 100), of="float"))))
    assert row.data_type == "float32"
    assert np.isnan([row.compute_share, row.roofline_share]).all()
    assert row.memory_share > 0
    assert row.bound is None
    assert "do not tell whether float32" in row.note


def test_amds_matrix_cores_multiply_float32_as_it_is() -> None:
    rows = _mm(("Cijk_Ailk_Bljk_SB_MT64x16x16_MI16x16x4x1_", 100), of="float", runtime="hipLaunch")
    (row,) = rows_of(roofline(_trace(*rows, device=MI300)))
    assert row.data_type == "float32"
    assert row.compute_share == pytest.approx(2 * N**3 / 100e-6 / 163.4e12)


def test_what_is_faster_than_any_measured_product_is_held_against_the_sheet() -> None:
    (row,) = rows_of(roofline(_trace(*_mm((TENSOR_CORE, 2.5)))))
    assert 794.5e12 < row.flops_per_second < 989.5e12
    assert row.compute_share == pytest.approx(2 * N**3 / 2.5e-6 / 989.5e12)
    assert (row.peak_source, row.peak_flops_per_second) == ("data sheet", 989.5e12)


def test_above_the_peak_is_withheld_and_said() -> None:
    (row,) = rows_of(roofline(_trace(*_mm((TENSOR_CORE, 1)))))
    assert row.flops_per_second > 989.5e12
    assert np.isnan([row.compute_share, row.roofline_share]).all()
    assert row.note.startswith("Above the data sheet's peak")
    assert row.bound is None  # by operations that were not all done


def test_above_the_bandwidth_is_withheld_and_said() -> None:
    rows = _mm((TENSOR_CORE, 0.02), size=128)
    (row,) = rows_of(roofline(_trace(*rows)))
    assert row.compute_share < 1
    assert np.isnan([row.memory_share, row.roofline_share]).all()
    assert row.note == "Above the memory's bandwidth: caches delivered part of it."
    assert row.bound is None  # not by memory that did not deliver all of it


def test_each_share_that_is_withheld_has_its_reason() -> None:
    rows = _mm((TENSOR_CORE, 0.02), of="c10::complex<float>", size=128)
    (row,) = rows_of(roofline(_trace(*rows)))
    assert np.isnan([row.compute_share, row.memory_share, row.roofline_share]).all()
    assert "no peak for complex64" in row.note
    assert "Above the memory's bandwidth" in row.note


def test_autocast_counts_the_product_of_what_it_rounded_and_not_the_rounding() -> None:
    # torch.autocast: aten::mm of float32 rounds its inputs and calls aten::mm of bfloat16
    outer, inner = (
        {"Input Dims": [[N, N], [N, N]], "Input type": [of, of]} for of in ("float", BF16)
    )
    rows = [
        ["cpu_op", "aten::mm", 0, 50, outer],
        ["cpu_op", "aten::copy_", 1, 9, {"Input Dims": [[N, N], [N, N], []]}],
        ["cuda_runtime", "cudaLaunchKernel", 2, 1, {"correlation": 0}],
        ["kernel", "void at::native::unrolled_elementwise_kernel<>()", 100, 2, {"correlation": 0}],
        ["cpu_op", "aten::mm", 20, 20, inner],
        ["cuda_runtime", "cudaLaunchKernel", 22, 1, {"correlation": 1}],
        ["kernel", TENSOR_CORE, 110, 4, {"correlation": 1}],
    ]
    row, rounding = rows_of(roofline(_trace(*rows)))
    assert (row.data_type, row.call_count, row.kernel_ns) == ("bfloat16", 1, 4000)
    assert row.flop_count == 2 * N**3
    assert (rounding.name, rounding.kernel_ns) == ("aten::copy_", 2000)


def test_a_product_around_another_says_that_its_own_kernels_prepare() -> None:
    inputs = {"Input Dims": [[N, N], [N, N]], "Input type": [BF16, BF16]}
    rows = [
        ["cpu_op", "aten::matmul", 0, 50, inputs],
        ["cuda_runtime", "cudaLaunchKernel", 2, 1, {"correlation": 0}],
        ["kernel", "void at::native::unrolled_elementwise_kernel<>()", 100, 2, {"correlation": 0}],
        ["cpu_op", "aten::mm", 20, 20, inputs],
        ["cuda_runtime", "cudaLaunchKernel", 22, 1, {"correlation": 1}],
        ["kernel", TENSOR_CORE, 110, 4, {"correlation": 1}],
    ]
    product, own = rows_of(roofline(_trace(*rows)))
    assert (product.name, product.kernel_ns, product.note) == ("aten::mm", 4000, None)
    assert (own.name, own.kernel_ns, own.note) == ("aten::matmul", 2000, PREPARES)
    (category,) = rows_of(roofline_coverage(_trace(*rows)))
    assert (category.covered_ns, category.kernel_ns, category.reason) == (4000, 6000, PREPARES)


@pytest.mark.parametrize(
    ("of", "peak"), [("c10::Float8_e4m3fn", 1402.6e12), ("signed char", 1979e12), ("double", 67e12)]
)
def test_the_peak_is_that_of_the_operands_type(of: str, peak: float) -> None:
    rows = _mm((TENSOR_CORE, 100), of=of)
    rows[0][1] = {"double": "aten::mm", "signed char": "aten::_int_mm"}.get(of, "aten::_scaled_mm")
    (row,) = rows_of(roofline(_trace(*rows)))
    assert row.compute_share == pytest.approx(2 * N**3 / 100e-6 / peak)


def test_float16_of_geforce_is_accumulated_in_float32() -> None:
    # the white paper's 330.3e12 is with 16-bit accumulation, which torch does not ask for
    geforce = {"id": 0, "name": "NVIDIA GeForce RTX 4090", "numSms": 128}
    rows = _mm((TENSOR_CORE, 100), of="c10::Half")
    (row,) = rows_of(roofline(_trace(*rows, device=geforce)))
    assert row.compute_share == pytest.approx(2 * N**3 / 100e-6 / 165.2e12)


def test_an_unknown_device_has_rates_and_no_shares() -> None:
    (row,) = rows_of(roofline(_trace(*_mm((TENSOR_CORE, 4)), device={"id": 0, "name": "Some GPU"})))
    assert row.flops_per_second > 0
    assert np.isnan([row.compute_share, row.memory_share, row.roofline_share]).all()
    assert (row.bound, row.source) == (None, None)
    assert row.note == "No data sheet is listed for 'Some GPU'."


def test_a_type_without_a_peak_is_said() -> None:
    (row,) = rows_of(roofline(_trace(*_mm((TENSOR_CORE, 100), of="c10::complex<float>"))))
    assert np.isnan(row.compute_share)
    assert row.note == "The data sheet has no peak for complex64."


def test_the_device_is_the_kernels_not_the_first() -> None:
    rows = _mm((TENSOR_CORE, 4))
    rows[-1][4]["device"] = 1
    other = {"id": 1, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}
    (row,) = rows_of(roofline(trace_of(rows, deviceProperties=[H100, other])))
    assert (row.device, row.device_name) == (1, "NVIDIA A100-SXM4-80GB")


def test_a_number_that_is_not_listed_is_known_where_all_devices_are_alike() -> None:
    rows = _mm((TENSOR_CORE, 4))
    rows[-1][4]["device"] = 5
    alike = [H100, H100 | {"id": 1}]
    (row,) = rows_of(roofline(trace_of(rows, deviceProperties=alike)))
    assert row.device_name == H100["name"]
    mixed = [H100, MI300 | {"id": 1}]
    (row,) = rows_of(roofline(trace_of(rows, deviceProperties=mixed)))
    assert row.device_name is None


def test_operators_that_are_no_products_have_the_memorys_roof_alone() -> None:
    rows = _mm(("void at::native::vectorized_elementwise_kernel<4>()", 4))
    rows[0][1] = "aten::add"
    (row,) = rows_of(roofline(_trace(*rows)))
    assert (row.category, row.flop_count) == ("elementwise", N * N)
    assert row.moved_bytes == 3 * N * N * 2
    assert row.memory_share == row.roofline_share == pytest.approx(6 * N * N / 4e-6 / 3350e9)
    assert np.isnan([row.compute_share, row.peak_flops_per_second]).all()
    assert (row.bound, row.peak_source, row.note) == ("memory", None, None)


H200 = {"id": 0, "name": "NVIDIA H200", "numSms": 132}


@pytest.mark.parametrize(
    ("gigabytes_per_second", "source", "peak"),
    [(4000, "measured", 4271.8e9), (4400, "data sheet", 4800e9)],
)
def test_the_measured_bandwidth_counts_where_no_operator_is_faster(
    gigabytes_per_second: float, source: str, peak: float
) -> None:
    size = 4096
    moved = 3 * size * size * 2
    rows = _mm(("void mul()", moved / gigabytes_per_second / 1e3), size=size)
    rows[0][1] = "aten::mul"
    (row,) = rows_of(roofline(_trace(*rows, device=H200)))
    assert (row.memory_peak_source, row.peak_bytes_per_second) == (source, peak)
    assert row.memory_share == pytest.approx(gigabytes_per_second * 1e9 / peak, rel=1e-3)


def test_an_operator_in_a_cache_does_not_lift_the_measured_bandwidth() -> None:
    size = 512
    rows = _mm(("void mul()", 3 * size * size * 2 / 9000 / 1e3), size=size)
    rows[0][1] = "aten::mul"
    (row,) = rows_of(roofline(_trace(*rows, device=H200)))
    assert row.memory_peak_source == "measured"
    assert np.isnan(row.memory_share)
    assert "caches" in row.note


def test_unknown_work_has_a_row_with_its_reason_and_no_share() -> None:
    rows = _mm((TENSOR_CORE, 6))
    rows += [
        ["cpu_op", "aten::unique", 200, 50, {"Input Dims": [[N]], "Input type": ["float"]}],
        ["cuda_runtime", "cudaLaunchKernel", 201, 1, {"correlation": 7}],
        ["kernel", "void unique()", 300, 3, {"correlation": 7}],
        ["kernel", "of the step before", 400, 1, {"correlation": 8}],
        ["cpu_op", "aten::mul", 500, 50],
        ["cuda_runtime", "cudaLaunchKernel", 501, 1, {"correlation": 9}],
        ["kernel", "void mul()", 600, 2, {"correlation": 9}],
    ]
    product, *others = rows_of(roofline(_trace(*rows)))
    reasons = {row.name: row.note for row in others}
    assert reasons == {
        "aten::unique": NO_MODEL,
        "aten::mul": NO_SHAPES,
        None: NO_LAUNCH,
    }
    assert all(
        np.isnan([row.moved_bytes, row.flop_count, row.memory_share]).all() for row in others
    )
    assert all(row.bound is None for row in others)
    assert [row.call_count for row in others] == [1, 1, 0]
    assert product.kernel_share == product.covered_share == others[0].covered_share == 6 / 12


def test_kernels_of_a_replayed_graph_have_no_operator() -> None:
    rows = [
        ["cpu_op", "aten::mul", 0, 5, {"Input Dims": [[N]], "Input type": [BF16]}],
        ["cuda_runtime", "cudaGraphLaunch", 10, 5, {"correlation": 1}],
        ["kernel", TENSOR_CORE, 20, 4, {"correlation": 1}],
        ["kernel", "void mul()", 30, 4, {"correlation": 1}],
    ]
    (row,) = rows_of(roofline(_trace(*rows)))
    assert (row.name, row.category, row.call_count) == (None, UNOWNED, 0)
    assert (row.kernel_ns, row.note, row.covered_share) == (8000, NO_OPERATOR, 0)


def test_a_collective_is_no_traffic_of_the_devices_memory() -> None:
    rows = _mm(("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 5))
    (row,) = rows_of(roofline(_trace(*rows)))
    assert row.note == COLLECTIVE
    assert row.covered_share == 0


def test_a_call_whose_work_is_unknown_is_a_row_beside_those_that_are_known() -> None:
    rows: list[list[Any]] = []
    for n, values in enumerate((["", "[1]", "False", ""], None)):
        given = {"Input Dims": [[N, N], [], [], []], "Input type": ["float", "", "Scalar", ""]}
        given |= {} if values is None else {"Concrete Inputs": values}
        rows += [
            ["cpu_op", "aten::sum", 100 * n, 50, given],
            ["cuda_runtime", "cudaLaunchKernel", 100 * n + 1, 1, {"correlation": n}],
            ["kernel", "void reduce()", 300 + 10 * n, 4, {"correlation": n}],
        ]
    table = roofline(_trace(*rows))
    assert len(table) == 2
    assert table["moved_bytes"].notna().sum() == 1
    assert set(table["note"].dropna()) == {NO_VALUES}


def test_the_kernel_of_what_an_operator_prepares_is_the_inner_operators() -> None:
    # aten::addmm copies a bias that is a matrix into the result first
    dims = {
        "Input Dims": [[N, N], [N, N], [N, N], [], []],
        "Input type": [BF16] * 3 + ["Scalar"] * 2,
    }
    inner = {"Input Dims": [[N, N], [N, N], []], "Input type": [BF16, BF16, "Scalar"]}
    rows = [
        ["cpu_op", "aten::addmm", 0, 50, dims],
        ["cpu_op", "aten::copy_", 1, 9, inner],
        ["cuda_runtime", "cudaLaunchKernel", 2, 1, {"correlation": 0}],
        [
            "kernel",
            "void at::native::vectorized_elementwise_kernel<4>()",
            90,
            2,
            {"correlation": 0},
        ],
        ["cuda_runtime", "cudaLaunchKernel", 20, 1, {"correlation": 1}],
        ["kernel", TENSOR_CORE, 100, 4, {"correlation": 1}],
    ]
    spent = {row.name: row.kernel_ns for row in rows_of(roofline(_trace(*rows)))}
    assert spent == {"aten::addmm": 4000, "aten::copy_": 2000}


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([["cpu_op", "aten::mm", 0, 5, {"Input Dims": [[2, 2], [2, 2]]}]], "no device event"),
        ([["cpu_op", "aten::mm", 0, 5], ["kernel", "gemm", 1, 1]], "shapes were not recorded"),
    ],
)
def test_what_cannot_be_told_says_what_to_record(rows: list[Any], reason: str) -> None:
    with pytest.raises(MissingDataError, match=reason):
        roofline(trace_of(rows, deviceProperties=[{"id": 0}]))


def test_a_machine_without_a_device_has_no_roofline() -> None:
    with pytest.raises(NotApplicableError, match="a machine without a device"):
        roofline(trace_of([["cpu_op", "aten::mm", 0, 5, {"Input Dims": [[2, 2], [2, 2]]}]]))


@pytest.mark.parametrize("name", shared_trace_names("tracelens"))
def test_no_share_of_real_traces_is_above_one_and_large_products_are_plausible(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    try:
        table = roofline(trace)
    except MissingDataError:
        pytest.skip("shapes were not recorded")
    shares = table[["compute_share", "memory_share", "roofline_share"]].to_numpy()
    assert not (shares > 1).any()
    known = table["source"].notna()
    assert table.loc[known & table["note"].isna(), "roofline_share"].notna().all()
    # libraries' large products keep the units busy
    is_product = table["name"].isin(["aten::mm", "aten::addmm"])
    large = table[known & is_product & (table["flop_count"] / table["call_count"] > 2e10)]
    assert (large["compute_share"] > 0.15).all()


@pytest.mark.parametrize("name", shared_trace_names("tracelens/h100"))
def test_every_kernel_is_counted_once_with_its_nearest_operator_of_known_work(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    work, calls, events = operator_traffic(trace), trace.host_calls, trace.device_events
    kernel_ns: dict[int, int] = {}
    for event, owner in zip(rows_of(events), links(trace).owner_of_device_event, strict=True):
        call = int(owner)
        while call >= 0 and not work.is_modelled[call]:
            call = int(calls["parent"].iloc[call])
        if event.kind == Kind.KERNEL:
            kernel_ns[call] = kernel_ns.get(call, 0) + event.duration_ns
    table = roofline(trace)
    assert table["kernel_ns"].sum() == sum(kernel_ns.values())
    covered = 1 - kernel_ns.pop(-1, 0) / table["kernel_ns"].sum()
    assert table["covered_share"].iloc[0] == pytest.approx(covered)
    expected: dict[tuple[str, str], list[float]] = {}
    for call, duration_ns in kernel_ns.items():
        row = calls.iloc[call]
        sums = expected.setdefault((row["name"], row["input_dims"]), [0, 0, 0])
        sums[0] += 1
        sums[1] += duration_ns
        sums[2] += work.moved_bytes[call]
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows_of(table[table["moved_bytes"].notna()]):
        sums = found.setdefault((row.name, row.input_dims), [0, 0, 0])
        for place, number in enumerate((row.call_count, row.kernel_ns, row.moved_bytes)):
            sums[place] += number
    assert found == expected


@pytest.mark.parametrize("name", shared_trace_names())
def test_coverage_sums_to_the_kernels_of_real_traces(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    try:
        table, coverage = roofline(trace), roofline_coverage(trace)
    except (MissingDataError, NotApplicableError):
        pytest.skip("shapes were not recorded, or nothing ran on a device")
    events = trace.device_events
    kernels = events[events["kind"] == int(Kind.KERNEL)]
    assert coverage["kernel_ns"].sum() == table["kernel_ns"].sum() == kernels["duration_ns"].sum()
    for device, rows in coverage.groupby("device"):
        whole = rows["covered_ns"].sum() / rows["kernel_ns"].sum()
        assert rows["device_covered_share"].tolist() == pytest.approx([whole] * len(rows))
        assert rows["kernel_share"].sum() == pytest.approx(1)
        assert table.loc[table["device"] == device, "covered_share"].iloc[0] == pytest.approx(whole)
    is_whole = coverage["covered_ns"] == coverage["kernel_ns"]
    assert (coverage["reason"].isna() == is_whole).all()


def test_coverage_names_the_reason_of_most_of_the_time() -> None:
    rows: list[list[Any]] = _mm((TENSOR_CORE, 6))
    for n, (name, given) in enumerate(
        (
            ("aten::special_i0e", {"Input Dims": [[N]], "Input type": ["float"]}),
            ("aten::mul", {}),
            ("aten::relu", {"Input Dims": [[N]], "Input type": ["float"]}),
        ),
        start=1,
    ):
        rows += [
            ["cpu_op", name, 100 * n, 50, given],
            ["cuda_runtime", "cudaLaunchKernel", 100 * n + 1, 1, {"correlation": n}],
            ["kernel", "void at::native::kernel()", 900 + 10 * n, n + 1, {"correlation": n}],
        ]
    other, product = rows_of(roofline_coverage(_trace(*rows)))
    assert (other.category, product.category) == ("elementwise", "matrix product")
    assert (other.kernel_ns, other.covered_ns) == (9000, 4000)
    assert (other.reason, product.reason) == (NO_SHAPES, None)
    assert other.device_covered_share == product.device_covered_share == 10 / 15
    assert other.moved_bytes == 2 * 4 * N
    assert other.memory_share == pytest.approx(2 * 4 * N / 4e-6 / 3350e9)


CACHE_MIB = {"A100": 40, "H100": 50, "H200": 60, "B200": 126, "MI300X": 256}
"""The last cache's size, by the maker's white papers; of an H200 by its driver."""
MOST_OF_CACHES = 4.6
"""What the last cache delivers over what memory does: an A100's reads 5120 bytes a clock of
1.41 GHz (white paper), beside 1555 GB/s."""


REAL_TRACES = [
    *(SHARED_TRACES / name for name in shared_trace_names()),
    *sorted(SAMPLE_LOGS.glob("*_cuda/**/*.json.gz")),
]


@pytest.mark.parametrize("path", REAL_TRACES, ids=str)
def test_only_what_fits_the_last_cache_is_faster_than_the_memory(path: Path) -> None:
    try:
        table = roofline(trace_at(path))
    except (MissingDataError, NotApplicableError):
        pytest.skip("shapes were not recorded, or nothing ran on a device")
    for row in rows_of(table[table["peak_bytes_per_second"].notna()]):
        times = row.bytes_per_second / row.peak_bytes_per_second
        if times > 1:
            cache = next(size for key, size in CACHE_MIB.items() if key in row.device_name) * 2**20
            # half of the traffic, the results or the inputs, may stay in the cache
            assert row.moved_bytes / row.call_count <= 2 * cache, row
            assert times < MOST_OF_CACHES, row
            assert "caches" in row.note


@pytest.mark.parametrize("path", sorted(SAMPLE_LOGS.glob("*_cuda/**/*.json.gz")), ids=str)
def test_the_work_of_operators_on_a_gpu_is_known_or_its_reason_is_one_of_few(path: Path) -> None:
    try:
        coverage = roofline_coverage(trace_at(path))
    except MissingDataError:
        pytest.skip("shapes were not recorded")
    reasons = set(coverage["reason"].dropna())
    assert reasons <= {NO_LAUNCH, NO_OPERATOR, NO_LIST_SHAPES, PARTS}
    with_operator = coverage[coverage["category"] != UNOWNED]
    covered = with_operator["covered_ns"].sum() / with_operator["kernel_ns"].sum()
    assert covered > (0.8 if path.parent.name == "compiled" else 0.95)
