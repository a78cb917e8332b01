"""Arguments of operators, as profilers write them and as they do not."""

import pytest

from stepscope.analyses.operators.product_shapes import argument, shape


def test_an_argument_is_text() -> None:
    written = '["", "", "True", 3, [1, 1]]'
    assert [argument(written, place) for place in range(6)] == ["", "", "True", "3", "[1, 1]", ""]


def test_a_shape_is_numbers() -> None:
    written = "[[32, 64], [], [[8], [8]], 5]"
    assert [shape(written, place) for place in range(5)] == [(32, 64), (), (), (), ()]


@pytest.mark.parametrize("text", ["", "[", "nan", "5", '{"0": 1}', "[" * 100_000, "null"])
def test_what_is_no_list_has_no_argument(text: str) -> None:
    assert argument(text, 0) == ""
    assert shape(text, 0) == ()


@pytest.mark.parametrize("text", ["[[-1]]", "[[1.5]]", "[[true]]", '[["8"]]', f"[[{10**30}]]"])
def test_no_size_is_no_shape(text: str) -> None:
    assert shape(text, 0) == ()
