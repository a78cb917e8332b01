"""Operators by category: names, and times that sum to the whole."""

from collections import defaultdict

import pytest

import tracebuild
from loading import SHARED_TRACES, shared_trace_names, trace_at, trace_of
from stepscope.analyses.core.links import links
from stepscope.analyses.operators.operator_categories import (
    UNOWNED,
    category_of,
    operator_categories,
)
from stepscope.analyses.operators.operator_table import operator_table
from stepscope.dialects import Kind

pytestmark = pytest.mark.frames


@pytest.mark.parametrize(
    ("names", "category"),
    [
        ("aten::mm aten::addmm aten::_scaled_mm aten::linear aten::_grouped_mm", "matrix product"),
        (
            "aten::_flash_attention_forward aten::_scaled_dot_product_efficient_attention_backward"
            " vllm::unified_attention flash_attn::_flash_attn_varlen_forward",
            "attention",
        ),
        ("aten::cudnn_convolution aten::convolution_backward aten::conv2d", "convolution"),
        ("aten::native_layer_norm aten::cudnn_batch_norm_backward _C::rms_norm", "normalization"),
        ("aten::_log_softmax_backward_data aten::nll_loss_forward", "softmax and loss"),
        ("aten::max_pool2d_with_indices aten::upsample_bilinear2d", "pooling and interpolation"),
        ("aten::embedding_dense_backward aten::index_put_ aten::gather", "embedding and indexing"),
        ("aten::_foreach_add_ aten::_fused_adamw_", "optimizer"),
        ("aten::sum aten::linalg_vector_norm aten::argmax", "reduction"),
        ("aten::copy_ aten::_to_copy aten::cat aten::_local_scalar_dense", "copy and cast"),
        ("aten::zero_ aten::normal_ aten::native_dropout", "fill and random"),
        ("aten::view aten::empty_strided aten::transpose", "view and allocation"),
        (
            "aten::_foreach_copy_ aten::split_with_sizes_copy fsdp::split_with_sizes_copy"
            " aten::narrow_copy aten::tril_",
            "copy and cast",
        ),
        ("AddmmBackward MmBackward", "autograd node"),
        ("aten::masked_fill_", "fill and random"),
        ("mylib::small_gather", "other operators"),
        ("aten::add_ aten::gelu_backward aten::threshold_backward", "elementwise"),
        ("c10d::allreduce_ record_param_comms _c10d_functional::wait_tensor", "communication"),
        ("autograd::engine::evaluate_function: MmBackward0 MmBackward0", "autograd engine"),
        ("triton_poi_fused_add_0 CompiledFunction CompiledFunctionBackward", "compiled"),
        ("fbgemm::permute_2D_sparse_data", "embedding and indexing"),
        ("fb::convex_sum mylib::fancy", "other operators"),
    ],
)
def test_the_category_follows_from_the_name(names: str, category: str) -> None:
    separated = names.replace("evaluate_function: ", "evaluate_function:").split()
    assert {name: category_of(name) for name in separated} == dict.fromkeys(separated, category)


def test_device_work_without_an_operator_goes_by_what_it_is() -> None:
    rows: list[tracebuild.Row] = [
        ["cpu_op", "aten::mm", 0, 10],
        ["cuda_runtime", "cudaLaunchKernel", 2, 2, {"correlation": 1}],
        ["kernel", "gemm", 20, 30, {"correlation": 1}],
        ["kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 60, 5, {"correlation": 2}],
        ["gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 70, 3, {"correlation": 3}],
        ["kernel", "somebodys", 80, 2, {"correlation": 4}],
    ]
    table = operator_categories(trace_of(rows))
    assert table[["category", "device_self_ns", "device_share"]].to_numpy().tolist() == [
        ["matrix product", 30_000, 0.75],
        ["communication", 5_000, 0.125],
        ["copy", 3_000, 0.075],
        [UNOWNED, 2_000, 0.05],
    ]


@pytest.mark.parametrize("name", shared_trace_names())
def test_categories_sum_to_the_operators_and_to_all_device_work(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    table, operators = operator_categories(trace), operator_table(trace)
    operators = operators[operators["kind"] == "operator"]
    assert table["host_self_ns"].sum() == operators["host_self_ns"].sum()
    assert table["call_count"].sum() == trace.host_calls["is_operator"].sum()
    assert table["device_self_ns"].sum() == trace.device_events["duration_ns"].sum()
    assert table["device_event_count"].sum() == len(trace.device_events)
    slow: dict[str, int] = defaultdict(int)
    events, names = trace.device_events, trace.host_calls["name"].astype(object).tolist()
    for row, owner in enumerate(links(trace).owner_of_device_event.tolist()):
        kind = events["kind"].iloc[row]
        other = {int(Kind.COPY): "copy", int(Kind.MEMORY_SET): "memory set"}.get(kind, UNOWNED)
        category = category_of(str(names[owner])) if owner >= 0 else other
        category = "communication" if events["is_collective"].iloc[row] else category
        slow[category] += int(events["duration_ns"].iloc[row])
    timed = table[table["device_self_ns"] > 0]
    assert dict(zip(timed["category"], timed["device_self_ns"], strict=True)) == {
        category: total for category, total in slow.items() if total
    }
