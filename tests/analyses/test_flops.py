"""The work of operators, from what is recorded of their inputs."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loading import trace_at, trace_of
from stepscope.analyses.operators.flops import nearest_with_work, operator_work
from stepscope.analyses.operators.operator_traffic import operator_traffic
from stepscope.analyses.operators.work_formulas import FORMULAS
from stepscope.model.trace import Trace

NAN = float("nan")


def _call(name: str, dims: Any, types: Any = None, values: Any = None, at: int = 0) -> list[Any]:
    arguments = {"Input Dims": dims, "Input type": types, "Concrete Inputs": values}
    given = {key: value for key, value in arguments.items() if value is not None}
    return ["cpu_op", name, at, 10, given]


def _work(name: str, *inputs: Any) -> tuple[float, float, str | None]:
    """One operator's operations, bytes and type."""
    trace = trace_of([_call(name, *inputs)])
    work, moved = operator_work(trace), operator_traffic(trace).moved_bytes
    return float(work.flops[0]), float(moved[0]), _text(work.data_type[0])


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _is_same(found: tuple[Any, ...], wanted: tuple[Any, ...]) -> bool:
    return all(
        a == b or (isinstance(b, float) and math.isnan(a) and math.isnan(b))
        for a, b in zip(found, wanted, strict=True)
    )


