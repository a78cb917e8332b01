"""Operators of replayed graphs, from the recording of the capture: a pair whose truth is known."""

import random
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracebuild
from loading import SHARED_TRACES, rows_of, trace_at, trace_of
from stepscope.analyses.compiled.graph_operators import graph_kernels, graph_operators
from stepscope.analyses.operators.graph_captures import graph_part

pytestmark = pytest.mark.frames

BF16 = "c10::BFloat16"
LAYER = (
    # operator, kernels, shapes
    ("aten::mm", ("gemm", "splitk_reduce"), [[8, 64], [64, 64]]),
    ("aten::mul", ("elementwise",), [[8, 64], [8, 64]]),
    ("aten::mm", ("gemm_wide",), [[8, 64], [64, 256]]),
)
LAYERS = 4
TRUTH = [operator for _ in range(LAYERS) for operator, kernels, _ in LAYER for _ in kernels]
NAMES = [kernel for _ in range(LAYERS) for _, kernels, _ in LAYER for kernel in kernels]


def capture(*, has_names: bool, batch: int = 8, begin: int = 0) -> list[tracebuild.Row]:
    """The host's calls while a graph is captured; nothing runs on the device."""
    at = begin + 10
    rows: list[tracebuild.Row] = [["cuda_runtime", "cudaStreamBeginCapture", begin + 5, 1]]
    for _ in range(LAYERS):
        for operator, kernels, dims in LAYER:
            shapes = [[batch, *dims[0][1:]], dims[1]]
            more = {"Input Dims": shapes, "Input type": [BF16, BF16]}
            rows.append(["cpu_op", operator, at, 10, more])
            for number, kernel in enumerate(kernels):
                called: dict[str, Any] = {"kernel": kernel} if has_names else {}
                rows.append(["cuda_runtime", "cudaLaunchKernel", at + 2 + 3 * number, 1, called])
            at += 20
    return [*rows, ["cuda_runtime", "cudaStreamEndCapture", at, 1]]


def replays(
    names: list[str], *, count: int = 2, has_ids: bool = False, order: list[int] | None = None
) -> list[tracebuild.Row]:
    """Replays of a graph, whose nodes run in `order`, each in 4 µs of 5."""
    rows: list[tracebuild.Row] = []
    for replay in range(count):
        begin = 10_000 * (replay + 1)
        shared = {"correlation": 100 + replay}
        rows.append(["cuda_runtime", "cudaGraphLaunch", begin, 5, shared])
        for place, index in enumerate(order or range(len(names))):
            ids = {"graph id": 7, "graph node id": 1000 + index} if has_ids else {}
            started = begin + 20 + 5 * place
            rows.append(["kernel", names[index], started, 4, {**shared, **ids}])
    return rows


def part(*rows: tracebuild.Row) -> Any:
    return graph_part(trace_of(rows))


@pytest.mark.parametrize("is_one_trace", [True, False])
@pytest.mark.parametrize("has_names", [True, False])
def test_each_kernel_has_the_operator_of_its_launch(*, has_names: bool, is_one_trace: bool) -> None:
    captured, replayed = capture(has_names=has_names), replays(NAMES)
    together = [part(*captured, *replayed)]
    parts = together if is_one_trace else [part(*captured), part(*replayed)]
    kernels = graph_kernels(parts)
    assert list(kernels["operator"]) == TRUTH
    assert set(kernels["matched_by"]) == {"names" if has_names else "order"}
    assert list(kernels["total_ns"]) == [8_000] * len(NAMES)
    operators = rows_of(graph_operators(parts))
    assert [(row.operator, row.call_count, row.kernel_count) for row in operators] == [
        ("aten::mm", 4, 8),
        ("aten::mm", 4, 4),
        ("aten::mul", 4, 4),
    ]
    products = operators[0]
    assert products.flop_count == 2 * LAYERS * 2 * 8 * 64 * 64
    assert products.flops_per_second == products.flop_count / (products.total_ns / 1e9)
    assert sum(row.graph_share for row in operators) == pytest.approx(1)


@given(st.randoms(use_true_random=False))
def test_node_ids_give_the_order_whatever_streams_did(shuffled: random.Random) -> None:
    order = list(range(len(NAMES)))
    shuffled.shuffle(order)
    parts = [part(*capture(has_names=False), *replays(NAMES, has_ids=True, order=order))]
    assert list(graph_kernels(parts)["operator"]) == TRUTH


def test_captures_of_several_batch_sizes_agree_on_operators_and_not_on_shapes() -> None:
    captures = [*capture(has_names=False), *capture(has_names=False, batch=16, begin=1000)]
    kernels = graph_kernels([part(*captures, *replays(NAMES))])
    assert list(kernels["operator"]) == TRUTH
    assert kernels["input_dims"].isna().all()
    assert set(kernels["capture_count"]) == {2}
    assert pd.isna(graph_operators([part(*captures, *replays(NAMES))])["flop_count"]).all()


