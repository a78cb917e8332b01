"""The operands of a product of two matrices."""

import pytest

from stepscope.analyses.operators.product_shapes import operands


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("aten::mm", "[[2,3],[3,4]]", ((2, 3), (3, 4))),
        ("aten::bmm", "[[8,2,3],[8,3,4]]", ((2, 3), (3, 4))),
        ("aten::addmm", "[[4],[2,3],[3,4],[],[]]", ((2, 3), (3, 4))),
        ("aten::conv2d", "[[2,3],[3,4]]", None),
        ("aten::mm", "", None),
        ("aten::mm", "[[2,3]]", None),
        ("aten::mm", "[[2],[3]]", None),
        ("aten::mm", '[["a","b"],[3,4]]', None),
        ("aten::mm", "[[", None),
        ("aten::mm", "{}", None),
    ],
)
def test_the_last_two_numbers_of_both_operands(name: str, text: str, expected: object) -> None:
    assert operands(name, text) == expected
