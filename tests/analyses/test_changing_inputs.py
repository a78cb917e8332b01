"""Which inputs of compiled frames change, as `CompiledFunction` tells."""

from typing import Any

import pytest

from loading import trace_of
from stepscope.analyses.compiled.compilations import ChangingInputs, changing_inputs


def calls(frame: int, *dims: Any) -> list[list[Any]]:
    rows = []
    for place, shapes in enumerate(dims):
        region = f"Torch-Compiled Region: {frame}/{place}"
        start = 1000 * frame + 20 * place
        rows += [
            ["user_annotation", region, start, 10],
            ["cpu_op", "CompiledFunction", start + 1, 8, {"Input Dims": shapes}],
        ]
    return rows


def test_the_first_dimension_that_changes_is_named_with_its_sizes() -> None:
    trace = trace_of(calls(0, [[8, 8], [33, 4]], [[8, 8], [32, 4]], [[8, 8], [33, 4]]))
    assert changing_inputs(trace, [0]) == ChangingInputs(
        change="sizes", dimension=0, sizes=(32, 33)
    )


@pytest.mark.parametrize(
    ("dims", "change"),
    [
        (([[8, 4]], [[8, 4]]), "none"),
        (([[8, 4]], [[2, 8, 4]]), "dimensions"),
        (([[8, 4]], [[8, 4], [8]]), "unknown"),
        (([[8, 4]],), "unknown"),
        (("x", "y"), "unknown"),
        (({"a": 1}, {"b": 1}), "unknown"),
    ],
)
def test_what_else_can_be_told(dims: Any, change: str) -> None:
    assert changing_inputs(trace_of(calls(0, *dims)), [0]).change == change


def test_only_the_frames_that_are_asked_for_count_and_what_tells_most_is_returned() -> None:
    rows = calls(0, [[8, 4]], [[8, 4]]) + calls(1, [[8, 4]], [[9, 4]])
    assert changing_inputs(trace_of(rows), [0]).change == "none"
    assert changing_inputs(trace_of(rows), [0, 1]).change == "sizes"
    assert changing_inputs(trace_of(rows), [2]).change == "unknown"
    assert changing_inputs(trace_of(rows), []).change == "unknown"
