"""Products by broadcasting: which operators make one, by names, shapes, strides and arguments."""

from typing import Any

import pytest

import loading
from stepscope.analyses.operators.broadcast_products import BroadcastProducts, broadcast_products

LEFT, RIGHT, RESULT = [64, 1, 128], [1, 32, 128], [64, 32, 128]
LAST = ["", "[-1]", "False", ""]
NORM = ["", "2", "[-1]", "False", ""]
Operator = tuple[str, list[Any], list[str]]


def sum_over(dimensions: str, shape: list[int] = RESULT) -> Operator:
    return ("aten::sum", [shape, [], [], []], ["", dimensions, "False", ""])


SUM = sum_over("[-1]")
SUB: Operator = ("aten::sub", [LEFT, RIGHT, []], ["", "", "1"])
MUL: Operator = ("aten::mul", [LEFT, RIGHT], ["", ""])


def products_of(*operators: Operator, more: dict[str, Any] | None = None) -> BroadcastProducts:
    """Return the products of operators that follow each other; `more` belongs to the first."""
    rows = []
    for index, (name, dims, arguments) in enumerate(operators):
        written: dict[str, Any] = {"Input Dims": dims}
        if arguments:
            written["Concrete Inputs"] = arguments
        if not index and more:
            written |= more
        rows.append(["cpu_op", name, 10 * index, 8, written])
    return broadcast_products(loading.trace_of(rows))


def scaled(name: str, *others: list[int]) -> Operator:
    return (name, [RESULT, *others], [""] * (1 + len(others)))


@pytest.mark.parametrize(
    ("operators", "kind"),
    [
        ((MUL, SUM), "dot product"),
        ((MUL, ("aten::mean", [RESULT, [], [], []], LAST)), "dot product"),
        ((MUL, scaled("aten::div", []), scaled("aten::neg"), SUM), "dot product"),
        ((MUL, ("aten::to", [RESULT, []], ["", ""]), SUM), "dot product"),
        ((MUL, ("aten::mm", [[8, 8], [8, 8]], []), SUM), "dot product"),
        ((("aten::mul", [LEFT, [32, 128]], []), SUM), "dot product"),
        ((SUB, scaled("aten::pow", []), SUM), "distance"),
        ((SUB, scaled("aten::mul", RESULT), SUM), "distance"),
        ((SUB, scaled("aten::abs"), SUM), "distance"),
        (
            (SUB, scaled("aten::add", [], []), ("aten::norm", [RESULT, [], [], []], NORM)),
            "distance",
        ),
        ((SUB, ("aten::linalg_vector_norm", [RESULT, [], [], [], []], NORM)), "distance"),
        ((SUB, ("aten::linalg_norm", [RESULT, [], [], [], []], NORM)), "distance"),
        ((("aten::mse_loss", [LEFT, RIGHT, []], ["", "", "0"]), SUM), "distance"),
    ],
)
def test_a_sum_over_what_both_operands_have_is_a_product(
    operators: tuple[Operator, ...], kind: str
) -> None:
    products = products_of(*operators)
    assert products.kinds == (kind,)
    assert products.shapes == ("[64, 1, 128] × [1, 32, 128]",)
    assert products.elements.tolist() == [64 * 32 * 128]
    assert products.extension.tolist() == [32]
    assert products.width.tolist() == [128]
    assert products.rows[-1] == len(operators) - 1


@pytest.mark.parametrize(
    "operators",
    [
        (MUL,),
        (MUL, sum_over("[0]")),
        (MUL, sum_over("[0, 2]")),
        (MUL, sum_over("")),
        (MUL, ("aten::sum", [RESULT, []], ["", ""])),
        (MUL, sum_over("[-1]", [64, 4096])),
        (MUL, sum_over("[-1]", [32, 64, 128]), SUM),
        (MUL, scaled("aten::mul", RESULT), SUM),
        (MUL, scaled("aten::abs"), SUM),
        (MUL, ("aten::linalg_vector_norm", [RESULT, [], [], [], []], NORM)),
        (SUB, scaled("aten::exp"), SUM),
        (SUB, scaled("aten::add", RESULT), SUM),
        (("aten::add", [LEFT, RIGHT, []], []), SUM),
        (("aten::mul", [RESULT, RIGHT], []), SUM),
        (("aten::mul", [RESULT, []], []), SUM),
        (("aten::mul", [[64, 1], [1, 32]], []), sum_over("[-1]", [64, 32])),
        (("aten::mul", [[3, 1, 5], [2, 4, 5]], []), SUM),
    ],
)
def test_other_operators_make_none(operators: tuple[Operator, ...]) -> None:
    assert products_of(*operators).kinds == ()


