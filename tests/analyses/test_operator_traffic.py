"""Bytes and operations of operators: by laws of shapes, and against what torch really holds."""

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loading import trace_at, trace_of
from stepscope.analyses.core.device_specs import all_specs
from stepscope.analyses.operators.elementwise_traffic import (
    ELEMENTWISE,
    PROMOTED,
    Elementwise,
    list_types,
)
from stepscope.analyses.operators.gather_traffic import INDICES
from stepscope.analyses.operators.operator_traffic import operator_traffic, work_of
from stepscope.analyses.operators.traffic_formulas import PARTS, ROUTED, TRAFFIC
from stepscope.analyses.operators.work_formulas import EXPERTS, PACKED, PAGED
from stepscope.analyses.operators.work_inputs import (
    MOST_LISTED,
    NO_LIST_SHAPES,
    NO_LIST_TYPES,
    NO_SHAPES,
    NO_TYPES,
    NO_VALUES,
    Inputs,
    stored_elements,
)

BF16 = "c10::BFloat16"
ITEM = {"float": 4, "double": 8, BF16: 2, "c10::Half": 2, "long int": 8, "int": 4, "bool": 1}


def _of(name: str, dims: Any, types: Any, values: Any = (), **given: Any) -> Any:
    return work_of(name, Inputs(dims, types, list(values), **given))


def _contiguous(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[place + 1 :]) for place in range(len(shape))]


