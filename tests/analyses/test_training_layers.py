"""Layers that behave as in training."""

from typing import Any

import pytest

from loading import trace_of
from stepscope.analyses.operators.model_calls import training_layers

STATISTICS = [[8, 64], [64], [64], [64], [64], [], [], [], []]


def normalisation(concrete: Any, dims: Any = STATISTICS) -> list[Any]:
    more = {"Input Dims": dims, "Concrete Inputs": concrete}
    return ["cpu_op", "aten::batch_norm", 0, 10, more]


@pytest.mark.parametrize(
    ("concrete", "found"),
    [
        (["", "0.5", "True"], [0]),
        (["", "0.5", "False"], []),
        (["", "0.", "True"], []),
        (["", "0.5"], []),
        ("damage", []),
        ("[" * 100_000, []),
    ],
)
def test_dropout_says_whether_it_drops(concrete: Any, found: list[int]) -> None:
    trace = trace_of([["cpu_op", "aten::dropout", 0, 10, {"Concrete Inputs": concrete}]])
    assert training_layers(trace).tolist() == found


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (normalisation(["", "", "", "", "", "True"]), [0]),
        (normalisation(["", "", "", "", "", "False"]), []),
        (normalisation(["", "", "", "", "", "True"], [[8, 64], [64], [64], [], []]), []),
        (["cpu_op", "aten::batch_norm", 0, 10], []),
    ],
)
def test_batch_normalisation_says_whether_it_trains(row: list[Any], found: list[int]) -> None:
    assert training_layers(trace_of([row])).tolist() == found
