"""Where copies come from: the operator that asked for them, how large they are, and the line."""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import event_references
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.synchronizations import outermost
from stepscope.analyses.devices.host_copies import HostCopies
from stepscope.model.trace import Trace

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
    owner = outermost(trace, copies.owner)
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
