"""Likeness of the models of two traces, by the operators that they call.

It is the weighted Jaccard index of the operators by name, from 0 to 1, times the ratio of the
numbers of parameters with a gradient. An operator's weight is the logarithm of its calls per pass
through the model. Thus neither the batch size nor gradient accumulation nor the device nor the
time of operators plays a part.

A node of the backward pass that is called least often is called once per pass. A trace without
steps is one window of any number of passes: without a backward pass, the operators that are called
least often count them.

A graph of torch.compile replaces operators, and its compilation calls many others: with a compiled
side, the overlap coefficient replaces the Jaccard index: the fraction of the side with fewer
operators that the other has, too.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from stepscope.comparison.samples import Sample
from stepscope.model.arrays import Floats

SAME_MODEL = 0.5
"""Likeness from which two traces count as traces of the same model."""
COMPILED = ("Torch-Compiled Region", "CompiledFunction")
GRADIENT = "torch::autograd::AccumulateGrad"
"""Called once for each parameter with a gradient."""
BACKWARD_NODE = re.compile(r"^\w+Backward\d*$")
ONCE_QUANTILE = 0.1
"""Of the operators that both sides call, by their calls: fewer are called before the first pass."""


@dataclass(frozen=True, kw_only=True)
class OperatorProfile:
    """The operators of a trace, or of the traces of a side."""

    calls: Mapping[str, float]
    """Calls per step by name; without steps, per trace."""
    has_steps: bool = True

    @property
    def is_compiled(self) -> bool:
        """Whether graphs of torch.compile are called."""
        return any(name.startswith(COMPILED) for name in self.calls)


def operator_profile(traces: Iterable[Sample]) -> OperatorProfile:
    """Return the operators of traces, with their mean calls per step."""
    calls: dict[str, float] = {}
    step_count = 0
    has_steps = True
    for trace in traces:
        step_count += len(trace.duration_ns)
        has_steps &= trace.has_steps
        for name, count in trace.operators.operator_calls.items():
            calls[name] = calls.get(name, 0.0) + count
    per_step = {name: count / max(1, step_count) for name, count in calls.items()}
    return OperatorProfile(calls=per_step, has_steps=has_steps)


@dataclass(frozen=True, kw_only=True)
class Likeness:
    """Likeness of the models of two sides."""

    value: float
    """From 0 to 1."""
    pass_counts: tuple[float, float]
    """Passes through the model per step; per trace without steps."""


def likeness(first: OperatorProfile, second: OperatorProfile) -> Likeness | None:
    """Return the likeness of two models; None where a side has no operators."""
    sides = first, second
    pass_counts = _pass_counts(first, second)
    one, other = (
        {name: float(np.log1p(calls / passes)) for name, calls in side.calls.items()}
        for side, passes in zip(sides, pass_counts, strict=True)
    )
    sums = sum(one.values()), sum(other.values())
    if not min(sums):
        return None
    common = sum(min(weight, other[name]) for name, weight in one.items() if name in other)
    is_compiled = first.is_compiled or second.is_compiled
    whole = min(sums) if is_compiled else sum(sums) - common
    parameters = [
        side.calls.get(GRADIENT, 0.0) / passes
        for side, passes in zip(sides, pass_counts, strict=True)
    ]
    is_countable = first.has_steps and second.has_steps and min(parameters) > 0
    ratio = min(parameters) / max(parameters) if is_countable else 1.0
    return Likeness(value=common / whole * ratio, pass_counts=pass_counts)


def _pass_counts(first: OperatorProfile, second: OperatorProfile) -> tuple[float, float]:
    common = [name for name in first.calls if name in second.calls]
    nodes = list(filter(BACKWARD_NODE.search, common))
    if nodes:
        return float(_calls(first, nodes).min()), float(_calls(second, nodes).min())
    if common and not (first.has_steps and second.has_steps):
        return _once(first, common), _once(second, common)
    return 1.0, 1.0


def _calls(side: OperatorProfile, names: list[str]) -> Floats:
    return np.array([side.calls[name] for name in names])


def _once(side: OperatorProfile, names: list[str]) -> float:
    return float(np.quantile(_calls(side, names), ONCE_QUANTILE, method="lower"))
