"""Cost of host calls: idle time of the device during them, and the work that they launched.

Without a device, the cost is the host's time.
"""

from dataclasses import dataclass

from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.exclusive_device_time import exclusive_device_time
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.intervals import EMPTY, Intervals
from stepscope.model.trace import Trace


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
    work = intervals.clip(exclusive_device_time(trace, events), span.start_ns, span.device_end_ns)
    return CallCost(host=host, idle=intervals.intersection(late, host), work=work)