def of_grid(rows: list[tracebuild.Row], batch: int) -> list[tracebuild.Row]:
    """The same rows, whose kernels have a block for each row of a batch."""
    return [
        [*row[:4], {**row[4], "grid": [batch, 1, 1], "block": [64, 1, 1]}]
        if row[0] == "kernel"
        else row
        for row in rows
    ]


def warm_up(batch: int, begin: int) -> list[tracebuild.Row]:
    """The operators of the capture, called before it, so that their kernels run."""
    rows: list[tracebuild.Row] = []
    for number, row in enumerate(capture(has_names=False, batch=batch, begin=begin)[1:-1]):
        shared = {"correlation": 1_000 + begin + number}
        is_launch = row[0] == "cuda_runtime"
        rows.append([*row[:4], shared] if is_launch else row)
        if is_launch:
            name = NAMES[sum(of[0] == "kernel" for of in rows)]
            rows.append(["kernel", name, row[2] + 1, 0.5, shared])
    return of_grid(rows, batch)


def test_grids_of_a_warm_up_decide_between_captures_of_several_batch_sizes() -> None:
    captures = [*capture(has_names=False), *capture(has_names=False, batch=16, begin=1000)]
    warmed = [*warm_up(8, 2000), *warm_up(16, 3000)]
    replayed = of_grid(replays(NAMES), 16)
    [first, *_] = graph_kernels([part(*captures, *warmed, *replayed)])["input_dims"]
    assert first == "[[16,64],[64,64]]"
    # the warm-up shows that it is not the capture of batch 8, and not which it is
    kernels = graph_kernels([part(*capture(has_names=False), *warm_up(8, 2000), *replayed)])
    assert list(kernels["operator"]) == TRUTH
    assert kernels["input_dims"].isna().all()


@pytest.mark.parametrize(
    ("blocks", "shapes"),
    [
        (4, "[[2048],[2048]]"),
        (3, "[[3,500],[3,1]]"),  # broadcast to 1,500 elements
        (2, None),
    ],
)
def test_grids_of_elementwise_kernels_fit_the_sizes_of_operands(
    blocks: int, shapes: str | None
) -> None:
    name = "void at::native::elementwise_kernel<128, 4, f(int)::{lambda(int)#1}>(int, f)"
    captures = [
        row
        for begin, dims in ((0, [[2048], [2048]]), (1000, [[3, 500], [3, 1]]))
        for row in [
            ["cuda_runtime", "cudaStreamBeginCapture", begin + 5, 1],
            ["cpu_op", "aten::mul", begin + 10, 10, {"Input Dims": dims}],
            ["cuda_runtime", "cudaLaunchKernel", begin + 12, 1],
            ["cpu_op", "aten::mul", begin + 30, 10, {"Input Dims": dims}],
            ["cuda_runtime", "cudaLaunchKernel", begin + 32, 1],
            ["cuda_runtime", "cudaStreamEndCapture", begin + 50, 1],
        ]
    ]
    launched = {"grid": [blocks, 1, 1], "block": [128, 1, 1]}
    replayed = [
        [*row[:4], {**row[4], **launched}] if row[0] == "kernel" else row
        for row in replays([name, name])
    ]
    kernels = graph_kernels([part(*captures, *replayed)])
    assert set(kernels["input_dims"]) == {shapes}
    assert set(kernels["operator"]) == {"aten::mul"}


def test_kernels_that_were_replaced_are_left_out_and_the_others_are_not_shifted() -> None:
    names = [*NAMES[:3], "fused", *NAMES[3:]]
    parts = [part(*capture(has_names=True), *replays(names))]
    kernels = graph_kernels(parts)
    assert list(kernels["operator"]) == [*TRUTH[:3], None, *TRUTH[3:]]
    assert list(kernels["matched_by"])[3] is None
    assert set(kernels["matched_by"].dropna()) == {"occurrences"}
    [rest] = [row for row in rows_of(graph_operators(parts)) if row.operator is None]
    assert (rest.kernel_count, rest.total_ns) == (1, 8_000)


@pytest.mark.parametrize(
    "replayed",
    [
        NAMES[:-1],  # a node less, and nothing to tell which
        [*NAMES, "gemm"],
    ],
)
def test_another_graph_is_not_matched_without_names(replayed: list[str]) -> None:
    kernels = graph_kernels([part(*capture(has_names=False), *replays(replayed))])
    assert kernels["operator"].isna().all()
    assert set(kernels["capture_count"]) == {0}


def test_a_graph_with_as_many_other_kernels_is_not_matched() -> None:
    others = [f"kernel{number}" for number in range(len(NAMES))]
    kernels = graph_kernels([part(*capture(has_names=False), *replays(others))])
    assert kernels["operator"].isna().all()


