"""Cost of host calls: idle time of the device during them, and the work that they launched.

Without a device, the cost is the host's time.
"""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import ancestry, frame_times
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import exclusive_device_time
from stepscope.analyses.host.optimizer_updates import launched_work, outermost
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.base.errors import NotApplicableError
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import EMPTY, Intervals
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True, eq=False)
class CallCost:
    """Times in the window; `idle` and `work` are disjoint."""

    host: Intervals
    """Times of the calls."""
    idle: Intervals
    """Times of the calls in which the main device is idle because the host is late.
    Without a device: `host`."""
    work: Intervals
    """Times in which the main device runs only work that the calls launched."""

    @property
    def host_ns(self) -> int:
        """Duration of `host`."""
        return intervals.duration_ns(self.host)

    @property
    def idle_ns(self) -> int:
        """Duration of `idle`."""
        return intervals.duration_ns(self.idle)

    @property
    def work_ns(self) -> int:
        """Duration of `work`."""
        return intervals.duration_ns(self.work)


def call_cost(trace: Trace, host: Intervals, events: Ints) -> CallCost:
    """Return the cost of calls at some times of the host that launched some device events."""
    span = window(trace)
    host = intervals.clip(host, span.start_ns, span.end_ns)
    device = main_device(trace)
    if device is None:
        return CallCost(host=host, idle=host, work=EMPTY)
    late = idle_ledger(trace)[device.device].host_late
    work = intervals.clip(
        exclusive_device_time(trace, events), span.device_start_ns, span.device_end_ns
    )
    return CallCost(host=host, idle=intervals.intersection(late, host), work=work)


ZERO_GRAD = "Optimizer.zero_grad#"
LISTWISE_FILL = "aten::_foreach_zero_"
FILLS = frozenset({"aten::zero_", LISTWISE_FILL})
ADDITION, ACCUMULATION = "aten::add_", "torch::autograd::AccumulateGrad"


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroedGradients:
    """Rows of `host_calls` in the window, in the order they began."""

    fills: Ints
    """The fill operators; one may fill a list of tensors."""
    zeroing: Ints
    """The calls of `zero_grad` around them."""
    additions: Ints
    """Additions of gradients to the zeros, in the first backward pass after each fill."""
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
        additions=_additions(trace, fills, around[around >= 0]),
        is_listwise=bool((calls["name"].iloc[fills] == LISTWISE_FILL).any()),
        cost=call_cost(trace, times, launched_work(trace, fills).events),
    )


def _additions(trace: Trace, fills: Ints, zeroing_of_fill: Ints) -> Ints:
    """Return as many accumulations after each `zero_grad` as it filled gradients."""
    calls = trace.host_calls
    begins, parent = calls["start_ns"].to_numpy(), calls["parent"].to_numpy()
    is_accumulation = name_mask(calls["name"], ACCUMULATION.__eq__)
    additions = np.flatnonzero(name_mask(calls["name"], ADDITION.__eq__) & (parent != NONE))
    additions = additions[is_accumulation[parent[additions]]]
    additions = np.asarray(additions[np.argsort(begins[additions], kind="stable")])
    zeroing, index = np.unique(zeroing_of_fill, return_inverse=True)
    if not len(zeroing):
        return np.empty(0, dtype=np.int64)
    filled = np.bincount(index, weights=_tensor_counts(trace, fills))
    last = np.searchsorted(begins[zeroing], begins[additions], side="right") - 1
    number = np.arange(len(additions)) - np.searchsorted(last, last)
    return np.asarray(additions[(last >= 0) & (number < filled[last])])


def _tensor_counts(trace: Trace, fills: Ints) -> Ints:
    """Return the number of gradients of each fill: those that a fill of a list calls, or one."""
    parent = trace.host_calls["parent"].to_numpy()
    children = np.bincount(parent[parent != NONE], minlength=len(parent))
    is_list = (trace.host_calls["name"].iloc[fills] == LISTWISE_FILL).to_numpy()
    return np.where(is_list, children[fills], 1)
