"""How full torch's cache of a device was at its fullest.

At most moments much of the reserved memory is unused: between steps nearly all of it. Only what is
unused while most is held tells of pieces that nothing fits into, or of an earlier, larger need.
"""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.memory.by_step import memory_by_step
from stepscope.analyses.memory.curve import MemoryCurve, memory_curves
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True)
class CacheFill:
    """One device's cache when it was fullest, of the times at which most was reserved."""

    device_type: str
    device: int
    reserved_bytes: int
    unused_bytes: int
    """Of it, allocated to no tensor."""
    time_ns: int
    step_unused_bytes: tuple[float, ...]
    """For each complete step what was unused at its fullest; empty without steps."""

    @property
    def unused_share(self) -> float:
        """The same, of what was reserved; 0 where nothing was."""
        return self.unused_bytes / self.reserved_bytes if self.reserved_bytes else 0.0


@computed
def cache_fill(trace: Trace) -> tuple[CacheFill, ...]:
    """Return each device whose allocator keeps a cache.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    curves = (curve for curve in memory_curves(trace) if _told(curve).any())
    return tuple(_fill(trace, curve) for curve in curves)


def _told(curve: MemoryCurve) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.asarray(~np.isnan(curve.reserved_bytes) & ~np.isnan(curve.allocated_bytes))


def _fill(trace: Trace, curve: MemoryCurve) -> CacheFill:
    told = _told(curve)
    reserved, allocated = curve.reserved_bytes[told], curve.allocated_bytes[told]
    at_most = np.flatnonzero(reserved == reserved.max())
    at = int(at_most[np.argmax(allocated[at_most])])
    return CacheFill(
        device_type=curve.device.type,
        device=curve.device.number,
        reserved_bytes=int(reserved[at]),
        unused_bytes=max(0, int(reserved[at] - allocated[at])),
        time_ns=int(curve.time_ns[told][at]),
        step_unused_bytes=_in_steps(trace, curve),
    )


def _in_steps(trace: Trace, curve: MemoryCurve) -> tuple[float, ...]:
    try:
        steps = memory_by_step(trace)
    except MissingDataError:  # no steps
        return ()
    device = curve.device
    mine = steps[(steps["device_type"] == device.type) & (steps["device"] == device.number)]
    unused = (mine["reserved_bytes"] - mine["peak_bytes"]).to_numpy()
    return tuple(unused[~np.isnan(unused)].tolist())
