"""Loops in Python that go through a model's parameters one by one, outside of optimizers.

The shapes of the parameters are those of the gradients that a step accumulates. An operator walks
through them where Python calls it on nearly as many tensors of each shape as there are parameters,
in every step.
"""

from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.product_shapes import distinct, shape
from stepscope.analyses.operators.python_operators import python_operators
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

ACCUMULATES = "torch::autograd::AccumulateGrad"
LEAST_SHARE = 0.9
"""Part of the parameters that an operator has to be called on: some may be frozen or shared."""
BETWEEN = 12
"""Operators from one parameter to the next that belong to the walk; `deepcopy` has ten."""
Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class ParameterWalks:
    """Operators that Python calls on each parameter in each step."""

    parameter_count: int
    """Parameters that get a gradient in a step."""
    mean_size: float
    """Mean number of values of a parameter."""
    rows_of: dict[str, Ints]
    """Name of an operator to its calls (rows of `host_calls`) on tensors of parameters' shapes."""


@computed
def parameter_walks(trace: Trace) -> ParameterWalks:
    """Return the walks through parameters; none where no step or no gradient was recorded."""
    step_count = window(trace).step_count
    counts = _gradient_counts(trace)
    total = sum(counts.values())
    if not step_count or not total:
        return ParameterWalks(parameter_count=0, mean_size=0.0, rows_of={})
    rows = _outside_optimizers(trace)
    group, calls = distinct(trace, rows)
    shapes = [shape(dims, 0) for _, dims in calls]
    called = np.bincount(group, minlength=len(calls))
    reached: dict[str, int] = {}
    for (name, _), sizes, number in zip(calls, shapes, called.tolist(), strict=True):
        reached[name] = reached.get(name, 0) + min(number, counts.get(sizes, 0))
    walks = {name for name, number in reached.items() if number >= LEAST_SHARE * total}
    is_parameter = np.array([sizes in counts for sizes in shapes], dtype=bool)[group]
    names = np.array([name for name, _ in calls], dtype=object)[group]
    size = sum(int(np.prod(sizes)) * number for sizes, number in counts.items())
    return ParameterWalks(
        parameter_count=round(total / step_count),
        mean_size=size / total,
        rows_of={name: rows[is_parameter & (names == name)] for name in sorted(walks)},
    )


def walk_times(trace: Trace, walks: ParameterWalks, names: Set[str]) -> Intervals:
    """Return the times of some walks, with what is between a parameter and the next."""
    calls, operators = trace.host_calls, python_operators(trace)
    rows = np.unique(np.concatenate([walks.rows_of[name] for name in sorted(names)]))
    index = np.searchsorted(operators.rows, rows)
    start, end = (calls[name].to_numpy()[rows] for name in ("start_ns", "end_ns"))
    is_near = (np.diff(index) <= BETWEEN) & (np.diff(operators.step[index]) == 0)
    until = np.where(np.append(is_near, False)[: len(rows)], np.append(start[1:], 0), end)
    return intervals.union(start, until)


def _gradient_counts(trace: Trace) -> dict[Shape, int]:
    """Return the number of gradients of each shape that the window's steps accumulate."""
    calls, span = trace.host_calls, window(trace)
    start = calls["start_ns"].to_numpy()
    rows = np.flatnonzero(name_mask(calls["name"], ACCUMULATES.__eq__))
    rows = rows[(start[rows] >= span.start_ns) & (start[rows] < span.end_ns)]
    group, gradients = distinct(trace, rows)
    counts: dict[Shape, int] = {}
    for (_, dims), number in zip(gradients, np.bincount(group).tolist(), strict=True):
        if sizes := shape(dims, 0):
            counts[sizes] = counts.get(sizes, 0) + number
    return counts


def _outside_optimizers(trace: Trace) -> Ints:
    calls, rows = trace.host_calls, python_operators(trace).rows
    is_optimizer = name_mask(calls["name"], lambda name: name.startswith("Optimizer."))
    inside = ancestry.nearest_of(calls["parent"].to_numpy(), rows, is_optimizer)
    outside: Ints = rows[inside == NONE]
    return outside
