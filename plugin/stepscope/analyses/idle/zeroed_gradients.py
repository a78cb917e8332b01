"""Gradients that the optimizer's `zero_grad` fills with zeros, and the cost of the fills."""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import ancestry, frame_times
from stepscope.analyses.core.window import window
from stepscope.analyses.host.launched_work import launched_work, outermost
from stepscope.analyses.idle.call_cost import CallCost, call_cost
from stepscope.base.errors import NotApplicableError
from stepscope.model.arrays import Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

ZERO_GRAD = "Optimizer.zero_grad#"
LISTWISE_FILL = "aten::_foreach_zero_"
FILLS = frozenset({"aten::zero_", LISTWISE_FILL})


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroedGradients:
    """Rows of `host_calls` in the window, in the order they began."""

    fills: Ints
    """The fill operators; one may fill a list of tensors."""
    zeroing: Ints
    """The calls of `zero_grad` around them."""
    is_listwise: bool
    """Whether one of the fills takes a list of tensors."""
    cost: CallCost
    """Of `zero_grad` and the fills' work; without a device, of the fills."""


@computed
def zeroed_gradients(trace: Trace) -> ZeroedGradients:
    """Return the fills in the optimizer's `zero_grad`.

    Raises:
        NotApplicableError: no optimizer's `zero_grad` was recorded.
    """
    calls, span = trace.host_calls, window(trace)
    is_zeroing = name_mask(calls["name"], lambda name: name.startswith(ZERO_GRAD))
    if not is_zeroing.any():
        reason = "no optimizer's zero_grad was recorded"
        raise NotApplicableError(reason)
    begins = calls["start_ns"].to_numpy()
    fills = outermost(trace, name_mask(calls["name"], FILLS.__contains__))
    fills = fills[(begins[fills] >= span.start_ns) & (begins[fills] < span.end_ns)]
    around = ancestry.nearest_of(calls["parent"].to_numpy(), fills, is_zeroing)
    fills, zeroing = fills[around >= 0], np.unique(around[around >= 0])
    times = frame_times.times(calls, zeroing if len(trace.device_events) else fills)
    return ZeroedGradients(
        fills=fills,
        zeroing=zeroing,
        is_listwise=bool((calls["name"].iloc[fills] == LISTWISE_FILL).any()),
        cost=call_cost(trace, times, launched_work(trace, fills).events),
    )
