"""Tensors that grow by concatenation: a few calls, the whole answer."""

from itertools import pairwise
from typing import Any

import loading
import tracebuild
from stepscope.analyses.operators.growing_concatenations import (
    GrowingConcatenations,
    growing_concatenations,
)

Shape = list[int]


def grown(*calls: tuple[Any, ...]) -> GrowingConcatenations:
    """Return the growing tensors of calls: the shapes of a list, and the dimension; or a row."""
    rows = []
    for index, call in enumerate(calls):
        name, dims, *more = (
            call if isinstance(call[0], str) else ("aten::cat", [call[0], []], call[1])
        )
        arguments = {} if not more or more[0] is None else {"Concrete Inputs": ["", str(more[0])]}
        rows.append(["cpu_op", name, 10 * index, 5, {"Input Dims": dims, **arguments}])
    return growing_concatenations(loading.trace_of(document=tracebuild.document(rows=rows)))


def appended(start: int, count: int, dim: int | None = 1, new: int = 1) -> list[tuple[Any, ...]]:
    return [([[2, start + at * new, 8], [2, new, 8]], dim) for at in range(count)]


def test_successive_calls_on_one_tensor() -> None:
    found = grown(*appended(5, 4))
    assert found.rows.tolist() == [0, 1, 2, 3]
    assert found.shapes == ((2, 9, 8),)
    assert found.dimensions == (1,)
    assert found.old_size.tolist() == [5, 6, 7, 8]
    assert found.new_size.tolist() == [1, 1, 1, 1]
    assert found.old_share == 26 / 30


def test_three_calls_are_too_few() -> None:
    found = grown(*appended(5, 3))
    assert found.tensor_count == 0
    assert found.old_share == 0.0


def test_keys_and_values_of_two_layers_are_four_tensors() -> None:
    calls = [call for call in appended(5, 4) for _ in range(4)]
    found = grown(*calls)
    assert found.tensor_count == 4
    assert found.tensor.tolist() == [0, 1, 2, 3] * 4


def test_the_dimension_may_be_negative_or_follow_from_the_shapes() -> None:
    for dim in (1, -2, None):
        assert grown(*appended(5, 4, dim)).dimensions == (1,)


def test_a_dimension_that_does_not_exist_or_does_not_follow_counts_not() -> None:
    assert not grown(*appended(5, 4, 3)).tensor_count
    assert not grown(*appended(5, 4, -4)).tensor_count
    assert not grown(*appended(5, 4, 0)).tensor_count
    assert not grown(*[([[2, 4, 8], [2, 4, 8]], None)] * 4).tensor_count


def test_equal_sizes_in_each_call_are_no_growth() -> None:
    assert not grown(*[([[2, 5, 8], [2, 1, 8]], 1)] * 6).tensor_count


def test_a_window_of_constant_length_is_no_growth() -> None:
    assert not grown(*[([[2, 5, 8], [2, 3, 8]], 1)] * 6).tensor_count


def test_each_output_is_taken_once() -> None:
    """Beams that start from one prompt: one goes on, the other does not."""
    found = grown(*appended(5, 4), ([[2, 6, 8], [2, 1, 8]], 1), ([[2, 7, 8], [2, 1, 8]], 1))
    assert found.rows.tolist() == [0, 1, 2, 3]


def test_the_new_part_may_come_first_and_of_several_tensors() -> None:
    calls = [([[3, 8], [7 + 5 * at, 8], [2, 8]], 0) for at in range(4)]
    found = grown(*calls)
    assert found.shapes == ((27, 8),)
    assert found.new_size.tolist() == [5, 5, 5, 5]


def test_an_empty_first_tensor_is_left_out() -> None:
    """`results = torch.empty(0, 8)` before the loop."""
    calls = [([[32 * at, 8], [32, 8]], 0) for at in range(6)]
    assert grown(*calls).rows.tolist() == [1, 2, 3, 4, 5]


def test_parts_of_different_sizes_are_no_growth_of_one_kind() -> None:
    sizes = [5, 6, 8, 9, 11]
    calls = [([[2, old, 8], [2, new - old, 8]], 1) for old, new in pairwise(sizes)]
    assert not grown(*calls).tensor_count


def dense(layer: str, sizes: list[Shape]) -> list[tuple[Any, ...]]:
    return [(layer, [one, [1]]) for one in sizes]


def test_channels_that_layers_take_are_features() -> None:
    calls = [([[2, 64 + 32 * at, 4, 4], [2, 32, 4, 4]], 1) for at in range(4)]
    sizes = [[2, 96 + 32 * at, 4, 4] for at in range(4)]
    assert grown(*calls).tensor_count == 1
    assert not grown(*calls, *dense("aten::conv2d", sizes)).tensor_count
    assert not grown(*calls, *dense("aten::batch_norm", sizes[:2])).tensor_count
    assert grown(*calls, *dense("aten::batch_norm", sizes[:1])).tensor_count == 1
    assert grown(*calls, *dense("aten::linear", sizes)).tensor_count == 1


def test_features_that_linear_layers_take() -> None:
    calls = [([[2, 64 + 32 * at], [2, 32]], 1) for at in range(4)]
    sizes = [[2, 96 + 32 * at] for at in range(4)]
    assert grown(*calls).tensor_count == 1
    assert not grown(*calls, *dense("aten::linear", sizes)).tensor_count
    second = [("aten::addmm", [[1], one, [1]]) for one in sizes]
    assert not grown(*calls, *second).tensor_count
    assert grown(*calls, *dense("aten::conv1d", sizes)).tensor_count == 1


def test_a_cache_that_a_projection_reads_is_no_feature() -> None:
    calls = appended(5, 4)
    sizes = [[2, 6 + at, 8] for at in range(4)]
    assert grown(*calls, *dense("aten::linear", sizes)).tensor_count == 1
    assert not grown(*calls, *dense("aten::conv1d", sizes)).tensor_count


def test_damaged_shapes_count_not() -> None:
    shapes: list[list[Any]] = [[], [5], [[5, [2]], []], [[[], []], []]]
    damaged = [("aten::cat", dims, 1) for dims in shapes]
    assert not grown(*damaged).tensor_count
