"""Short kernels of the main device that could be one: neighbours on a stream, all of them short.

Kernels that a graph replays are launched together already, and collectives cannot be fused: both
are left out, and end a stretch.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.kernel_launches import launches
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace

Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class ShortKernels:
    """Kernels within the window that graphs did not bring, as rows of `device_events`."""

    kernels: Rows
    """All of them, collectives too."""
    short: Rows
    """Those that take less than asked for, no collectives."""
    fusable: Rows
    """Of these, those with a short one next to them on their stream."""
    saved: Rows
    """Of these, those whose launch would be saved, were each stretch one kernel."""


def short_kernels(trace: Trace, device: DeviceActivity, under_ns: float) -> ShortKernels:
    """Return a device's kernels of less than `under_ns`, and their neighbours."""
    events, span = trace.device_events, window(trace)
    start = events["start_ns"].to_numpy()[device.rows]
    rows = device.rows[(start >= span.start_ns) & (start < span.device_end_ns)]
    stream = events["stream"].to_numpy()[rows]
    order = np.argsort(stream, kind="stable")
    rows, stream = rows[order], stream[order]
    is_single = (events["kind"].to_numpy() == int(Kind.KERNEL))[rows]
    is_single &= ~np.isin(rows, launches(trace).replayed)
    is_short = is_single & ~events["is_collective"].to_numpy()[rows]
    is_short &= events["duration_ns"].to_numpy()[rows] < under_ns
    follows = np.zeros(len(rows), dtype=bool)
    follows[1:] = is_short[1:] & is_short[:-1] & (stream[1:] == stream[:-1])
    leads = np.append(follows[1:], np.zeros(min(1, len(rows)), dtype=bool))
    return ShortKernels(
        kernels=rows[is_single],
        short=rows[is_short],
        fusable=rows[follows | leads],
        saved=rows[follows],
    )


def idle_before(trace: Trace, device: DeviceActivity, rows: Rows) -> Intervals:
    """Return the idle time of a device in gaps of under 1 ms that ended with these events."""
    ledger = idle_ledger(trace)[device.device]
    gaps = ledger.gaps[np.isin(ledger.next_event, rows)]
    return intervals.intersection(ledger.times["dispatch"], gaps)
