"""Fraction of the host's time that recording its events costs."""

from typing import Any

import numpy as np
import pytest

from loading import trace_of
from stepscope.analyses.host.profiler_cost import MOST_RECORDING_SHARE, recording_share
from stepscope.base import recording_costs as costs
from stepscope.model import intervals

MS = 1_000_000
HALF = np.array([[0, MS]])


def rows(operators: int, **arguments: Any) -> list[list[Any]]:
    """Two milliseconds, with operators in the first one."""
    step_us = 1000 / operators
    return [
        ["user_annotation", "train", 0, 2000],
        *(["cpu_op", "aten::add", number * step_us, 0.5, arguments] for number in range(operators)),
    ]


def test_each_operator_costs_by_the_options_of_the_profiler() -> None:
    plain, shapes = trace_of(rows(100)), trace_of(rows(100, **{"Input Dims": [[1]]}))
    operator, with_shapes = costs.OPERATOR.ns, costs.OPERATOR.ns + costs.OPERATOR_SHAPES.ns
    assert recording_share(plain, HALF) == pytest.approx(101 * operator / MS)
    assert recording_share(shapes, HALF) == pytest.approx(101 * with_shapes / MS)
    assert recording_share(shapes, HALF + MS) == 0


def test_functions_of_python_cost_too() -> None:
    trace = trace_of([*rows(100), ["python_function", "train.py(1): f", 0, 900]])
    operators = 101 * (costs.OPERATOR.ns + costs.OPERATOR_STACKS.ns)
    expected = (operators + costs.PYTHON_CALL.ns) / MS
    assert recording_share(trace, HALF) == pytest.approx(expected)


def test_of_short_operators_alone_it_is_limited() -> None:
    assert recording_share(trace_of(rows(2000)), HALF) == MOST_RECORDING_SHARE


def test_no_time_has_no_cost() -> None:
    assert recording_share(trace_of(rows(100)), intervals.EMPTY) == 0
