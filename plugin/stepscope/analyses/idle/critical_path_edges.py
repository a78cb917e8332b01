"""Dependencies along the critical path: the event that each activity on it waited for, and why."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.idle import device_waits as device_edges
from stepscope.analyses.idle import host_waits as host_edges
from stepscope.analyses.idle.critical_path import critical_path
from stepscope.analyses.idle.device_waits import device_waits
from stepscope.analyses.idle.host_waits import host_waits
from stepscope.model.arrays import NONE, Ints
from stepscope.model.trace import Trace, computed

EDGES: dict[str, str] = {
    "launch": "the host's call that launched it",
    "stream": "earlier work of its stream",
    "event": "work of another stream, by a recorded event",
    "inferred": "work of another stream, inferred from times",
    "sync": "device work that the host's call waited for",
    "thread": "the call before it on its thread",
    "other_thread": "a call of another thread that ended while this thread was idle",
}
"""Kind of a dependency, to the activity that was waited for."""
NAMES = tuple(EDGES)
LAUNCH, STREAM, EVENT, INFERRED, SYNC, THREAD, OTHER_THREAD = range(len(NAMES))


@dataclass(frozen=True, kw_only=True, eq=False)
class PathEdges:
    """The dependency of the activity of each segment of the critical path; arrays are parallel."""

    kind: NDArray[np.int8]
    """Index into `NAMES`, -1 where it waited for nothing."""
    event: Ints
    """The event that waited: on a device the work, on the host the outermost call, for `sync` the
    waiting call; -1 on the host before its first call."""
    awaited: Ints
    """The event that it waited for; -1 where it waited for nothing."""


@computed
def path_edges(trace: Trace) -> PathEdges:
    """Return the dependency of each segment's activity on the one before it on the path."""
    path, device, host = critical_path(trace), device_waits(trace), host_waits(trace)
    on_device, on_host = _of_device(trace, device), _of_host(trace, host)
    count = len(device.edge)
    node = np.where(path.device_event >= 0, path.device_event, path.stretch + count)
    node = np.where((path.device_event < 0) & (path.stretch < 0), NONE, node)
    return PathEdges(
        kind=np.concatenate((on_device.kind, on_host.kind, [NONE]))[node].astype(np.int8),
        event=np.concatenate((on_device.event, on_host.event, [NONE]))[node],
        awaited=np.concatenate((on_device.awaited, on_host.awaited, [NONE]))[node],
    )


def _of_device(trace: Trace, waits: device_edges.DeviceWaits) -> PathEdges:
    """Return the dependency of each device event."""
    kinds = np.full(5, NONE, dtype=np.int8)
    for edge, kind in (
        (device_edges.LAUNCH, LAUNCH),
        (device_edges.STREAM, STREAM),
        (device_edges.EVENT, EVENT),
        (device_edges.INFERRED, INFERRED),
    ):
        kinds[edge] = kind
    events = trace.device_events["event"].to_numpy()
    calls = np.append(trace.runtime_calls["event"].to_numpy(), NONE)
    is_launch = waits.edge == device_edges.LAUNCH
    work = np.append(events, NONE)[np.where(is_launch, NONE, waits.awaited)]
    awaited = np.where(is_launch, calls[np.where(is_launch, waits.awaited, NONE)], work)
    return PathEdges(kind=kinds[waits.edge], event=events, awaited=awaited)


def _of_host(trace: Trace, waits: host_edges.HostWaits) -> PathEdges:
    """Return the dependency of each stretch of the host."""
    is_sync, is_between = waits.edge == host_edges.SYNC, waits.edge == host_edges.BETWEEN
    before = np.where(is_between, waits.awaited, NONE)
    outermost = waits.activities.event[waits.activity]
    thread = waits.thread
    is_same_thread = np.append(thread, NONE)[before] == thread
    kind = np.where(is_between, np.where(is_same_thread, THREAD, OTHER_THREAD), NONE)
    calls = np.append(trace.runtime_calls["event"].to_numpy(), NONE)
    work = np.append(trace.device_events["event"].to_numpy(), NONE)
    after_sync = work[np.where(is_sync, waits.awaited, NONE)]
    after_call = np.append(outermost, NONE)[before]
    return PathEdges(
        kind=np.where(is_sync, SYNC, kind).astype(np.int8),
        event=np.where(is_sync, calls[waits.call], outermost),
        awaited=np.where(is_sync, after_sync, after_call),
    )