BF16, FP8, FP4 = "c10::BFloat16", "c10::Float8_e4m3fn", "c10::Float4_e2m1fn_x2"
WORK: dict[str, tuple[tuple[Any, ...], tuple[float, float, str | None]]] = {
    "aten::mm": (([[2, 3], [3, 5]], ["float", "float"]), (60, 4 * (6 + 15 + 10), "float32")),
    "aten::addmm": (
        ([[5], [2, 3], [3, 5], [], []], ["float", BF16, BF16, "Scalar", "Scalar"]),
        (60, 4 * 5 + 2 * (6 + 15 + 10), "bfloat16"),
    ),
    "aten::bmm": (([[7, 2, 3], [7, 3, 5]], ["float", "float"]), (420, 4 * 7 * 31, "float32")),
    "aten::mul": (([[4, 5], [5]], [BF16, BF16]), (20, 2 * (20 + 5 + 20), "bfloat16")),
    "aten::add": (([[], [6]], ["long int", BF16]), (1, 8 + 2 * (6 + 6), "bfloat16")),
    "aten::_scaled_mm": (
        (
            [[16, 32], [32, 16], [], [], [], [], [], []],
            [FP8, FP8, "float", "float", "", "", "Scalar", "Scalar"],
            ["", "", "", "", "", "", "15", "False"],
        ),
        (2 * 16 * 32 * 16, 512 + 512 + 4 + 4 + 2 * 256, "float8_e4m3fn"),
    ),
    # eight rows in all, parted among three experts, each with its own matrix
    "aten::_grouped_mm": (
        ([[8, 4], [3, 4, 5], [3]], [BF16, BF16, "int"]),
        (2 * 8 * 4 * 5, 2 * (32 + 60 + 40) + 12, "bfloat16"),
    ),
    "aten::_scaled_mm_v2": (  # two 4-bit numbers in each element: 64 products a result
        (
            [[16, 32], [32, 16], [[16, 4]], [], [], [[16, 4]], [], [], [], [], [], []],
            [FP4, FP4, "TensorList", "", "", "TensorList", "", "", "", "Scalar", "", "Scalar"],
            ["", "", "", "[4]", "[1]", "", "[4]", "[1]", "", "15", "[]", "False"],
        ),
        (2 * 16 * 64 * 16, 512 + 512 + 2 * 256, "float4_e2m1fn_x2"),
    ),
    "aten::_scaled_grouped_mm": (
        (
            [[8, 4], [3, 4, 5], [8], [3, 5], [3], [], [], [], []],
            [FP8, FP8, "float", "float", "int", "", "", "", "Scalar"],
        ),
        (2 * 8 * 4 * 5, 32 + 60 + 4 * (8 + 15 + 3) + 2 * 40, "float8_e4m3fn"),
    ),
    "aten::_scaled_grouped_mm_v2": (  # the inner dimension is parted: a product for each group
        (
            [[8, 4], [4, 5], [[8]], [], [], [[5]], [], [], [3], [], [], [], []],
            [FP8, FP8, "TensorList", "", "", "TensorList", "", "", "int", "", "Scalar", "", ""],
            ["", "", "", "", "", "", "", "", "", "", "6", "[]", "False"],
        ),
        (2 * 8 * 4 * 5, 32 + 20 + 12 + 4 * 3 * 40, "float8_e4m3fn"),
    ),
    "aten::_scaled_dot_product_flash_attention": (
        ([[2, 4, 16, 8], [2, 2, 32, 8], [2, 2, 32, 8]], [BF16] * 3),  # two queries' heads a key's
        (4 * 2 * 4 * 16 * 32 * 8, 2 * (1024 + 1024 + 1024 + 1024), "bfloat16"),
    ),
    "aten::_flash_attention_forward": (
        ([[2, 16, 4, 8], [2, 32, 2, 8], [2, 32, 2, 8], [], []], [BF16] * 3 + ["", ""]),
        (4 * 2 * 4 * 16 * 32 * 8, 2 * 4096, "bfloat16"),
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_work_follows_from_shapes_and_types(name: str) -> None:
    inputs, wanted = WORK[name]
    assert _is_same(_work(name, *inputs), wanted)


UNKNOWN: dict[str, tuple[str, tuple[Any, ...]]] = {
    "no shapes": ("aten::mm", ([], ["float", "float"])),
    "shapes that do not fit": ("aten::mm", ([[2, 3], [4, 5]], ["float", "float"])),
    "no shape but text": ("aten::mm", (["x", {"y": 1}], ["float", "float"])),
    "negative sizes": ("aten::mm", ([[-2, 3], [3, 5]], ["float", "float"])),
    "a stride of nothing": (
        "aten::conv2d",
        ([[1, 3, 8, 8], [4, 3, 3, 3]], ["float"] * 2, ["", "", "", "[0, 0]", "[1, 1]", "[1, 1]"]),
    ),
    "values that were not recorded": ("aten::conv2d", ([[1, 3, 8, 8], [4, 3, 3, 3]],)),
    "packed sequences, whose lengths are not recorded": (
        "aten::_flash_attention_forward",
        ([[40, 4, 8], [40, 4, 8], [40, 4, 8], [3], [3]], [BF16] * 3 + ["int", "int"]),
    ),
    "an operator without a formula": ("aten::softmax", ([[2, 3]], ["float"])),
    "more than a float holds": ("aten::mul", ([[10**18] * 20], ["float"])),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_the_inputs_do_not_tell_is_unknown(case: str) -> None:
    name, inputs = UNKNOWN[case]
    assert math.isnan(_work(name, *inputs)[0])


def test_operations_are_known_where_types_are_not_and_bytes_then_are_not() -> None:
    assert _is_same(_work("aten::mm", [[2, 3], [3, 5]]), (60, NAN, None))


def test_a_result_that_is_written_into_out_counts_once() -> None:
    sides = [[8192, 9728], [9728, 2432], [8192, 2432]]
    moved_bytes = 235.125 * 2**20
    assert _work("aten::mm", sides[:2], [BF16] * 2)[1] == moved_bytes
    assert _work("aten::mm", sides, [BF16] * 3)[1] == moved_bytes


@pytest.mark.parametrize("seed", range(200))
def test_a_product_reads_its_operands_and_writes_its_result(seed: int) -> None:
    m, k, n, batch = (int(size) for size in np.random.default_rng(seed).integers(1, 400, 4))
    out = [[m, n]] if seed % 2 else []
    of_out = ["float"] if seed % 2 else []
    both = 4 * (m * k + k * n + m * n)
    assert _work("aten::mm", [[m, k], [k, n], *out], ["float"] * 2 + of_out)[1] == both
    bias = ([[n], [m, k], [k, n], [], [], *out], ["float"] * 3 + ["Scalar"] * 2 + of_out)
    assert _work("aten::addmm", *bias)[1] == both + 4 * n
    batches = [[batch, *sizes] for sizes in ([m, k], [k, n], *out)]
    assert _work("aten::bmm", batches, ["float"] * 2 + of_out)[1] == batch * both


@pytest.mark.recording
def test_torch_records_out_as_the_last_argument(torch: Any, tmp_path: Path) -> None:
    a, b, c, d = (torch.ones(*sizes) for sizes in ((3, 4), (4, 5), (3, 5), (5, 5)))
    with torch.profiler.profile(record_shapes=True) as recording:
        torch.mm(a, b, out=c)
        torch.addmm(d[0], a, b, out=c)
        torch.bmm(a[None], b[None], out=c[None])
        torch.add(c, c, out=c)
    recording.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = trace_at(tmp_path / "trace.json")
    moved = dict(
        zip(trace.host_calls["name"], operator_traffic(trace).moved_bytes.tolist(), strict=True)
    )
    product_bytes = 4 * (12 + 20 + 15)
    assert moved["aten::mm"] == moved["aten::bmm"] == product_bytes
    assert moved["aten::addmm"] == product_bytes + 4 * 5
    assert moved["aten::add"] == 4 * 3 * 15


def test_a_scalar_is_no_tensor_of_no_dimensions() -> None:
    assert _work("aten::mul", [[], [4]], ["float", "float"])[0] == 1
    assert math.isnan(_work("aten::mul", [[], [4]], ["Scalar", "float"])[0])


def _nested(*calls: tuple[str, Any, Any]) -> Trace:
    """Calls each of which makes the next."""
    count = len(calls)
    return trace_of(
        [
            ["cpu_op", name, at, 2 * (count - at), {"Input Dims": dims, "Input type": types}]
            for at, (name, dims, types) in enumerate(calls)
        ]
    )


TWO = ["float", "float"]


def test_of_operators_that_call_each_other_the_innermost_counts() -> None:
    trace = _nested(
        ("aten::linear", [[4, 3], [5, 3]], TWO),
        ("aten::matmul", [[4, 3], [3, 5]], TWO),
        ("aten::mm", [[4, 3], [3, 5]], TWO),
        ("aten::mul", [[2], [2]], TWO),  # elementwise work displaces none
    )
    work = operator_work(trace)
    assert np.array_equal(work.flops, [NAN, NAN, 120, 2], equal_nan=True)
    sources = [_text(source) for source in work.source]
    assert sources == [None, None, "torch with_flops", "torch with_flops"]


def test_a_composite_that_launches_itself_counts() -> None:
    assert _work("aten::linear", [[2, 4, 3], [5, 3]], TWO)[0] == 2 * 8 * 3 * 5
    assert _work("aten::matmul", [[7, 1, 2, 3], [4, 3, 5]], TWO)[0] == 2 * 7 * 4 * 2 * 3 * 5


def test_a_kernel_does_the_work_of_the_nearest_call_whose_work_is_known() -> None:
    trace = _nested(
        ("aten::linear", [], []),
        ("aten::mm", [[4, 3], [3, 5]], TWO),
        ("aten::copy_", [[4, 3], [4, 3]], TWO),
    )
    assert nearest_with_work(trace, np.array([2, 1, 0, -1])).tolist() == [1, 1, -1, -1]


def test_a_recording_without_operators_has_no_work() -> None:
    assert len(operator_work(trace_of([["kernel", "gemm", 0, 5]])).flops) == 0


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def _convolutions(torch: Any) -> None:
    functions = torch.nn.functional

    def grown(*sizes: int) -> Any:
        return torch.randn(*sizes, requires_grad=True)

    results = [
        functions.conv1d(grown(2, 3, 9), grown(4, 3, 2), stride=2, padding=1),
        functions.conv2d(grown(2, 3, 9, 8), grown(4, 3, 2, 3), dilation=2, padding=(2, 1)),
        functions.conv3d(grown(2, 3, 5, 6, 7), grown(4, 3, 2, 2, 2)),
        functions.conv_transpose2d(grown(2, 3, 9, 9), grown(3, 4, 2, 2), stride=2),
        functions.conv2d(torch.randn(2, 3, 9, 8), grown(4, 3, 2, 3)),  # one gradient
    ]
    sum(result.sum() for result in results).backward()


def _products(torch: Any) -> None:
    functions = torch.nn.functional
    a = torch.randn(2, 3, 4, requires_grad=True)
    b = torch.randn(2, 4, 5, requires_grad=True)
    functions.linear(a, torch.randn(6, 4, requires_grad=True), torch.randn(6)).sum().backward()
    torch.einsum("bij,bjk->bik", a, b).sum().backward()
    torch.baddbmm(torch.randn(5), a, b)
    torch.addmm(torch.randn(4), torch.randn(2, 3), torch.randn(3, 4))


def _attention(torch: Any) -> None:
    q = torch.randn(2, 4, 16, 8, requires_grad=True)
    k = torch.randn(2, 4, 24, 8, requires_grad=True)
    torch.nn.functional.scaled_dot_product_attention(q, k, k).sum().backward()


def _recorded_flops(torch: Any, body: Any, path: Path) -> float:
    """Operations of all products that a trace of the body tells."""
    with torch.profiler.profile(record_shapes=True) as recording:
        body(torch)
    recording.export_chrome_trace(str(path))
    trace = trace_at(path)
    is_product = ~trace.host_calls["name"].isin(["aten::mul", "aten::add"]).to_numpy()
    return float(np.nansum(operator_work(trace).flops[is_product]))


@pytest.mark.recording
@pytest.mark.parametrize("body", [_convolutions, _products])
def test_all_work_together_is_what_torch_counts_while_it_runs(
    torch: Any, body: Any, tmp_path: Path
) -> None:
    counter = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode(display=False)
    with counter:
        body(torch)
    found = _recorded_flops(torch, body, tmp_path / "trace.json")
    assert found == counter.get_total_flops() > 0


@pytest.mark.recording
def test_attention_is_counted_by_the_counters_formulas(torch: Any, tmp_path: Path) -> None:
    # the counter itself has none for the CPU's kernel, which these shapes use
    counts = pytest.importorskip("torch.utils.flop_counter")
    q, k = (2, 4, 16, 8), (2, 4, 24, 8)
    wanted = counts.sdpa_flop_count(q, k, k) + counts.sdpa_backward_flop_count(q, q, k, k)
    assert _recorded_flops(torch, _attention, tmp_path / "trace.json") == wanted


@pytest.mark.recording
@pytest.mark.parametrize("is_causal", [True, False])
def test_causal_attention_has_half_the_work_beside_the_full_count(
    torch: Any, tmp_path: Path, *, is_causal: bool
) -> None:
    q = torch.randn(2, 4, 16, 8, requires_grad=True)
    with torch.profiler.profile(record_shapes=True) as recording:
        attend = torch.nn.functional.scaled_dot_product_attention
        attend(q, q, q, is_causal=is_causal).sum().backward()
    recording.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = trace_at(tmp_path / "trace.json")
    work = operator_work(trace)
    is_attention = trace.host_calls["name"].str.contains("_flash_attention_for_cpu").to_numpy()
    full, causal = work.flops[is_attention], work.causal_flops[is_attention]
    assert len(full) == 2
    assert causal.tolist() == (full / (2 if is_causal else 1)).tolist()


@pytest.mark.recording
def test_the_causal_argument_is_the_one_of_torchs_schema(torch: Any) -> None:
    for name, formula in FORMULAS.items():
        if formula.causal_argument is not None:
            for schema in torch._C._jit_get_schemas_for_operator(name):  # noqa: SLF001
                if not schema.overload_name:
                    argument = schema.arguments[formula.causal_argument]
                    assert argument.name in {"is_causal", "custom_mask_type"}, name


@pytest.mark.recording
def test_a_grouped_convolutions_gradients_cost_what_its_forward_did(
    torch: Any, tmp_path: Path
) -> None:
    # torch.utils.flop_counter multiplies all channels of the input with all of the output for the
    # weight's gradient: four times as much here as there is to do
    def body(torch: Any) -> None:
        x, weight = torch.randn(2, 8, 6, 6), torch.randn(8, 2, 3, 3)
        x.requires_grad = weight.requires_grad = True
        torch.nn.functional.conv2d(x, weight, groups=4).sum().backward()

    forward = 2 * 2 * (4 * 4) * (3 * 3) * 2 * 8
    assert _recorded_flops(torch, body, tmp_path / "trace.json") == 3 * forward
    counter = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode(display=False)
    with counter:
        body(torch)
    assert counter.get_total_flops() == (1 + 1 + 4) * forward


def test_types_are_read_of_what_the_profiler_writes() -> None:
    written = json.dumps(["", "TensorList", "c10::Half"])
    trace = trace_of([["cpu_op", "aten::cat", 0, 10, {"Input type": json.loads(written)}]])
    assert _text(operator_work(trace).data_type[0]) == "float16"
