"""Detection of training, by the backward pass or the optimizer."""

import re

from stepscope.model.trace import Trace, computed

BACKWARD = re.compile(r"^autograd::engine::evaluate_function|Backward\d*$")
"""Operators of a backward pass."""
OPTIMIZER = re.compile(r"^Optimizer\.step#")


@computed
def is_training(trace: Trace) -> bool:
    """Return whether a backward pass or an optimizer's step was recorded."""
    names = trace.host_calls["name"].cat.categories
    return any(BACKWARD.search(str(name)) or OPTIMIZER.match(str(name)) for name in names)
