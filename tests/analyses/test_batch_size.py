"""The batch size from the first layer's shapes, and when not to trust it."""

from typing import Any

import pytest

from loading import trace_of
from stepscope.analyses.core.batch_size import BatchSize, batch_size, token_count

WEIGHT = [8, 3, 3, 3]


def step(number: int) -> list[Any]:
    return ["user_annotation", f"ProfilerStep#{number}", number * 100, 100]


def op(name: str, start: int, dims: object, **more: Any) -> list[Any]:
    return ["cpu_op", name, start, 10, {"Input Dims": dims, **more}]


def size_of(*rows: list[Any]) -> tuple[int, bool] | None:
    found = batch_size(trace_of([step(0), *rows]))
    return (found.size, found.is_certain) if found else None


@pytest.mark.parametrize(
    ("name", "dims", "expected"),
    [
        ("aten::conv1d", [[16, 3, 8], [8, 3, 3]], (16, True)),
        ("aten::conv2d", [[32, 3, 8, 8], WEIGHT], (32, True)),
        ("aten::conv3d", [[4, 3, 8, 8, 8], [8, 3, 3, 3, 3]], (4, True)),
        ("aten::conv2d", [[3, 8, 8], WEIGHT], None),  # an image without a batch
        ("aten::embedding", [[50000, 512], [8, 1024]], (8, True)),
        ("aten::embedding", [[50000, 512], [8]], None),  # tokens in a row
        ("aten::linear", [[16, 128, 512], [512, 512]], (16, True)),
        ("aten::linear", [[5, 64], [64, 64]], (5, False)),  # rows may be tokens
        ("aten::linear", [[64], [64, 64]], None),
        ("aten::matmul", [[1, 32, 1], [1, 1, 8]], None),  # a rotary table, heads in the batch
        ("aten::bmm", [[96, 8, 8], [96, 8, 8]], None),
        ("aten::mm", [[7, 8], [8, 8]], None),
        ("aten::conv2d", [], None),
        ("aten::conv2d", [[]], None),
        ("aten::conv2d", [None, WEIGHT], None),
        ("aten::conv2d", "nonsense", None),
    ],
)
def test_the_first_dimension_of_a_layers_input(
    name: str, dims: object, expected: tuple[int, bool] | None
) -> None:
    assert size_of(op(name, 10, dims)) == expected


def test_the_first_layer_of_a_step_counts() -> None:
    embedding = op("aten::embedding", 10, [[50000, 512], [8, 1024]])
    linear = op("aten::linear", 30, [[4096, 512, 2], [512, 2]])
    assert size_of(embedding, linear) == (8, True)


def test_most_steps_decide_and_any_other_size_casts_doubt() -> None:
    rows = [step(n) for n in range(3)] + [
        op("aten::conv2d", n * 100 + 10, [[size, 3, 8, 8], WEIGHT])
        for n, size in enumerate((32, 32, 20))
    ]
    assert batch_size(trace_of(rows)) == BatchSize(
        size=32,
        operator="aten::conv2d",
        dims="[[32,3,8,8],[8,3,3,3]]",
        is_certain=False,
        step_count=3,
    )


def test_layers_outside_steps_and_on_other_threads_do_not_count() -> None:
    before = op("aten::conv2d", -50, [[99, 3, 8, 8], WEIGHT])
    backward = op("aten::conv2d", 5, [[98, 3, 8, 8], WEIGHT], tid=7)
    forward = op("aten::conv2d", 10, [[32, 3, 8, 8], WEIGHT])
    assert size_of(before, backward, forward) == (32, True)


def test_without_steps_the_first_layer_of_all_counts() -> None:
    rows = [op("aten::conv2d", n * 10, [[32 + n, 3, 8, 8], WEIGHT]) for n in range(3)]
    found = batch_size(trace_of(rows))
    assert found is not None
    assert (found.size, found.step_count) == (32, 1)


def test_the_format_of_2021_says_input_dims() -> None:
    old = ["Operator", "aten::conv2d", 10, 10, {"Input dims": [[32, 3, 8, 8], WEIGHT]}]
    assert size_of(old) == (32, True)


def test_nothing_tells_where_shapes_or_layers_are_missing() -> None:
    assert size_of(["cpu_op", "aten::conv2d", 10, 10]) is None
    assert size_of(["cuda_runtime", "cudaGraphLaunch", 10, 10]) is None
    assert batch_size(trace_of([["overhead", "Buffer Flush", 5, 1]])) is None


@pytest.mark.parametrize("dims", [0, [], [[4]], [[4], 5], [[4], [4, "a"]], {"a": 1}, "x"])
def test_shapes_that_are_none_count_no_tokens_and_no_samples(dims: object) -> None:
    ids = [[512, 64], [16, 32]]
    damaged = [step(0), op("aten::embedding", 10, dims)]
    assert token_count(trace_of(damaged)) is None
    assert batch_size(trace_of(damaged)) is None
    assert token_count(trace_of([*damaged, step(1), op("aten::embedding", 110, ids)])) == 16 * 32
