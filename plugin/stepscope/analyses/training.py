"""Whether a recording is of training."""

import re

from stepscope.trace import Trace, computed

BACKWARD_OR_OPTIMIZER = re.compile(
    r"^autograd::engine::evaluate_function|Backward\d*$|^Optimizer\.step#"
)


@computed
def is_training(trace: Trace) -> bool:
    """Tell whether a backward pass or an optimizer's step was recorded."""
    names = trace.host_calls["name"].cat.categories
    return any(BACKWARD_OR_OPTIMIZER.search(str(name)) for name in names)
