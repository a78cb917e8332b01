"""What copies to a device cost: the times in which nothing else runs, and in which nothing does."""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.devices.host_copies import HostCopies
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.analyses.idle.sync_cost import sync_cost
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class CopyCost:
    """Times of one device; `exposed` is of its busy time, the others are disjoint and idle."""

    exposed: Intervals
    """Some of the copies run, and no kernel."""
    late: Intervals
    """The device stands still since the host is late, and the host is in the copies' calls."""
    behind: Intervals
    """The device stands still right behind the host's waits for these copies."""

    @property
    def idle(self) -> Intervals:
        """The device stands still for the copies."""
        return intervals.merged(self.late, self.behind)


def copy_cost(trace: Trace, device: DeviceActivity, copies: HostCopies) -> CopyCost:
    """Return what some copies to a device cost."""
    times = idle_ledger(trace)[device.device].times
    late = intervals.merged(times["dispatch"], times["host-stall"])
    return CopyCost(
        exposed=intervals.difference(copies.on_device, device.kernels),
        late=intervals.intersection(copies.on_host, late),
        behind=sync_cost(trace, "h2d", _waits_for(trace, copies)).idle,
    )


def _waits_for(trace: Trace, copies: HostCopies) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Tell which of `synchronizations` were asked for by what asked for one of the copies."""
    asker = links(trace).owner_of_call[synchronizations(trace).calls]
    return np.asarray(np.isin(asker, copies.owner[copies.owner >= 0]))