def test_without_arguments_the_last_dimension_is_summed() -> None:
    mul: Operator = ("aten::mul", [LEFT, RIGHT], [])
    dims: list[Any] = [RESULT, [], [], []]
    assert products_of(mul, ("aten::sum", dims, [])).width.tolist() == [128]
    assert products_of(mul, ("aten::sum", dims[:1], [])).kinds == ()


def test_several_dimensions_are_summed() -> None:
    operands = [[8, 4, 1, 6, 5], [8, 1, 7, 6, 5]]
    products = products_of(("aten::mul", operands, []), sum_over("[-1, -2]", [8, 4, 7, 6, 5]))
    assert (products.width.tolist(), products.extension.tolist()) == ([30], [4])


def test_dimensions_of_stride_zero_are_not_in_memory() -> None:
    expanded: Operator = ("aten::sub", [RESULT, RESULT, []], [])
    strides = {"Input Strides": [[128, 0, 1], [0, 128, 1], []]}
    products = products_of(expanded, scaled("aten::pow", []), SUM, more=strides)
    assert products.shapes == ("[64, 1, 128] × [1, 32, 128]",)
    in_memory = {"Input Strides": [[4096, 128, 1], [4096, 128, 1], []]}
    assert products_of(expanded, scaled("aten::pow", []), SUM, more=in_memory).kinds == ()
    assert products_of(expanded, scaled("aten::pow", []), SUM).kinds == ()


@pytest.mark.parametrize(("dimension", "kinds"), [("-1", 1), ("2", 1), ("1", 0), ("0", 0)])
def test_a_cosine_similarity_is_one_where_both_have_its_dimension(
    dimension: str, kinds: int
) -> None:
    call: Operator = ("aten::cosine_similarity", [LEFT, RIGHT, [], []], ["", "", dimension, "1e-8"])
    assert products_of(call).kinds == ("cosine similarity",) * kinds


def test_parts_of_an_operator_are_not_counted_again() -> None:
    rows = [
        ["cpu_op", "aten::cosine_similarity", 0, 90, {"Input Dims": [LEFT, RIGHT, [], []]}],
        ["cpu_op", "aten::mul", 10, 20, {"Input Dims": [LEFT, RIGHT]}],
        ["cpu_op", "aten::sum", 40, 20, {"Input Dims": [RESULT, [], [], []]}],
        ["cpu_op", "aten::sub", 100, 20, {"Input Dims": [LEFT, RIGHT, []]}],
        ["cpu_op", "aten::pow", 130, 20, {"Input Dims": [RESULT, []]}],
        ["cpu_op", "aten::exp", 135, 10, {"Input Dims": [RESULT]}],
        ["cpu_op", "aten::sum", 160, 20, {"Input Dims": [RESULT, [], [], []]}],
    ]
    products = broadcast_products(loading.trace_of(rows))
    assert products.kinds == ("cosine similarity", "distance")
    assert products.rows.tolist() == [0, 3, 4, 6]
    assert products.product.tolist() == [0, 1, 1, 1]
    second = products.selected(products.first == 3)
    assert (second.kinds, second.rows.tolist()) == (("distance",), [3, 4, 6])
    assert second.product.tolist() == [0, 0, 0]


def test_operators_of_another_thread_are_no_part() -> None:
    rows = [
        ["cpu_op", "aten::mul", 0, 8, {"Input Dims": [LEFT, RIGHT]}],
        ["cpu_op", "aten::exp", 10, 8, {"Input Dims": [RESULT], "tid": 7}],
        ["cpu_op", "aten::sum", 20, 8, {"Input Dims": [RESULT, [], [], []], "tid": 7}],
    ]
    assert broadcast_products(loading.trace_of(rows)).kinds == ()
    rows.append(["cpu_op", "aten::sum", 30, 8, {"Input Dims": [RESULT, [], [], []]}])
    assert broadcast_products(loading.trace_of(rows)).rows.tolist() == [0, 3]


@pytest.mark.parametrize("dims", ["nonsense", [["x", 1, 2], [1, 2, 2]], [[-1, 1, 8], [1, 8, 8]], 3])
def test_damaged_shapes_make_none(dims: object) -> None:
    rows = [
        ["cpu_op", "aten::mul", 0, 8, {"Input Dims": dims, "Concrete Inputs": 4}],
        ["cpu_op", "aten::sum", 20, 8, {"Input Dims": dims, "Concrete Inputs": ["", "[9e99]"]}],
    ]
    assert broadcast_products(loading.trace_of(rows)).kinds == ()
