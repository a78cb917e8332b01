"""The kernel table: grouping, weighted means, what is not known; and kernels' short names."""

from typing import Any

import numpy as np
import pytest

from loading import SHARED_TRACES, rows_of, shared_trace_names, trace_at, trace_of
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.devices.kernel_table import (
    LAUNCH_COLUMNS,
    SCHEMA,
    kernel_durations,
    kernel_table,
)
from stepscope.model.trace import Trace

US = 1000
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"


def _kernel(name: str, start: int, duration: int, **arguments: Any) -> list[Any]:
    return ["kernel", name, start, duration, arguments]


def _trace() -> Trace:
    big = {"grid": [64, 1, 1], "block": [256, 1, 1], "registers per thread": 32}
    small = {**big, "grid": [8, 1, 1]}
    return trace_of(
        [
            ["cpu_op", "aten::add", 0, 10],
            ["cpu_op", "aten::add_", 20, 10],
            *(
                ["cuda_runtime", "cudaLaunchKernel", 1 + 2 * n, 1, {"correlation": n}]
                for n in (0, 1)
            ),
            ["cuda_runtime", "cudaLaunchKernel", 22, 1, {"correlation": 2}],
            _kernel(ADD, 100, 10, correlation=0, stream=7, **big, **_fill(2.0, 80)),
            _kernel(ADD, 200, 30, correlation=1, stream=20, **small, **_fill(0.5, 40)),
            _kernel(ADD, 300, 60, correlation=2, stream=7, **big, **_fill(1.0, 0)),
            _kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 400, 100, correlation=77),
            _kernel("ampere_h1688gemm_128x128_nn", 600, 200, device=1, **_fill(3.0, 25)),
        ]
    )


def _fill(blocks: float, occupancy: int) -> dict[str, Any]:
    return {"blocks per SM": blocks, "est. achieved occupancy %": occupancy}


def test_by_name_sums_and_statistics() -> None:
    table = kernel_table(_trace()).set_index("full_name")
    add = table.loc[ADD]
    assert (add["call_count"], add["total_ns"]) == (3, 100 * US)
    assert (add["min_ns"], add["max_ns"]) == (10 * US, 60 * US)
    assert add["mean_ns"] == pytest.approx(100 * US / 3)
    assert add["p95_ns"] == pytest.approx(57 * US)
    assert add["kernel_share"] == pytest.approx(0.25)
    assert table["kernel_share"].sum() == pytest.approx(1)
    assert (add["streams"], add["devices"]) == ("7, 20", "0")


def test_the_longest_total_comes_first() -> None:
    assert list(kernel_table(_trace())["total_ns"]) == [200 * US, 100 * US, 100 * US]


def test_blocks_and_occupancy_are_weighted_by_duration_and_zeros_are_counted_apart() -> None:
    add = kernel_table(_trace()).set_index("full_name").loc[ADD]
    assert add["blocks_per_sm"] == pytest.approx((10 * 2 + 30 * 0.5 + 60 * 1) / 100)
    assert add["occupancy_share"] == pytest.approx((10 * 0.8 + 30 * 0.4) / 40)
    assert add["no_occupancy_count"] == 1


def test_what_no_kernel_reports_is_not_a_number() -> None:
    table = kernel_table(_trace()).set_index("name")
    nccl = table.loc["ncclDevKernel_AllReduce_Sum_f32_RING_LL"]
    assert np.isnan(nccl["blocks_per_sm"])
    assert np.isnan(nccl["occupancy_share"])
    assert nccl["no_occupancy_count"] == 1


def test_collectives_and_matrix_units_are_told_by_name() -> None:
    table = kernel_table(_trace()).set_index("name")
    assert table["is_collective"].to_dict() == {
        "ampere_h1688gemm_128x128_nn": False,
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL": True,
        "vectorized_elementwise_kernel<CUDAFunctor_add>": False,
    }
    assert table.loc["ampere_h1688gemm_128x128_nn", "uses_matrix_unit"] is True
    assert table.loc["vectorized_elementwise_kernel<CUDAFunctor_add>", "uses_matrix_unit"] is False


def test_kernels_of_no_known_library_tell_neither() -> None:
    table = kernel_table(trace_of([["cuda_runtime", "cudaLaunchKernel", 0, 1], _kernel("k", 5, 1)]))
    assert list(table["uses_matrix_unit"]) == [None]


def test_launch_delay_is_from_the_calls_end_to_the_kernels_start() -> None:
    add = kernel_table(_trace()).set_index("full_name").loc[ADD]
    delays = [100 - 2, 200 - 4, 300 - 23]  # the calls end at 2, 4 and 23
    assert add["launch_delay_mean_ns"] == pytest.approx(sum(delays) / 3 * US)
    assert add["launch_delay_p95_ns"] == pytest.approx(np.quantile(delays, 0.95) * US)


