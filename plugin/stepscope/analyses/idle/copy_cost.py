"""Cost of copies to a device: exposed copying and idle time; and the code that requests copies."""

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
    """Times of one device; `exposed` is busy time, the others are disjoint idle time."""

    exposed: Intervals
    """Some of the copies run, and no kernel."""
    late: Intervals
    """The device is idle because the host is late, in the copies' calls."""
    behind: Intervals
    """The device is idle right after the host's waits for these copies."""

    @property
    def idle(self) -> Intervals:
        """Idle time due to the copies."""
        return intervals.merged(self.late, self.behind)


def copy_cost(trace: Trace, device: DeviceActivity, copies: HostCopies) -> CopyCost:
    """Return the cost of some copies to a device."""
    late = idle_ledger(trace)[device.device].host_late
    return CopyCost(
        exposed=intervals.difference(copies.on_device, device.kernels),
        late=intervals.intersection(copies.on_host, late),
        behind=sync_cost(trace, "h2d", _waits_for(trace, copies)).idle,
    )


def _waits_for(trace: Trace, copies: HostCopies) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Return which `synchronizations` come from operators that requested one of the copies."""
    asker = links(trace).owner_of_call[synchronizations(trace).calls]
    return np.asarray(np.isin(asker, copies.owner[copies.owner >= 0]))


OUTSIDE = "outside any operator"


@dataclass(frozen=True, kw_only=True)
class CopySite:
    """Copies of one size that one operator requested."""

    operator: str
    line: str
    """The user's source line of the first copy, or ""."""
    bytes: float
    """Size of each copy."""
    count: int
    device_ns: int
    """Total time of the copies."""
    host_ns: int
    """Total time of the host's calls."""


def copy_sites(trace: Trace, copies: HostCopies, most: int = 10) -> tuple[CopySite, ...]:
    """Return the operators that requested copies, the costliest in host and device time first."""
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
