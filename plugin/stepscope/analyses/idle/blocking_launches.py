"""Kernel launches that block the host, as in the runtime's debugging modes.

Either the launching call returns only after its kernel's end, or a wait follows each launch.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.frame_times import times
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.kernel_launches import launches
from stepscope.dialects import SYNCHRONIZE_NAME, Kind
from stepscope.model import intervals
from stepscope.model.arrays import Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

SLACK_NS = 1_000
"""Difference of the clocks, by which a blocking call may end before its kernel."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockingLaunches:
    """Launches of kernels in the window, without graph launches."""

    rows: Ints
    """The kernels, as rows of `device_events`."""
    calls: Ints
    """Their launches, as rows of `runtime_calls`."""
    blocks: Mask
    """Whether the call returned only after its kernel's end."""
    is_waited_for: Mask
    """Whether the thread's next call waits for the device."""
    blocked_ns: int
    """Time of the host in launches, and in waits right after them, while a device worked."""


@computed
def blocking_launches(trace: Trace) -> BlockingLaunches:
    """Return the kernel launches, with those that block the host."""
    launched, calls, events = launches(trace), trace.runtime_calls, trace.device_events
    span = window(trace)
    start = calls["start_ns"].to_numpy()[launched.call]
    selected = (start >= span.start_ns) & (start < span.end_ns)
    selected &= events["kind"].to_numpy()[launched.row] == int(Kind.KERNEL)
    rows, call = launched.row[selected], launched.call[selected]
    following = np.append(_next_on_thread(trace), -1)[call]
    is_waited_for = np.append(_waits(trace), False)[following]
    blocking = np.concatenate((call, following[is_waited_for]))
    blocked = intervals.intersection(times(calls, blocking), all_busy(trace))
    ended = calls["end_ns"].to_numpy()[call] + SLACK_NS
    return BlockingLaunches(
        rows=rows,
        calls=call,
        blocks=events["end_ns"].to_numpy()[rows] <= ended,
        is_waited_for=is_waited_for,
        blocked_ns=intervals.duration_ns(blocked),
    )


def _waits(trace: Trace) -> Mask:
    """Return which runtime calls in the window wait for the device, without blocking copies."""
    is_wait = name_mask(trace.runtime_calls["name"], re.compile(SYNCHRONIZE_NAME).search)
    is_inside = np.zeros(len(is_wait), dtype=bool)
    is_inside[synchronizations(trace).calls] = True
    return is_wait & is_inside


def _next_on_thread(trace: Trace) -> Ints:
    thread = trace.runtime_calls["thread"].cat.codes.to_numpy()
    order = np.argsort(thread, kind="stable")
    following = np.full(len(order), -1, dtype=np.int64)
    is_same = thread[order[1:]] == thread[order[:-1]]
    following[order[:-1][is_same]] = order[1:][is_same]
    return following
