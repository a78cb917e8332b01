"""Pointwise work that follows pointwise work, on a stream or a thread."""

import pytest

from loading import trace_of
from stepscope.analyses.operators.pointwise_chains import (
    KERNEL,
    OPERATOR,
    kernel_chains,
    operator_chains,
)

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
SUM = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>"


@pytest.mark.parametrize(
    "name",
    [
        ADD,
        SUM,
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>",
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15FillFunctorIfEE",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>",
        "void at::native::elementwise_kernel_manual_unroll<128, 4>",
    ],
)
def test_torchs_loops_and_reductions_are_pointwise(name: str) -> None:
    assert KERNEL.search(name)


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::index_elementwise_kernel<128, 4>",
        "void at::native::_scatter_gather_elementwise_kernel<128, 8>",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float>",
        "multimem_all_reduce_kernel",
        "triton_poi_fused_add_mul_0",
        "ampere_sgemm_128x64_nn",
    ],
)
def test_gathers_products_and_fused_loops_are_not(name: str) -> None:
    assert not KERNEL.search(name)


@pytest.mark.parametrize("name", ["aten::mul", "aten::add_", "aten::tanh_backward", "aten::mean"])
def test_operators_that_are_loops(name: str) -> None:
    assert OPERATOR.search(name)


@pytest.mark.parametrize("name", ["aten::mm", "aten::cat", "aten::addmm", "aten::view", "mul"])
def test_operators_that_are_none(name: str) -> None:
    assert not OPERATOR.search(name)


def test_kernels_are_chained_by_stream_and_a_product_ends_a_chain() -> None:
    trace = trace_of(
        [
            ["kernel", ADD, 0, 5, {"correlation": 1}],
            ["kernel", ADD, 2, 5, {"correlation": 2, "stream": 9}],
            ["kernel", SUM, 6, 5, {"correlation": 3}],
            ["kernel", "gemm", 12, 5, {"correlation": 4}],
            ["kernel", ADD, 18, 5, {"correlation": 5}],
            ["kernel", "gemm", 24, 5, {"correlation": 6}],
        ]
    )
    found, starts = kernel_chains(trace), trace.device_events["start_ns"].to_numpy()
    assert dict(zip(starts[found.rows].tolist(), found.chain.tolist(), strict=True)) == {
        0: 0,
        6_000: 0,
        18_000: -1,
        2_000: -1,
    }
    assert found.count == 1
    assert starts[found.fusable].tolist() == [6_000]  # of equals the first is the longest


def test_on_the_host_views_do_not_end_a_chain_and_wrappers_are_not_counted_twice() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::mul", 0, 5],
            ["cpu_op", "aten::view", 6, 1],
            ["cpu_op", "aten::mean", 8, 10],
            ["cpu_op", "aten::sum", 9, 5],
            ["cpu_op", "aten::tanh", 18, 1],
            ["cpu_op", "aten::linear", 20, 20],
            ["cpu_op", "aten::addmm", 22, 10],
            ["cpu_op", "aten::add", 41, 5],
        ]
    )
    found = operator_chains(trace)
    names = trace.host_calls["name"].astype(str).to_numpy()
    assert names[found.rows].tolist() == ["aten::mul", "aten::mean", "aten::tanh", "aten::add"]
    assert found.chain.tolist() == [0, 0, 0, -1]


def test_what_an_optimizer_does_has_fused_versions_of_its_own() -> None:
    trace = trace_of(
        [
            ["user_annotation", "Optimizer.step#SGD.step", 0, 50],
            ["cpu_op", "aten::add_", 5, 10],
            ["cpu_op", "aten::add_", 20, 10],
        ]
    )
    assert not len(operator_chains(trace).rows)


def test_nothing_is_chained_where_nothing_ran() -> None:
    found = operator_chains(trace_of([["user_annotation", "a", 0, 1]]))
    assert (found.count, len(found.chained)) == (0, 0)
