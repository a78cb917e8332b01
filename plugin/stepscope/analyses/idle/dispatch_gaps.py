"""Idle time that launches cause: gaps under 1 ms, short kernels, and launches that block the host.

Short kernels are consecutive on a stream, and could be fused. Kernels of graph replays (which
launch together) and collectives do not count, and end a sequence.

Launches block where the call returns only after its kernel's end, or a wait follows each launch, as
in the runtime's debugging modes.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.device_activity import DeviceActivity, all_busy
from stepscope.analyses.core.frame_times import times
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.kernel_launches import launches
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.dialects import GRAPH_LAUNCH_NAME, LAUNCH_NAME, SYNCHRONIZE_NAME, Kind
from stepscope.model import intervals
from stepscope.model.arrays import Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

GRAPHS_DOMINATE = 0.5
"""Least fraction of kernels from graph launches for which graphs are already in use."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DispatchGaps:
    """One device's dispatch gaps; the three shares sum to 1, or are 0 without idle time."""

    idle: Intervals
    kernel_count: int
    median_kernel_ns: int
    inside_share: float
    """Of the idle time: the host is in an operator, but not in a launch call."""
    launch_share: float
    """Of the idle time: the host is in a launch call."""
    between_share: float
    """Of the idle time: the host is in Python, outside operators."""
    has_operators: bool
    """Whether operators were recorded, which the shares need."""
    has_graphs: bool
    """Whether most kernels come from graph launches."""

    @property
    def idle_ns(self) -> int:
        """Total duration of the gaps."""
        return intervals.duration_ns(self.idle)


def dispatch_gaps(trace: Trace, device: DeviceActivity) -> DispatchGaps:
    """Return a device's dispatch gaps and the host's activity in them."""
    idle = idle_ledger(trace)[device.device].times["dispatch"]
    total_ns = max(1, intervals.duration_ns(idle))
    launching = intervals.intersection(idle, _launch_times(trace))
    rest = intervals.difference(idle, launching)
    inside = intervals.intersection(rest, _operator_times(trace))
    launch_ns, inside_ns = intervals.duration_ns(launching), intervals.duration_ns(inside)
    kind = trace.device_events["kind"].to_numpy()[device.rows]
    duration_ns = trace.device_events["duration_ns"].to_numpy()[device.rows]
    is_kernel = kind == int(Kind.KERNEL)
    kernels_ns = duration_ns[is_kernel]
    between_ns = intervals.duration_ns(rest) - inside_ns
    return DispatchGaps(
        idle=idle,
        kernel_count=len(kernels_ns),
        median_kernel_ns=int(np.median(kernels_ns)) if len(kernels_ns) else 0,
        inside_share=inside_ns / total_ns,
        launch_share=launch_ns / total_ns,
        between_share=between_ns / total_ns,
        has_operators=bool(trace.host_calls["is_operator"].any()),
        has_graphs=_graph_share(trace, device.rows[is_kernel]) >= GRAPHS_DOMINATE,
    )


@computed
def _launch_times(trace: Trace) -> Intervals:
    calls = trace.runtime_calls
    is_launch = name_mask(calls["name"], LAUNCH_NAME.search)
    return frame_times.times(calls, is_launch)


@computed
def _operator_times(trace: Trace) -> Intervals:
    calls = trace.host_calls
    is_operator = calls["is_operator"].to_numpy()
    # operators of all threads: the backward pass runs on separate threads
    return frame_times.times(calls, is_operator)


def _graph_share(trace: Trace, rows: Ints) -> float:
    by_graph = np.append(name_mask(trace.runtime_calls["name"], GRAPH_LAUNCH_NAME.search), False)
    call = links(trace).call_of_device_event[rows]
    return float(by_graph[call].mean()) if len(call) else 0.0


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
    rows = device.rows[(start >= span.device_start_ns) & (start < span.device_end_ns)]
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