def test_a_kernel_that_began_before_its_call_returned_has_no_delay() -> None:
    call = ["cuda_runtime", "cudaLaunchKernel", 0, 50, {"correlation": 1}]
    (row,) = rows_of(kernel_table(trace_of([call, _kernel("k", 40, 5, correlation=1)])))
    assert row.launch_delay_mean_ns == 0


def test_kernels_of_graphs_and_of_unknown_calls_have_no_launch_delay() -> None:
    trace = trace_of(
        [
            ["cuda_runtime", "cudaGraphLaunch", 0, 5, {"correlation": 1}],
            _kernel("in_graph", 10, 5, correlation=1),
            _kernel("in_graph", 20, 5, correlation=1),
            _kernel("unlinked", 30, 5, correlation=2),
        ]
    )
    table = kernel_table(trace)
    assert table["launch_delay_mean_ns"].isna().all()
    assert table["launch_delay_p95_ns"].isna().all()


def test_triton_is_told_by_the_name_or_by_the_operator_that_launched_it() -> None:
    trace = trace_of(
        [
            ["cpu_op", "my_op", 0, 20, {"kernel_backend": "triton", "kernel_file": "x.py"}],
            ["cuda_driver", "cuLaunchKernel", 5, 5, {"correlation": 1}],
            _kernel("_fwd_kernel", 30, 5, correlation=1),
            _kernel("triton_poi_fused_add_0", 40, 5),
            _kernel("other_kernel", 50, 5),
        ]
    )
    table = kernel_table(trace).set_index("name")
    assert table["is_triton"].to_dict() == {
        "_fwd_kernel": True,
        "triton_poi_fused_add_0": True,
        "other_kernel": False,
    }


def test_matrix_units_are_none_where_the_vendor_does_not_tell() -> None:
    trace = trace_of([["xyz_runtime", "xyzLaunch", 0, 1], _kernel("hmma", 5, 1)])
    assert list(kernel_table(trace)["uses_matrix_unit"]) == [None]


def test_by_launch_tells_operators_and_grids_apart() -> None:
    table = kernel_table(_trace(), by="launch")
    adds = table[table["full_name"] == ADD]
    assert sorted(zip(adds["operator"], adds["grid"], adds["total_ns"], strict=True)) == [
        ("aten::add", "[64,1,1]", 10 * US),
        ("aten::add", "[8,1,1]", 30 * US),
        ("aten::add_", "[64,1,1]", 60 * US),
    ]
    assert set(adds["registers_per_thread"]) == {32}
    unknown = table[table["is_collective"]].iloc[0]
    assert unknown["operator"] is None
    assert unknown["grid"] is None
    assert table["total_ns"].sum() == kernel_table(_trace())["total_ns"].sum()


@pytest.mark.parametrize("by", ["name", "launch"])
def test_every_column_is_as_its_schema_says(by: Any) -> None:
    kept = [c for c in SCHEMA if by == "launch" or c.name not in LAUNCH_COLUMNS]
    for trace in (_trace(), trace_of([["cpu_op", "aten::mm", 0, 5]])):
        table = kernel_table(trace, by=by)
        assert list(table.columns) == [column.name for column in kept]
        assert {c: str(t) for c, t in table.dtypes.items()} == {c.name: c.dtype for c in kept}


@pytest.mark.parametrize(
    ("full", "expected"),
    [
        ("ampere_sgemm_128x32_nn", "ampere_sgemm_128x32_nn"),
        ("triton_poi_fused_add_relu_0", "triton_poi_fused_add_relu_0"),
        ("Cijk_Alik_Bljk_SB_MI16x16x4x1", "Cijk_Alik_Bljk_SB_MI16x16x4x1"),
        ("ncclKernel_AllReduce_RING_LL(ncclWorkElem)", "ncclKernel_AllReduce_RING_LL"),
        (ADD, "vectorized_elementwise_kernel<CUDAFunctor_add>"),
        (
            "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<"
            "at::native::BinaryFunctor<float, float, float, at::native::binary_internal::"
            "MulFunctor<float> > >(at::TensorIteratorBase&, int)::{lambda(int)#1}>(int, float)",
            "elementwise_kernel<MulFunctor>",
        ),
        (
            "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda("
            "at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(float)#1} >(int)",
            "unrolled_elementwise_kernel<direct_copy_kernel_cuda>",
        ),
        ("void (anonymous namespace)::softmax_forward<float, 9>(float*)", "softmax_forward"),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm>(cutlass_80::Params)",
            "Kernel2<cutlass_80_tensorop_f16_s16816gemm>",
        ),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float>(float*)", "splitKreduce_kernel"),
        ("void gemv2T::kernel<int, float>(int)", "gemv2T::kernel"),
        (
            "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>(int)",
            "gemvx::kernel",
        ),
        (
            "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type"
            " vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long)",
            "fused_add_rms_norm_kernel",
        ),
        (
            "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEEEEvi",
            "vectorized_elementwise_kernel<CUDAFunctor_add>",
        ),
        (
            "_ZN7cutlass6KernelINS_4conv6kernel23ImplicitGemmConvolutionILi4EEEEEvv",
            "Kernel<ImplicitGemmConvolution>",
        ),
        # Names of ROCm traces that neither itanium_demangler nor binutils' c++filt can read in full
        (
            "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_"
            "S4_S4_diiiiiiib",
            "add_rmsnorm_quant_kernel",
        ),
        (
            "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_"
            "ES3_S5_EEEEvPS3_PS4_i",
            "act_and_mul_kernel",
        ),
        (
            "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassEEEJNSM_EEEvDpT1_",
            "kentry<Rmsnorm2dFwd>",
        ),
        ("_ZN" + "9" * 5000, "_ZN" + "9" * 5000),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD"),
        ("Memcpy M2D(Memory -> Device)", "Memcpy M2D"),
        ("Memset (Device)", "Memset"),
        ("", ""),
        ("void broken<at::native::X, (", "broken"),
    ],
)
def test_short_names(full: str, expected: str) -> None:
    assert short(full) == expected


