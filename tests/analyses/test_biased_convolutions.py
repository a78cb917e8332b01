"""Convolutions whose bias a batch norm subtracts, and the device work of that bias."""

from typing import Any

from loading import trace_of
from stepscope.analyses.operators.biased_convolutions import bias_kernels, biased_convolutions

BIASED = {"Input type": ["float", "float", "float"], "Input Dims": [[1], [1], [1]]}
UNBIASED = {"Input type": ["float", "float", ""], "Input Dims": [[1], [1], []]}


def norm(start: int, *, trains: bool = True) -> list[Any]:
    return ["cpu_op", "aten::batch_norm", start, 5, {"Concrete Inputs": [""] * 5 + [str(trains)]}]


def starts(rows: list[list[Any]]) -> tuple[list[int], list[int]]:
    trace = trace_of(rows)
    found, start = biased_convolutions(trace), trace.host_calls["start_ns"].to_numpy()
    return start[found.followed].tolist(), start[found.biased].tolist()


def test_the_count_of_batches_may_stand_between() -> None:
    rows = [
        ["cpu_op", "aten::conv2d", 0, 5, BIASED],
        ["cpu_op", "aten::add_", 6, 2],
        norm(10),
        ["cpu_op", "aten::conv1d", 20, 5, UNBIASED],
        norm(30),
    ]
    assert starts(rows) == ([0, 20_000], [0])


def test_a_norm_elsewhere_or_in_evaluation_or_behind_another_operator_takes_no_bias() -> None:
    rows = [
        ["cpu_op", "aten::conv2d", 0, 5, BIASED],
        ["user_annotation", "head", 10, 10],
        norm(12),
        ["cpu_op", "aten::conv2d", 30, 5, BIASED],
        ["cpu_op", "aten::relu", 36, 2],
        norm(40),
        ["cpu_op", "aten::conv2d", 50, 5, BIASED],
        norm(60, trains=False),
    ]
    assert starts(rows) == ([], [])


def test_another_thread_is_elsewhere() -> None:
    aside = [*norm(10)[:4], {**norm(10)[4], "tid": 7}]
    assert starts([["cpu_op", "aten::conv2d", 0, 5, BIASED], aside]) == ([], [])


def test_the_work_of_a_bias_is_what_adds_it_and_what_sums_its_gradient() -> None:
    forward, backward = {**BIASED, "Sequence number": 3}, {"Sequence number": 3}
    trace = trace_of(
        [
            ["cpu_op", "aten::conv2d", 0, 20, forward],
            ["cpu_op", "aten::add_", 5, 10],
            ["cuda_runtime", "cudaLaunchKernel", 6, 2, {"correlation": 1}],
            ["kernel", "add", 10, 5, {"correlation": 1}],
            ["cpu_op", "aten::add_", 22, 5],
            ["cuda_runtime", "cudaLaunchKernel", 23, 2, {"correlation": 2}],
            ["kernel", "another_add", 26, 5, {"correlation": 2}],
            norm(30),
            ["cpu_op", "ConvolutionBackward0", 40, 20, backward],
            ["cpu_op", "aten::sum", 42, 10],
            ["cuda_runtime", "cudaLaunchKernel", 43, 2, {"correlation": 3}],
            ["kernel", "sum", 50, 5, {"correlation": 3}],
        ]
    )
    rows = bias_kernels(trace, biased_convolutions(trace).biased)
    assert trace.device_events["name"].astype(str).to_numpy()[rows].tolist() == ["add", "sum"]