@pytest.mark.parametrize("seed", range(200))
def test_an_elementwise_operator_reads_each_input_and_writes_the_broadcast_result(
    seed: int,
) -> None:
    random = np.random.default_rng(seed)
    full = random.integers(1, 9, random.integers(1, 5)).tolist()
    kind = str(random.choice(["float", "double", BF16, "c10::Half"]))
    shapes, strides, moved = [], [], 0
    for _ in range(2):
        way = random.integers(0, 4)
        shape = full[random.integers(0, len(full)) :] if way == 1 else list(full)
        stride = _contiguous(shape)
        held = math.prod(shape)
        if way == 2:  # a dimension of 1, which is broadcast
            shape[0], held = 1, held // shape[0]
            stride = _contiguous(shape)
        if way == 3:  # an expanded one
            held //= shape[-1]
            stride = [step // shape[-1] for step in stride[:-1]] + [0]
        shapes.append(shape)
        strides.append(stride)
        moved += held * ITEM[kind]
    elements = math.prod(np.broadcast_shapes(*map(tuple, shapes)))
    work = _of("aten::mul", shapes, [kind, kind], strides=strides)
    assert work.moved_bytes == moved + elements * ITEM[kind]
    assert work.flops == elements


def test_a_number_of_thousands_of_digits_is_no_failure() -> None:
    values = ["", f"[{'9' * 5000}]", "False", ""]
    types = ["float", "", "Scalar", ""]
    assert _of("aten::sum", [[3, 4], [], [], []], types, values).moved_bytes


def test_in_place_is_read_and_written_and_filled_is_written_only() -> None:
    side = [[6, 5], [6, 5], []]
    kinds = ["float", "float", "Scalar"]
    assert _of("aten::add", side, kinds).moved_bytes == 3 * 120
    assert _of("aten::add_", side, kinds).moved_bytes == 3 * 120
    assert _of("aten::add_", [[6, 5], [5], []], kinds).moved_bytes == 2 * 120 + 20
    assert _of("aten::fill_", [[6, 5], []], ["float", "Scalar"]).moved_bytes == 120
    assert _of("aten::copy_", side, [BF16, "float", "Scalar"]).moved_bytes == 60 + 120
    assert _of("aten::zero_", [[6, 5]], ["float"]).flops == 0


def test_out_is_written_and_not_read() -> None:
    with_out = _of("aten::add", [[6, 5], [5], [], [6, 5]], ["float", "float", "Scalar", "float"])
    assert with_out.moved_bytes == 120 + 20 + 120
    # a result of another type
    divided = _of("aten::div", [[6, 5], [6, 5], [6, 5]], ["int", "int", "float"])
    assert divided.moved_bytes == 3 * 120
    total = _of(
        "aten::mean", [[6, 5], [], [], [], []], ["float", "ScalarList", "Scalar", "", "float"]
    )
    assert total.moved_bytes == 120 + 4


def test_what_is_expanded_or_overlaps_counts_as_it_is_stored() -> None:
    assert stored_elements((4, 1000), [1, 0]) == 4
    assert stored_elements((4, 1000), [1000, 0]) == 4  # a column of a matrix, expanded
    assert stored_elements((4, 1000), None) == 4000
    assert stored_elements((10, 3), [1, 1]) == 12  # windows of three, one apart
    assert stored_elements((3, 4), [4, 1]) == 12
    assert stored_elements((0, 4), [4, 1]) == 0
    assert stored_elements((), []) == 1
    assert stored_elements((2, 2), [0, "x"]) == 4
    product = _of("aten::mm", [[4, 3], [3, 5]], ["float"] * 2, strides=[[3, 1], [1, 0]])
    assert product.moved_bytes == 4 * (12 + 3 + 20)


def test_types_are_promoted_as_torch_does() -> None:
    mixed = _of("aten::mul", [[8], [8]], [BF16, "float"])
    assert mixed.moved_bytes == 8 * (2 + 4 + 4)
    assert _of("aten::mul", [[8], []], [BF16, "double"]).moved_bytes == 8 * 2 + 8 + 8 * 2
    assert _of("aten::gt", [[8], [8]], ["float", "float"]).moved_bytes == 8 * 9
    arms = _of("aten::where", [[8], [8], []], ["bool", "float", "float"])
    assert arms.moved_bytes == 8 + 32 + 4 + 32


LISTS = [[[4, 3], [5]], [[4, 3], [5]]]


def test_lists_of_tensors_have_the_type_of_the_kernel() -> None:
    types = ["TensorList", "TensorList", "Scalar"]
    assert _of("aten::_foreach_add_", [*LISTS, []], types, list_types=("float32",)).moved_bytes == (
        3 * 4 * 17
    )
    assert _of("aten::_foreach_add", [*LISTS, []], types, list_types=(2,)).moved_bytes == 3 * 34
    copied = _of("aten::_foreach_copy_", [*LISTS, []], types, list_types=("int32", "int64"))
    assert copied.moved_bytes == 17 * (4 + 8)
    assert _of("aten::_foreach_add_", [*LISTS, []], types).note == NO_LIST_TYPES
    assert _of("aten::cat", [[], []], ["TensorList", "Scalar"]).note == NO_LIST_SHAPES


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::"
            "(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::"
            "BinaryOpListAlphaFunctor<c10::BFloat16, 2, 2, 0>, std::plus<float>, float>(…)",
            ("bfloat16",),
        ),
        (
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::"
            "(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::"
            "CopyFunctor<int, long, 2, 1, 1>, at::native::Copy<int, long> >(…)",
            ("int32", "int64"),
        ),
        (
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::"
            "(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::"
            "(anonymous namespace)::FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1,"
            " false>, float const*, double>(…)",
            ("float32",),
        ),
        (
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy_vectorized<at::native::"
            "(anonymous namespace)::OpaqueType<4u>, unsigned int, 3, 128, 1, 16, 4>(char*)",
            (4,),
        ),
        ("void CatArrayBatchedCopy<OpaqueType<(unsigned int)2>, unsigned int>", (2,)),
        (
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<long, unsigned int, 2>()",
            ("int64",),
        ),
        ("void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float> >", ()),
    ],
)
def test_types_of_lists_are_in_the_kernels_name(kernel: str, expected: tuple[Any, ...]) -> None:
    assert list_types(kernel) == expected


def test_a_list_has_the_type_of_the_kernel_that_its_operator_launched() -> None:
    kernel = "multi_tensor_apply_kernel<TensorListMetadata<1>, BinaryOpScalarFunctor<c10::Half, 1>"
    given = {"Input Dims": [[[4, 3], [5]], []], "Input type": ["TensorList", "Scalar"]}
    rows: list[list[Any]] = [
        ["cpu_op", "aten::_foreach_mul_", 0, 10, given],
        ["cuda_runtime", "cudaLaunchKernel", 1, 1, {"correlation": 1}],
        ["kernel", kernel, 20, 5, {"correlation": 1}],
    ]
    assert operator_traffic(trace_of(rows)).moved_bytes.tolist() == [2 * 2 * 17]