@pytest.mark.parametrize("name", [*shared_trace_names("tracelens"), *shared_trace_names("hta")])
def test_figures_are_those_of_looking_at_one_kernel_after_the_other(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    calls = {call.correlation: call for call in reversed(rows_of(trace.runtime_calls))}
    kernels: dict[str, list[Any]] = {}
    for kernel in rows_of(trace.kernels):
        kernels.setdefault(kernel.name, []).append(kernel)
    table = kernel_table(trace)
    assert sorted(table["full_name"]) == sorted(kernels)
    for row in rows_of(table):
        mine = kernels[row.full_name]
        durations = [kernel.duration_ns for kernel in mine]
        assert (row.total_ns, row.call_count) == (sum(durations), len(mine))
        assert (row.min_ns, row.max_ns) == (min(durations), max(durations))
        assert row.p95_ns == pytest.approx(np.quantile(durations, 0.95))
        assert row.streams == ", ".join(map(str, sorted({kernel.stream for kernel in mine})))
        launched = [kernel for kernel in mine if kernel.correlation in calls]
        delays = [
            max(kernel.start_ns - calls[kernel.correlation].end_ns, 0)
            for kernel in launched
            if kernel.correlation >= 0 and "GraphLaunch" not in calls[kernel.correlation].name
        ]
        mean, p95 = (np.mean(delays), np.quantile(delays, 0.95)) if delays else (np.nan, np.nan)
        assert row.launch_delay_mean_ns == pytest.approx(mean, nan_ok=True)
        assert row.launch_delay_p95_ns == pytest.approx(p95, nan_ok=True)
        told = [k for k in mine if k.occupancy_share > 0 and k.duration_ns]
        if told:
            weights = [kernel.duration_ns for kernel in told]
            shares = [kernel.occupancy_share for kernel in told]
            assert row.occupancy_share == pytest.approx(np.average(shares, weights=weights))


def test_durations_are_counted_in_classes_by_device() -> None:
    trace = trace_of(
        [
            ["kernel", "a", 0, 0.5],
            ["kernel", "a", 10, 1],
            ["kernel", "b", 20, 1.5],
            ["kernel", "b", 30, 20_000, {"device": 1}],
        ]
    )
    table = kernel_durations(trace)
    taken = table[table["kernel_count"] > 0].drop(columns="below_ns")
    assert taken.to_numpy().tolist() == [
        [0, 0, 1, 1, 500, pytest.approx(1 / 3), pytest.approx(1 / 6)],
        [0, 1_000, 2, 2, 2_500, pytest.approx(2 / 3), pytest.approx(5 / 6)],
        [1, 10_000_000, 1, 1, 20_000_000, 1, 1],
    ]
    assert list(table["below_ns"])[-1] == np.inf


@pytest.mark.parametrize("name", shared_trace_names("tracelens"))
def test_classes_of_durations_hold_every_kernel(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    table = kernel_durations(trace)
    assert table["kernel_count"].sum() == len(trace.kernels)
    assert table["total_ns"].sum() == trace.kernels["duration_ns"].sum()
    for row in rows_of(table):
        kernels = trace.kernels[trace.kernels["device"] == row.device]
        inside = kernels["duration_ns"].between(row.from_ns, row.below_ns, inclusive="left")
        assert row.kernel_count == inside.sum()
        assert row.name_count == kernels.loc[inside, "name"].nunique()


def test_time_in_the_window_is_without_the_backlog_of_earlier_steps() -> None:
    trace = trace_of(
        [
            ["user_annotation", "ProfilerStep#3", 100, 20],
            ["kernel", "gemm", 50, 150, {"correlation": 1}],  # launched before the trace
            ["cuda_runtime", "cudaLaunchKernel", 110, 5, {"correlation": 2}],
            ["kernel", "gemm", 200, 100, {"correlation": 2}],
        ]
    )
    [row] = rows_of(kernel_table(trace))
    assert (row.call_count, row.total_ns, row.window_ns) == (2, 250_000, 100_000)
