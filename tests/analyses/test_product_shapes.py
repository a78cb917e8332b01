"""The operands of a product of two matrices."""

import numpy as np
import pytest

from loading import trace_of
from stepscope.analyses.operators.product_shapes import batched, distinct, operands

ODD = ("", "[[2,3]]", "[[2],[3]]", '[["a","b"],[3,4]]', "[[2,3],[3,Infinity]]", "[[", "{}", "7")
TOO_LARGE = f"[[2,3],[3,{2**63}]]"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("aten::mm", "[[2,3],[3,4]]", ((2, 3), (3, 4))),
        ("aten::bmm", "[[8,2,3],[8,3,4]]", ((2, 3), (3, 4))),
        ("aten::addmm", "[[4],[2,3],[3,4],[],[]]", ((2, 3), (3, 4))),
        ("aten::conv2d", "[[2,3],[3,4]]", None),
        *(("aten::mm", text, None) for text in (*ODD, TOO_LARGE)),
    ],
)
def test_the_last_two_numbers_of_both_operands(name: str, text: str, expected: object) -> None:
    assert operands(name, text) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("aten::bmm", "[[8,2,3],[8,3,4]]", (8, 2, 3, 4)),
        ("aten::baddbmm", "[[8,2,4],[8,2,3],[8,3,4]]", (8, 2, 3, 4)),
        ("aten::bmm", "[[2,3],[3,4]]", None),
        *(("aten::bmm", text, None) for text in ODD),
    ],
)
def test_a_product_of_batches(name: str, text: str, expected: object) -> None:
    assert batched(name, text) == expected


def test_calls_are_asked_about_once_a_name_and_shapes() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::mm", 0, 5, {"Input Dims": [[2, 3], [3, 4]]}],
            ["cpu_op", "aten::bmm", 10, 5],
            ["cpu_op", "aten::mm", 20, 5, {"Input Dims": [[2, 3], [3, 4]]}],
        ]
    )
    group, texts = distinct(trace, np.array([2, 1, 0, -1]))
    shapes = ("aten::mm", "[[2,3],[3,4]]")
    assert [texts[at] for at in group.tolist()] == [shapes, ("aten::bmm", ""), shapes, ("", "")]
    assert len(texts) == 3
