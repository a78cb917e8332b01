"""What some host calls launched on the devices, wherever in their call tree that was."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses import ancestry
from stepscope.analyses.links import calls_around_runtime_calls, links
from stepscope.trace import Trace

NONE = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class LaunchedWork:
    """Device events and the calls that launched them; all arrays are parallel."""

    events: NDArray[np.int64]
    """Rows of `device_events`, in their order."""
    callers: NDArray[np.int64]
    """Which of the host calls launched each: a row of `host_calls`."""
    launches: NDArray[np.int64]
    """Rows of `runtime_calls`, one for all events of a graph; below 0, each another, where the
    launch is known by a flow only."""
    launch_ns: NDArray[np.int64]
    """When the launch began; of a flow, when its operator did."""

    def launch_count(self, chosen: NDArray[np.bool_]) -> int:
        """Return how many launches brought the chosen events."""
        return len(np.unique(self.launches[chosen]))


def outermost(trace: Trace, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return those of the chosen host calls (a mask) that lie in no other chosen one, as rows."""
    rows = np.flatnonzero(chosen)
    parent = trace.host_calls["parent"].to_numpy()
    return np.asarray(rows[ancestry.nearest_of(parent, parent[rows], chosen) == NONE])


def launched_work(trace: Trace, rows: NDArray[np.int64]) -> LaunchedWork:
    """Return what these rows of `host_calls`, of which none lies in another, launched."""
    parent = trace.host_calls["parent"].to_numpy()
    wanted = np.zeros(len(parent), dtype=bool)
    wanted[rows] = True
    linked = links(trace)
    call = linked.call_of_device_event
    around = np.append(calls_around_runtime_calls(trace), NONE)[call]
    around = np.where(around == NONE, linked.owner_of_device_event, around)
    caller = ancestry.nearest_of(parent, around, wanted)
    events = np.flatnonzero(caller != NONE)
    call, around = call[events], around[events]
    begin = np.append(trace.runtime_calls["start_ns"].to_numpy(), 0)[call]
    return LaunchedWork(
        events=events,
        callers=caller[events],
        launches=np.where(call == NONE, -1 - events, call),
        launch_ns=np.where(call == NONE, trace.host_calls["start_ns"].to_numpy()[around], begin),
    )
