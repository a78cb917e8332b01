"""Likeness of the models of two traces, by the operators that they call.

It is the weighted Jaccard index of the operators by name, from 0 to 1, times the ratio of the
numbers of parameters with a gradient. An operator's weight is the logarithm of its calls per step.
Thus neither the batch size nor the device nor the time of operators plays a part.

A graph of torch.compile replaces operators, and its compilation calls many others: with a compiled
side, the overlap coefficient replaces the Jaccard index: the fraction of the side with fewer
operators that the other has, too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from stepscope.comparison.samples import Sample

SAME_MODEL = 0.5
"""Likeness from which two traces count as traces of the same model."""
COMPILED = ("Torch-Compiled Region", "CompiledFunction")
GRADIENT = "torch::autograd::AccumulateGrad"
"""Called once for each parameter with a gradient."""


@dataclass(frozen=True, kw_only=True)
class OperatorProfile:
    """The operators of a trace, or of the traces of a side."""

    weights: Mapping[str, float]
    """By name: the logarithm of one more than the calls per step."""
    parameter_count: float
    """Parameters with a gradient per step; 0 without a backward pass."""
    is_compiled: bool
    """Whether graphs of torch.compile are called."""


def operator_profile(traces: Iterable[Sample]) -> OperatorProfile:
    """Return the operators of traces, with their mean calls per step."""
    calls: dict[str, float] = {}
    step_count = 0
    for trace in traces:
        step_count += len(trace.duration_ns)
        for name, count in trace.operators.operator_calls.items():
            calls[name] = calls.get(name, 0.0) + count
    per_step = {name: count / max(1, step_count) for name, count in calls.items()}
    return OperatorProfile(
        weights={name: float(np.log1p(count)) for name, count in per_step.items()},
        parameter_count=per_step.get(GRADIENT, 0.0),
        is_compiled=any(name.startswith(COMPILED) for name in per_step),
    )


def likeness(first: OperatorProfile, second: OperatorProfile) -> float | None:
    """Return the likeness of two models from 0 to 1; None where a side has no operators."""
    one, other = first.weights, second.weights
    sums = sum(one.values()), sum(other.values())
    if not min(sums):
        return None
    common = sum(min(weight, other[name]) for name, weight in one.items() if name in other)
    is_compiled = first.is_compiled or second.is_compiled
    whole = min(sums) if is_compiled else sum(sums) - common
    counts = first.parameter_count, second.parameter_count
    return common / whole * (min(counts) / max(counts) if min(counts) else 1.0)