def test_a_fused_step_updates_parameters_and_moments_and_reads_gradients() -> None:
    one = [[4, 3], [5]]
    lists = [one, one, one, one, [], [[], []], *([[]] * 9)]
    types = ["TensorList"] * 6 + ["Scalar"] * 7 + ["", ""]
    work = _of("aten::_fused_adamw_", lists, types, list_types=("float32",))
    assert work.moved_bytes == 4 * 17 * (2 * 3 + 1) + 2 * 4
    sgd = _of("aten::_fused_sgd_", [one, one, []], ["TensorList"] * 3, list_types=("float32",))
    assert sgd.moved_bytes == 4 * 17 * (2 + 1)


UNKNOWN: dict[str, tuple[tuple[Any, ...], str]] = {
    "no shapes": (("aten::mul", [], []), NO_SHAPES),
    "no types": (("aten::mul", [[3], [3]], []), NO_TYPES),
    "no values": (("aten::sum", [[3, 4], [], [], []], ["float", "", "Scalar", ""]), NO_VALUES),
    "indices in a list": (("aten::index", [[3, 4], []], ["float", ""]), INDICES),
    "a cache": (("vllm::unified_attention_with_output", [[8, 4, 64]], [BF16]), PAGED),
    "experts": (("vllm::moe_forward", [[8, 64], [8, 4]], [BF16, BF16]), ROUTED),
    "part of a table": (("triton_poi_fused_embedding_0", [[8, 4], [2]], ["float"] * 2), PARTS),
    "shapes that do not fit": (("aten::mul", [[3], [4]], ["float"] * 2), ""),
    "an operator without a formula": (("aten::unique", [[3]], ["float"]), ""),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_is_missing_is_unknown_and_said(case: str) -> None:
    call, reason = UNKNOWN[case]
    work = _of(*call)
    assert (work.flops, work.moved_bytes) == (None, None)
    assert work.note == reason if reason else work.note


def test_packed_sequences_have_known_bytes_and_operations_where_all_are_as_long() -> None:
    side = [[48, 4, 8], [48, 4, 8], [48, 4, 8], [4], [4], [], []]
    types = [BF16] * 3 + ["int", "int", "Scalar", "Scalar"]
    name = "flash_attn::_flash_attn_varlen_forward"
    moved = 2 * 4 * 48 * 32 + 2 * 4 * 4
    full = _of(name, side, types, ["", "", "", "", "", "16", "16"])
    assert (full.flops, full.moved_bytes) == (3 * 4 * (16 * 16) * 4 * 8, moved)
    mixed = _of(name, side, types, ["", "", "", "", "", "20", "20"])
    assert (mixed.flops, mixed.moved_bytes, mixed.note) == (None, moved, PACKED)
    single = _of(name, [*side[:3], [2], [2], [], []], types)
    assert single.flops == 4 * (48 * 48) * 4 * 8
    one_each = _of(name, [[3, 4, 8], *side[1:]], types, ["", "", "", "", "", "1", "20"])
    assert one_each.flops == 4 * 48 * 4 * 8  # one query a sequence, as in decoding
    paged = _of(name, [*side, *([[]] * 8), [3, 7]], [*types, *([""] * 8), "int"])
    assert paged.note == PAGED


def test_the_gradients_that_flash_attention_is_given_are_written_once() -> None:
    side = [2, 16, 4, 8]
    dims = [side, side, side, side, side, [2, 4, 16], side, side, side]
    work = _of("flash_attn::_flash_attn_backward", dims, [BF16] * 5 + ["float"] + [BF16] * 3)
    assert work.moved_bytes == 2 * 1024 * (5 + 3) + 4 * 128


def test_experts_have_known_operations_and_unknown_bytes() -> None:
    dims = [[6, 32], [8, 2 * 16, 32], [8, 32, 16], [6, 2], [6, 2]]
    types = [BF16] * 3 + ["float", "int"]
    work = _of("vllm::inplace_fused_experts", dims, types)
    assert work.flops == 2 * (6 * 2) * (32 * 2 * 16 + 16 * 32)
    assert (work.moved_bytes, work.note) == (None, EXPERTS)


def test_rotary_embedding_turns_queries_and_keys_in_place() -> None:
    dims = [[10], [10, 4 * 64], [10, 64], [], [4096, 64], []]
    types = ["long int", BF16, BF16, "Scalar", BF16, "Scalar"]
    work = _of("_C::rotary_embedding", dims, types, ["", "", "", "64", "", "True"])
    assert work.moved_bytes == 2 * 2 * 10 * 5 * 64 + 10 * 8 + 2 * 10 * 64
    half = [*dims[:4], [4096, 32], []]  # half of each head is turned
    work = _of("_C::rotary_embedding", half, types, ["", "", "", "64", "", "True"])
    assert work.moved_bytes == 2 * 2 * 10 * 5 * 32 + 10 * 8 + 2 * 10 * 32


def test_a_cache_is_written_where_there_are_new_tokens() -> None:
    dims = [[10, 2, 64], [10, 2, 64], [9999, 16, 2, 64], [9999, 16, 2, 64], [8], []]
    types = [BF16, BF16, "unsigned char", "unsigned char", "long int", ""]
    work = _of("_C_cache_ops::reshape_and_cache_flash", dims, types)
    assert work.moved_bytes == 2 * 8 * 128 * (2 + 1) + 8 * 8


def test_kernels_of_servers_write_where_their_schemas_say() -> None:
    side = [[10, 64], [10, 64], [64], []]
    types = [BF16, BF16, BF16, "Scalar"]
    assert _of("_C::rms_norm", side, types).moved_bytes == 2 * (2 * 640 + 64)
    assert _of("_C::fused_add_rms_norm", side, types).moved_bytes == 2 * (4 * 640 + 64)
    gated = _of("_C::silu_and_mul", [[10, 64], [10, 128]], [BF16, BF16])
    assert gated.moved_bytes == 2 * 640 * 3


def test_a_compiled_kernel_moves_its_arguments_once() -> None:
    work = _of("triton_poi_fused_add_cos_sin_0", [[10, 10]] * 3 + [[]], ["float"] * 3 + ["Scalar"])
    assert (work.flops, work.moved_bytes) == (None, 1200)
    assert work.note


def test_gathers_read_what_they_pick_and_at_most_the_whole() -> None:
    picked = _of("aten::embedding", [[50000, 64], [3, 5]], ["float", "long int"])
    assert picked.moved_bytes == 15 * 8 + 2 * 15 * 64 * 4
    whole = _of("aten::embedding", [[4, 64], [3, 500]], ["float", "long int"])
    assert whole.moved_bytes == 1500 * 8 + (4 + 1500) * 64 * 4


def test_no_formula_has_more_operations_a_byte_than_the_ridge_of_any_device() -> None:
    ridge = min(spec.peaks["float32"] / spec.bytes_per_second for spec in all_specs().values())
    formulas = {formula for formula in ELEMENTWISE.values() if isinstance(formula, Elementwise)}
    # each reads and writes two bytes an element or more, and vector units compute in float32
    assert max(formula.operations for formula in formulas) / 4 < ridge


# -- against torch ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def _held(tensor: Any) -> int:
    """Bytes that a tensor really has: those of its storage, where it is expanded."""
    spread = any(
        size > 1 and not step for size, step in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return int(tensor.untyped_storage().nbytes() if spread else tensor.nbytes)


def _tensors(torch: Any, value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for item in value for one in _tensors(torch, item)] if _is_list(value) else []


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _all_bytes(torch: Any, arguments: Any, results: Any) -> int:
    """Every input once and every output once."""
    both = (*_tensors(torch, list(arguments)), *_tensors(torch, results))
    return sum(map(_held, both))


def _operator(torch: Any, overload: str) -> Any:
    name, _, form = overload.partition(".")
    return getattr(getattr(torch.ops.aten, name), form or "default")


Case = tuple[str, Sequence[Any], int | None]
"""An overload of torch.ops.aten, its arguments, and bytes where the definition has another count
than all inputs and all outputs."""


def _recorded(torch: Any, cases: Sequence[Case], path: Path) -> list[tuple[Any, int]]:
    """Each case's traffic as analysed, and as counted of real tensors."""
    counted = []
    with torch.profiler.profile(record_shapes=True) as recording:
        for number, (overload, arguments, expected) in enumerate(cases):
            operator = _operator(torch, overload)
            with torch.profiler.record_function(f"case {number}"):
                results = operator(*arguments)
            real = _all_bytes(torch, arguments, results) if expected is None else expected
            counted.append(real)
    recording.export_chrome_trace(str(path))
    trace = trace_at(path)
    calls, traffic = trace.host_calls, operator_traffic(trace)
    parents = calls["parent"].to_numpy()
    found: dict[int, int] = {}
    names = calls["name"].astype(str).tolist()
    for row, parent in enumerate(parents.tolist()):
        if parent >= 0 and names[parent].startswith("case "):
            found.setdefault(int(names[parent].split()[1]), row)
    return [
        ((names[found[number]], traffic.moved_bytes[found[number]], traffic.note[found[number]]), n)
        for number, n in enumerate(counted)
    ]


def _check(torch: Any, cases: Sequence[Case], path: Path) -> None:
    for (overload, arguments, _), (analysed, real) in zip(
        cases, _recorded(torch, cases, path), strict=True
    ):
        assert analysed[1] == real, (overload, arguments, analysed, real)


OVERLOADS = {
    "abs": 1, "neg": 1, "exp": 1, "sqrt": 1, "rsqrt": 1, "tanh": 1, "sigmoid": 1, "erf": 1,
    "relu": 1, "silu": 1, "gelu": 1, "cos": 1, "log": 1, "reciprocal": 1, "ceil": 1, "mish": 1,
    "logical_not": 1, "hardswish": 1, "softplus": 1, "leaky_relu": 1, "elu": 1, "hardtanh": 1,
    "add.Tensor": 2, "sub.Tensor": 2, "mul.Tensor": 2, "div.Tensor": 2, "maximum": 2,
    "atan2": 2, "eq.Tensor": 2, "lt.Tensor": 2, "logical_and": 2, "pow.Tensor_Tensor": 2,
    "where.self": 3, "lerp.Tensor": 3, "addcmul": 3, "addcdiv": 3, "sigmoid_backward": 2,
    "tanh_backward": 2, "silu_backward": 2, "gelu_backward": 2, "add_.Tensor": 2,
    "mul_.Tensor": 2, "exp_": 1, "sub_.Tensor": 2, "addcmul_": 3,
}  # fmt: skip
"""Elementwise operators, and how many tensors they take."""


def _random_case(torch: Any, random: np.random.Generator) -> Case:
    overload = str(random.choice(list(OVERLOADS)))
    types = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool]
    kind = types[random.integers(0, len(types))]
    full = random.integers(2, 6, random.integers(1, 4)).tolist()
    arguments = []
    for place in range(OVERLOADS[overload]):
        of = torch.bool if overload.startswith("where") and not place else kind
        is_updated = not place and overload.partition(".")[0].endswith("_")
        way = 0 if is_updated else random.integers(0, 4)
        tensor = torch.ones(full[1:] if way == 1 else full, dtype=of)
        if way == 2 and len(full) > 1:
            tensor = torch.ones([*full[:-1], 1], dtype=of).expand(full)
        if way == 3:
            tensor = torch.ones(full[::-1], dtype=of).permute(*range(len(full))[::-1])
        arguments.append(tensor)
    return overload, arguments, None


@pytest.mark.recording
@pytest.mark.parametrize("seed", range(4))
def test_elementwise_operators_move_what_their_tensors_hold(
    torch: Any, tmp_path: Path, seed: int
) -> None:
    random = np.random.default_rng(seed)
    cases: list[Case] = []
    while len(cases) < 60:
        case = _random_case(torch, random)
        with suppress(RuntimeError):  # torch has no kernel for the type
            _operator(torch, case[0])(*case[1])
            cases.append(case)
    pairs = zip(cases, _recorded(torch, cases, tmp_path / "trace.json"), strict=True)
    known = 0
    for (overload, arguments, _), (analysed, real) in pairs:
        if math.isnan(analysed[1]):  # integers become torch's default type
            assert analysed[2] == PROMOTED
            assert not arguments[-1].is_floating_point(), overload
        else:
            assert analysed[1] == real, (overload, arguments, analysed)
            known += 1
    assert known > len(cases) / 2


@pytest.mark.recording
def test_normalization_softmax_and_reductions_move_what_their_tensors_hold(
    torch: Any, tmp_path: Path
) -> None:
    x, w = torch.rand(6, 8, 16), torch.rand(16)
    mean = torch.rand(6, 8, 1)
    image, c = torch.rand(4, 6, 5, 5), torch.rand(6)
    groups = torch.rand(4, 2)
    whole = [True, True, True]
    cases: list[Case] = [
        ("native_layer_norm", (x, [16], w, w, 1e-5), None),
        ("native_layer_norm", (x, [8, 16], None, None, 1e-5), None),
        ("native_layer_norm_backward", (x, x, [16], mean, mean, w, w, whole), None),
        ("native_group_norm", (image, c, c, 4, 6, 25, 2, 1e-5), None),
        ("native_group_norm_backward", (image, image, groups, groups, c, 4, 6, 25, 2, whole), None),
        ("_softmax", (x, -1, False), None),
        ("_log_softmax", (x, 1, False), None),
        ("_softmax_backward_data", (x, x, -1, torch.float32), None),
        ("_log_softmax_backward_data", (x, x, -1, torch.float32), None),
        ("sum.dim_IntList", (x, [1]), None),
        ("sum.dim_IntList", (x, [0, -1], True), None),
        ("sum.dim_IntList", (x.to(torch.int32), [0]), None),
        ("sum.dim_IntList", (x.bfloat16(), [0], False, ), None),
        ("sum.dim_IntList", (x.expand(6, 8, 16), []), None),
        ("mean.dim", (x, [-1]), None),
        ("mean", (x,), None),
        ("amax", (x, [1, 2]), None),
        ("argmax", (x, -1), None),
        ("max.dim", (x, 1), None),
        ("min", (x,), None),
        ("any.dim", (x > 0.5, 1), None),
        ("all", (x > 0.5,), None),
        ("linalg_vector_norm", (x, 2, [1]), None),
        ("norm.Scalar", (x,), None),
        ("std.correction", (x, [1]), None),
        ("var_mean.correction", (x, [0, 1]), None),
        ("cumsum", (x, 1), None),
        ("cumsum", (x.to(torch.int32), 1), None),
        ("topk", (x, 3, 1), None),
        ("sort", (x,), None),
    ]  # fmt: skip
    _check(torch, cases, tmp_path / "trace.json")


@pytest.mark.recording
def test_batch_norm_also_reads_and_writes_its_running_statistics(
    torch: Any, tmp_path: Path
) -> None:
    image, c = torch.rand(4, 6, 5, 5), torch.rand(6)
    big, small = 4 * 600, 4 * 6
    running = [torch.rand(6), torch.rand(6)]
    gradients = (image, image, c, *running, c, c, True, 1e-5, [True, True, False])
    cases: list[Case] = [
        # weight, bias, both statistics; in training the batch's, too, and the running ones anew
        ("native_batch_norm", (image, c, c, *running, True, 0.1, 1e-5), 2 * big + 8 * small),
        ("native_batch_norm", (image, c, c, *running, False, 0.1, 1e-5), 2 * big + 4 * small),
        ("native_batch_norm_backward", gradients, 3 * big + 6 * small),
    ]
    _check(torch, cases, tmp_path / "trace.json")


@pytest.mark.recording
def test_gathers_copies_dropout_losses_and_pooling_move_what_their_tensors_hold(
    torch: Any, tmp_path: Path
) -> None:
    x, table = torch.rand(6, 8), torch.rand(500, 8)
    rows = torch.tensor([3, 1, 2])
    few = torch.tensor([[0, 1, 2], [3, 4, 5]])
    image = torch.rand(4, 6, 9, 9)
    pooled, places = torch.nn.functional.max_pool2d(image, 2, return_indices=True)
    target = torch.tensor([1, 2, 3, 0, 5, 6])
    out = torch.rand(6, 8)
    cases: list[Case] = [
        ("index_select", (table, 0, rows), 3 * 8 + 2 * (3 * 8 * 4)),
        ("embedding", (table, few), 6 * 8 + 2 * (6 * 8 * 4)),
        ("embedding_dense_backward", (torch.rand(2, 3, 8), few, 500, -1, False), None),
        ("gather", (x, 1, few), 6 * 8 + 2 * (6 * 4)),
        ("scatter_.src", (out, 1, few, torch.rand(2, 8)), 6 * 8 + 2 * (6 * 4)),
        ("scatter_add_", (out, 1, few, torch.rand(2, 8)), 6 * 8 + 3 * (6 * 4)),
        ("index_add_", (out, 0, rows, torch.rand(3, 8)), 3 * 8 + 3 * (3 * 8 * 4)),
        ("index_copy_", (out, 0, rows, torch.rand(3, 8)), 3 * 8 + 2 * (3 * 8 * 4)),
        ("copy_", (out, x.double()), 48 * (8 + 4)),
        ("copy_", (out, torch.rand(8)), 8 * 4 + 48 * 4),
        ("fill_.Scalar", (out, 1.0), 48 * 4),
        ("clone", (x,), None),
        ("clone", (torch.rand(6, 1).expand(6, 8),), None),
        ("_to_copy", (x,), None),
        ("native_dropout", (x, 0.5, True), None),
        ("native_dropout_backward", (x, x > 0.5, 2.0), None),
        ("masked_fill.Scalar", (x, x[:, :1] > 0.5, 0.0), None),
        ("nll_loss_forward", (x, target, None, 1, -100), 6 * 8 + 6 * 4 + 2 * 4),
        ("nll_loss_forward", (x, target, None, 0, -100), 6 * 8 + 6 * 4 + 6 * 4 + 4),
        ("mse_loss", (x, out, 0), None),
        ("mse_loss_backward", (torch.tensor(1.0), x, out, 1), None),
        ("max_pool2d_with_indices", (image, [3, 3], [2, 2], [1, 1]), None),
        ("max_pool2d_with_indices", (image, [2, 2], [2, 2], [0, 0], [1, 1], True), None),
        ("max_pool2d_with_indices", (image[:, :, :4], [2, 2], [2, 2], [1, 1], [1, 1], True), None),
        (
            "max_pool2d_with_indices_backward",
            (pooled, image, [2, 2], [2, 2], [0, 0], [1, 1], False, places),
            pooled.nbytes + places.nbytes + image.nbytes,
        ),
        ("avg_pool2d", (image, [3, 3], [2, 2], [1, 1], True), None),
        ("_adaptive_avg_pool2d", (image, [3, 3]), None),
        ("upsample_nearest2d", (image, [18, 18]), None),
        ("flip", (x, [0]), None),
        ("tril", (x,), None),
    ]  # fmt: skip
    _check(torch, cases, tmp_path / "trace.json")


@pytest.mark.recording
def test_operators_of_lists_move_what_the_tensors_in_them_hold(torch: Any, tmp_path: Path) -> None:
    shapes = [(4, 3), (5,), (2, 2, 2)]
    lists = [[torch.rand(*shape) for shape in shapes] for _ in range(5)]
    one, two, three, four, _ = lists
    steps = [torch.tensor(1.0) for _ in shapes]
    held = sum(tensor.nbytes for tensor in one)
    options = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8}
    calls: list[tuple[str, Callable[[], Any], int]] = [
        ("aten::_foreach_add_", lambda: torch._foreach_add_(one, two), 3 * held),
        ("aten::_foreach_add", lambda: _operator(torch, "_foreach_add.List")(one, two), 3 * held),
        ("aten::_foreach_mul_", lambda: torch._foreach_mul_(one, 2.0), 2 * held),
        ("aten::_foreach_lerp_", lambda: torch._foreach_lerp_(one, two, 0.5), 3 * held),
        ("aten::_foreach_addcdiv_", lambda: torch._foreach_addcdiv_(one, two, three), 4 * held),
        ("aten::_foreach_sqrt", lambda: _operator(torch, "_foreach_sqrt")(one), 2 * held),
        ("aten::_foreach_copy_", lambda: torch._foreach_copy_(one, two), 2 * held),
        ("aten::_foreach_zero_", lambda: torch._foreach_zero_(one), held),
        ("aten::cat", lambda: torch.cat([one[0], two[0]]), 4 * one[0].nbytes),
        (
            "aten::_fused_adamw_",
            lambda: torch._fused_adamw_(
                one, two, three, four, [], steps, amsgrad=False, maximize=False, **options
            ),
            7 * held + 3 * 4,
        ),
    ]
    with torch.profiler.profile(record_shapes=True) as recording:
        for _, call, _ in calls:
            call()
    recording.export_chrome_trace(str(tmp_path / "trace.json"))
    host = trace_at(tmp_path / "trace.json").host_calls
    for name, _, moved in calls:
        row = host[host["name"] == name].iloc[0]
        texts = (row["input_dims"], row["input_types"], row["concrete_inputs"])
        dims, types, values = map(json.loads, texts)
        inputs = Inputs(dims, types, values, list_types=("float32",))
        assert work_of(name, inputs).moved_bytes == moved, name