def captured(*calls: tuple[str, list[Any], int]) -> list[tracebuild.Row]:
    """A capture of operators, their shapes, and how many kernels `k0`, `k1` … each launches."""
    rows: list[tracebuild.Row] = [["cuda_runtime", "hipStreamBeginCapture", 0, 1]]
    number = 0
    for index, (operator, dims, kernel_count) in enumerate(calls):
        at = 100 * (index + 1)
        rows.append(["cpu_op", operator, at, 90, {"Input Dims": dims, "Input type": [BF16] * 2}])
        for _ in range(kernel_count):
            called = {"kernel": f"k{number}"}
            rows.append(["cuda_runtime", "hipLaunchKernel", at + 50 + number, 1, called])
            number += 1
    return [*rows, ["cuda_runtime", "hipStreamEndCapture", 10_000, 1]]


def test_what_a_product_calls_does_none_of_its_work() -> None:
    rows = captured(("aten::mm", [[8, 64], [64, 64]], 2))
    nested = [["cpu_op", "aten::copy_", 149, 1.5], *rows]
    table = graph_operators([part(*nested, *replays(["k0", "k1"]))])
    work = dict(zip(table["operator"], table["flop_count"], strict=True))
    assert pd.isna(work["aten::copy_"])


def test_the_rate_of_a_call_is_unknown_where_not_all_of_its_kernels_are_matched() -> None:
    rows = captured(("aten::mm", [[8, 64], [64, 64]], 2), ("aten::mul", [[8], [8]], 1))
    table = graph_operators([part(*rows, *replays(["k0", "other", "other", "k2"]))])
    assert list(table.loc[table["operator"] == "aten::mm", "kernel_count"]) == [1]
    assert table["flop_count"].isna().all()


def test_an_equal_number_of_nodes_is_no_proof_without_names() -> None:
    rows: list[tracebuild.Row] = [
        ["cuda_runtime", "cudaStreamBeginCapture", 5, 1],
        ["cpu_op", "aten::mul", 10, 10],
        ["cuda_runtime", "cudaLaunchKernel", 12, 1],
        ["cuda_runtime", "cudaStreamEndCapture", 30, 1],
    ]
    assert graph_kernels([part(*rows, *replays(["gemm"]))])["operator"].isna().all()


def test_replays_that_ran_in_another_order_are_not_summed_by_position() -> None:
    swapped = replays(["short", "long"], count=1)
    both = replays(["long", "short"], count=1)
    later = [[*row[:2], row[2] + 10_000, *row[3:]] for row in swapped]
    for row in later:
        row[4] = {**row[4], "correlation": 200, "graph id": 7}
    first = [[*row[:4], {**row[4], "graph id": 7}] for row in both]
    kernels = graph_kernels([part(*first, *later)])
    assert kernels[["full_name", "replay_count"]].to_numpy().tolist() == [["long", 1], ["short", 1]]


def test_nodes_that_ran_at_once_have_no_order_without_ids() -> None:
    rows = replays(NAMES)
    overlapping = [[*row[:3], 9, *row[4:]] if row[0] == "kernel" else row for row in rows]
    kernels = graph_kernels([part(*capture(has_names=False), *overlapping)])
    assert kernels["operator"].isna().all()


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz", 544),
        ("tracelens/inference/vllm_decode_full/graph_execution.json.gz", 421),
    ],
)
def test_real_replays_without_a_capture_say_that_none_matches(name: str, count: int) -> None:
    kernels = graph_kernels([graph_part(trace_at(SHARED_TRACES / name))])
    assert len(kernels) == count
    assert kernels["matched_by"].isna().all()


def test_a_real_replay_is_matched_with_a_capture_of_its_kernels() -> None:
    """vLLM's decode, with a capture that has its kernels' names and made-up operators."""
    path = SHARED_TRACES / "tracelens/inference/vllm_decode_full/graph_execution.json.gz"
    replayed = graph_part(trace_at(path))
    [graph] = replayed.graphs
    rows: list[tracebuild.Row] = [["cuda_runtime", "hipStreamBeginCapture", 0, 1]]
    for number, (kind, name) in enumerate(zip(graph.kind, graph.name, strict=True)):
        call = "hipLaunchKernel" if kind == 4 else "hipMemcpyAsync"
        rows.append(["cpu_op", f"op{number}", 10 + 10 * number, 8])
        rows.append(["cuda_runtime", call, 12 + 10 * number, 2, {"kernel": name}])
    rows.append(["cuda_runtime", "hipStreamEndCapture", 10 + 10 * len(graph.kind), 1])
    kernels = graph_kernels([replayed, part(*rows)])
    assert list(kernels["operator"]) == [f"op{number}" for number in range(len(graph.kind))]
    assert set(kernels["matched_by"]) == {"names"}
