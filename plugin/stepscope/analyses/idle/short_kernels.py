"""Short kernels that could be fused: consecutive short kernels on a stream.

Kernels of graph replays (which launch together) and collectives do not count, and end a sequence.
"""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.kernel_launches import launches
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class ShortKernels:
    """Kernels in the window, without graph replays, as rows of `device_events`."""

    kernels: Ints
    """All of them, with collectives."""
    short: Ints
    """Kernels below the limit, without collectives."""
    fusable: Ints
    """Short kernels next to another short one on their stream."""
    saved: Ints
    """Fusable kernels whose launch is saved if each sequence becomes one kernel."""


def short_kernels(trace: Trace, device: DeviceActivity, under_ns: float) -> ShortKernels:
    """Return a device's kernels shorter than `under_ns`, and those that could be fused."""
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


def idle_before(trace: Trace, device: DeviceActivity, rows: Ints) -> Intervals:
    """Return the dispatch idle time of a device in gaps that end with these events."""
    ledger = idle_ledger(trace)[device.device]
    gaps = ledger.gaps[np.isin(ledger.next_event, rows)]
    return intervals.intersection(ledger.times["dispatch"], gaps)