@pytest.mark.recording
@pytest.mark.parametrize("count", [MOST_LISTED, MOST_LISTED + 1])
def test_torch_records_the_shapes_of_short_lists(torch: Any, tmp_path: Path, count: int) -> None:
    with torch.profiler.profile(record_shapes=True) as recording:
        torch.cat([torch.ones(2)] * count)
    recording.export_chrome_trace(str(tmp_path / "trace.json"))
    calls = trace_at(tmp_path / "trace.json").host_calls
    dims = json.loads(calls.loc[calls["name"] == "aten::cat", "input_dims"].iloc[0])
    assert len(dims[0]) == (count if count == MOST_LISTED else 0)


@pytest.mark.recording
def test_arguments_are_counted_up_to_the_last_tensor_of_torchs_schemas(torch: Any) -> None:
    seen = 0
    for name, formula in ELEMENTWISE.items():
        if isinstance(formula, Elementwise):
            schemas = torch._C._jit_get_schemas_for_operator(name)  # noqa: SLF001
            last = 0
            for schema in schemas:
                for place, argument in enumerate(schema.arguments):
                    if "Tensor" in str(argument.type) and not argument.is_out:
                        last = max(last, place + 1)
            if schemas:
                assert formula.arguments == last, name
                seen += 1
    assert seen > 150


