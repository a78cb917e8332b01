"""Idle time of the device in gaps of under 1 ms, by the host's activity."""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.links import links
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.dialects import GRAPH_LAUNCH_NAME, LAUNCH_NAME, Kind
from stepscope.model import intervals
from stepscope.model.arrays import Ints
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
