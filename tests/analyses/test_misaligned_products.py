"""Which sizes of products keep matrix units from loading whole rows."""

import pytest

from loading import trace_of
from stepscope.analyses.operators.misaligned_products import (
    MisalignedProducts,
    misaligned_products,
)

HALF = "c10::Half"
ALIGN1 = "cutlass_80_tensorop_f16_s16816gemm_f16_128x128_64x3_nn_align1"


def found(name: str, dims: object, *, strides: object = None, kernel: str = "h") -> str:
    return str(answer(name, dims, strides, kernel).sizes[0])


def answer(name: str, dims: object, strides: object, kernel: str) -> MisalignedProducts:
    given = {"Input Dims": dims, "Input type": [HALF, HALF, HALF]}
    if strides is not None:
        given["Input Strides"] = strides
    trace = trace_of(
        [
            ["cpu_op", name, 0, 50, given],
            ["cuda_runtime", "cudaLaunchKernel", 10, 5, {"correlation": 1}],
            ["kernel", kernel, 20, 400, {"correlation": 1}],
        ]
    )
    return misaligned_products(trace)


@pytest.mark.parametrize(
    ("dims", "sizes"),
    [
        ([[64, 64], [64, 64]], ""),
        ([[64, 2798], [2798, 64]], "K 2798 → 2800"),
        ([[64, 64], [64, 30522]], "N 30522 → 30528"),
        ([[63, 64], [64, 64]], ""),  # rows of the left one lie behind each other
        ([[64, 63], [63, 1]], ""),
        ([[64], [64]], ""),
        ([], ""),
    ],
)
def test_rows_are_what_must_fit(dims: list[list[int]], sizes: str) -> None:
    assert found("aten::mm", dims) == sizes


def test_the_first_input_of_addmm_is_no_operand() -> None:
    assert found("aten::addmm", [[63], [64, 64], [64, 64]]) == ""
    assert found("aten::addmm", [[64], [64, 63], [63, 64]]) == "K 63 → 64"


def test_a_transposed_operand_has_the_other_dimension_for_rows() -> None:
    dims = [[64, 63], [63, 64]]
    assert found("aten::mm", dims, strides=[[1, 64], [64, 1]]) == ""
    assert found("aten::mm", [[63, 64], [64, 64]], strides=[[1, 63], [64, 1]]) == "M 63 → 64"


def test_rows_may_be_apart() -> None:
    dims = [[64, 64], [64, 64]]
    assert found("aten::mm", dims, strides=[[65, 1], [64, 1]]) == "rows of K apart 65 → 72"
    assert found("aten::mm", dims, strides=[[130, 2], [64, 1]]) == ""


def test_a_name_that_tells_is_believed_before_the_shapes() -> None:
    by_name = answer("aten::mm", [[64, 64], [64, 64]], None, ALIGN1)
    assert (by_name.by_name.tolist(), by_name.by_shape.tolist()) == ([True], [False])
    aligned = answer("aten::mm", [[64, 63], [63, 64]], None, ALIGN1.replace("align1", "align8"))
    assert aligned.is_misaligned.tolist() == [False]
