"""Device work launched by host calls and their nested calls."""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.links import calls_around_runtime_calls, links
from stepscope.dialects import LAUNCH_NAME
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class LaunchedWork:
    """Launches and their device events.

    A graph's launch has many events; a launch whose device event is missing has none. An event
    linked only by a flow is its own launch.
    """

    callers: Ints
    """Host call that made each launch, as a row of `host_calls`."""
    start_ns: Ints
    """Start of each launch; for a flow, of its operator."""
    events: Ints
    """Rows of `device_events`, in order."""
    launch_of_event: Ints
    """Index of each event's launch."""

    def select(self, mask: Mask) -> "LaunchedWork":
        """Return the launches of a mask, and their events."""
        with_event = mask[self.launch_of_event]
        index = np.cumsum(mask) - 1
        return LaunchedWork(
            callers=self.callers[mask],
            start_ns=self.start_ns[mask],
            events=self.events[with_event],
            launch_of_event=index[self.launch_of_event[with_event]],
        )


def outermost(trace: Trace, mask: Mask) -> Ints:
    """Return the masked host calls that lie in no other masked call, as rows."""
    rows = np.flatnonzero(mask)
    parent = trace.host_calls["parent"].to_numpy()
    return np.asarray(rows[ancestry.nearest_of(parent, parent[rows], mask) == NONE])


def launched_work(trace: Trace, rows: Ints) -> LaunchedWork:
    """Return the work launched by these rows of `host_calls`, of which none lies in another."""
    linked, calls, host = links(trace), trace.runtime_calls, trace.host_calls
    call, owner = linked.call_of_device_event, linked.owner_of_device_event
    is_launch = name_mask(calls["name"], LAUNCH_NAME.search)
    is_launch[call[call != NONE]] = True
    by_flow = (call == NONE) & (owner != NONE)
    around = np.concatenate((calls_around_runtime_calls(trace)[is_launch], owner[by_flow]))
    launch = np.append(np.cumsum(is_launch) - 1, NONE)[call]
    launch[by_flow] = is_launch.sum() + np.arange(by_flow.sum())
    is_caller = np.zeros(len(host), dtype=bool)
    is_caller[rows] = True
    work = LaunchedWork(
        callers=ancestry.nearest_of(host["parent"].to_numpy(), around, is_caller),
        start_ns=np.concatenate(
            (calls["start_ns"].to_numpy()[is_launch], host["start_ns"].to_numpy()[owner[by_flow]])
        ),
        events=np.flatnonzero(launch != NONE),
        launch_of_event=launch[launch != NONE],
    )
    return work.select(work.callers != NONE)