@pytest.mark.recording
def test_each_formula_is_of_an_operator_that_torch_has(torch: Any) -> None:
    lacking = [
        name
        for name in TRAFFIC
        if name.startswith("aten::")
        and "_foreach_" not in name
        and not name.endswith("_")
        and not torch._C._jit_get_schemas_for_operator(name)  # noqa: SLF001
    ]
    assert not lacking


@pytest.mark.recording
def test_operations_are_those_of_the_counter_where_it_counts(torch: Any, tmp_path: Path) -> None:
    counter: Callable[..., Any] = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode

    def body() -> None:
        layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        layer(torch.rand(2, 10, 32)).sum().backward()

    with counter(display=False) as counted:
        body()
    with torch.profiler.profile(record_shapes=True) as recording:
        body()
    recording.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = trace_at(tmp_path / "trace.json")
    traffic = operator_traffic(trace)
    products = traffic.is_product & traffic.is_modelled
    attention = trace.host_calls["name"].str.contains("flash_attention_for_cpu").to_numpy()
    flops = np.nansum(traffic.flops[products & ~attention])
    assert flops == counted.get_total_flops() > 0


def test_text_of_strides_is_read_of_the_trace() -> None:
    given = {
        "Input Dims": [[4, 100], [4, 100]],
        "Input type": ["float", "float"],
        "Input Strides": [[100, 1], [1, 0]],
    }
    trace = trace_of([["cpu_op", "aten::add", 0, 10, json.loads(json.dumps(given))]])
    assert operator_traffic(trace).moved_bytes.tolist() == [4 * (400 + 4 + 400)]
