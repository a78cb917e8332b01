"""What some host calls cost: the idle time of the device meanwhile, and the work they gave it.

On a machine without a device it is the host's own time.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.exclusive_device_time import alone
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.model import intervals
from stepscope.model.intervals import EMPTY, Intervals
from stepscope.model.trace import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class CallCost:
    """Times within the window; `idle` and `work` are disjoint."""

    host: Intervals
    """When the host was in the calls, as given."""
    idle: Intervals
    """When the main device stood still meanwhile, since the host was late with its next work.
    Without a device: `host`."""
    work: Intervals
    """When the main device did nothing but what the calls had launched."""

    @property
    def host_ns(self) -> int:
        """How long the host was in the calls."""
        return intervals.duration_ns(self.host)

    @property
    def idle_ns(self) -> int:
        """How long the device stood still meanwhile."""
        return intervals.duration_ns(self.idle)

    @property
    def work_ns(self) -> int:
        """How long the device did nothing but their work."""
        return intervals.duration_ns(self.work)


def call_cost(trace: Trace, host: Intervals, events: NDArray[np.int64]) -> CallCost:
    """Return what calls cost in which the host was at these times; they launched these events."""
    span = window(trace)
    host = intervals.clip(host, span.start_ns, span.end_ns)
    device = main_device(trace)
    if device is None:
        return CallCost(host=host, idle=host, work=EMPTY)
    times = idle_ledger(trace)[device.device].times
    late = intervals.merged(times["dispatch"], times["host-stall"])
    work = intervals.clip(alone(trace, events), span.start_ns, span.device_end_ns)
    return CallCost(host=host, idle=intervals.intersection(late, host), work=work)
