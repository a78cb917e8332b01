"""Shapes of results, from which chains of constants follow."""

from collections.abc import Sequence

import pytest

import loading
import tracebuild
from stepscope.analyses.operators.constant_chains import constant_chains

ARANGE: Sequence[object] = ["aten::arange", [[], [], [], [], []], ["6", "", "", "", "False"]]


def lengths_of(*calls: Sequence[object]) -> list[int]:
    """Return the lengths of the chains of two steps that call operators one after the other."""
    rows: list[list[object]] = []
    for step in (0, 1):
        start = 1000 * step
        rows.append(["user_annotation", f"ProfilerStep#{step}", start, 900])
        for number, (name, dims, concrete) in enumerate(calls):
            arguments = {"Input Dims": dims, "Concrete Inputs": concrete}
            rows.append(["cpu_op", name, start + 10 * number, 5, arguments])
    trace = loading.trace_of(document=tracebuild.document(rows=rows))
    return [int(length) for length in constant_chains(trace).length]


@pytest.mark.parametrize(
    ("source", "shape"),
    [
        (ARANGE, [6]),
        (["aten::arange", [[]] * 6, ["2", "8", "", "", "", "False"]], [6]),
        (["aten::arange", [[]] * 7, ["2", "9", "2", "", "", "", "False"]], [4]),
        (["aten::linspace", [[]] * 7, ["0", "1", "5", "", "", "", "False"]], [5]),
        (["aten::eye", [[]] * 5, ["3", "", "", "", "False"]], [3, 3]),
        (["aten::eye", [[]] * 6, ["3", "4", "", "", "", "False"]], [3, 4]),
    ],
)
def test_the_shape_of_a_source_follows_from_its_numbers(
    source: Sequence[object], shape: list[int]
) -> None:
    other = [*shape[:-1], shape[-1] + 1]
    assert lengths_of(source, ["aten::exp", [shape], [""]]) == [2, 2]
    assert lengths_of(source, ["aten::exp", [other], [""]]) == []


@pytest.mark.parametrize(
    ("name", "dims", "concrete", "shape"),
    [
        ("aten::unsqueeze", [[6], []], ["", "-1"], [6, 1]),
        ("aten::cat", [[[6], [6]], []], ["", "0"], [12]),
        ("aten::stack", [[[6], [6]], []], ["", "0"], [2, 6]),
        ("aten::view", [[6], []], ["", "[2, -1]"], [2, 3]),
        ("aten::slice", [[6], [], [], [], []], ["", "0", "1", "9223372036854775807", "2"], [3]),
        ("aten::meshgrid", [[[6], [6]], []], ["", ""], [6, 6]),
        ("aten::outer", [[6], [6]], ["", ""], [6, 6]),
        ("aten::matmul", [[6], [6]], ["", ""], None),
    ],
)
def test_a_chain_goes_on_while_shapes_are_known(
    name: str, dims: list[object], concrete: list[str], shape: list[int] | None
) -> None:
    follows: Sequence[object] = ["aten::exp", [shape or [6]], [""]]
    calls: tuple[Sequence[object], ...] = (ARANGE, [name, dims, concrete], follows)
    if shape is None:
        assert lengths_of(*calls) == []
        return
    assert lengths_of(*calls) == [3, 3]
    assert lengths_of(*calls[:2], ["aten::exp", [[*shape, 7]], [""]]) == [2, 2]
