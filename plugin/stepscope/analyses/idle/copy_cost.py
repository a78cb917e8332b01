"""What copies to a device cost: the times in which nothing else runs, and in which nothing does."""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import event_references
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import outermost_operator, synchronizations
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


OUTSIDE = "outside any operator"


@dataclass(frozen=True, kw_only=True)
class CopySite:
    """Copies of one size that one operator asked for."""

    operator: str
    line: str
    """The user's source line of the first of them, or "" where it is not known."""
    bytes: float
    """Of each of them."""
    count: int
    device_ns: int
    """How long they ran in all."""
    host_ns: int
    """How long the host was in the calls in all."""


def copy_sites(trace: Trace, copies: HostCopies, most: int = 10) -> tuple[CopySite, ...]:
    """Return what asked for copies, by host and device time, the costliest first."""
    owner = outermost_operator(trace, copies.owner)
    names = trace.host_calls["name"].cat
    keys = np.stack((np.append(names.codes.to_numpy(), -1)[owner], copies.bytes), axis=1)
    distinct, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    device_ns = sums(copies.end_ns - copies.start_ns, group, len(distinct))
    host_ns = sums(copies.call_end_ns - copies.call_start_ns, group, len(distinct))
    number = np.bincount(group, minlength=len(distinct))
    order = np.lexsort((first, -(device_ns + host_ns)))[:most]
    return tuple(
        CopySite(
            operator=str(names.categories[int(distinct[at, 0])])
            if distinct[at, 0] >= 0
            else OUTSIDE,
            line=event_references.line_of_host_call(trace, int(owner[first[at]])),
            bytes=float(distinct[at, 1]),
            count=int(number[at]),
            device_ns=int(device_ns[at]),
            host_ns=int(host_ns[at]),
        )
        for at in order.tolist()
    )
