"""What the rules on DistributedDataParallel have in common."""

import re

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry, event_references, frame_times
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.links import calls_around_runtime_calls, links
from stepscope.analyses.core.window import window
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import EventReference
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace

FORWARD = re.compile(r"^DistributedDataParallel\.forward$")
REDUCER = "torch.distributed.ddp.reducer::"
DOCUMENTATION = (
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
)
SHOWN_COUNT = 10
OURS = re.compile(rf"^DistributedDataParallel\.forward$|^{REDUCER}")


def insist(trace: Trace) -> None:
    """Insist that DistributedDataParallel ran.

    Raises:
        NotApplicableError: nothing of it was recorded.
    """
    if not any(OURS.search(str(name)) for name in trace.host_calls["name"].cat.categories):
        msg = "no DistributedDataParallel ran"
        raise NotApplicableError(msg)


def calls(trace: Trace, name: str) -> NDArray[np.int64]:
    """Return the rows of `host_calls` of this name that began within the window."""
    span, frame = window(trace), trace.host_calls
    start = frame["start_ns"].to_numpy()
    inside = (start >= span.start_ns) & (start < span.end_ns)
    return np.flatnonzero(name_mask(frame["name"], name.__eq__) & inside)


def forward_count(trace: Trace) -> int:
    """Return how many forward passes of DistributedDataParallel began within the window."""
    return len(calls(trace, "DistributedDataParallel.forward"))


def host_loss(trace: Trace, rows: NDArray[np.int64]) -> Intervals:
    """Return when the host was in these calls while no device worked, within the window."""
    span = window(trace)
    times = intervals.difference(frame_times.times(trace.host_calls, rows), all_busy(trace))
    return intervals.clip(times, span.start_ns, span.device_end_ns)


def longest(trace: Trace, rows: NDArray[np.int64]) -> tuple[EventReference, ...]:
    """Name the longest of these calls."""
    order = np.argsort(-trace.host_calls["duration_ns"].to_numpy()[rows], kind="stable")
    return tuple(event_references.host_call(trace, int(row)) for row in rows[order[:SHOWN_COUNT]])


def launched_under(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of `device_events` within the window that these calls launched."""
    span, events = window(trace), trace.device_events
    call = links(trace).call_of_device_event
    around = np.append(calls_around_runtime_calls(trace), ancestry.NONE)[call]
    is_wanted = np.zeros(len(trace.host_calls), dtype=bool)
    is_wanted[rows] = True
    parent = trace.host_calls["parent"].to_numpy()
    is_under = ancestry.nearest_of(parent, around, is_wanted) != ancestry.NONE
    return np.flatnonzero(is_under & (events["start_ns"].to_numpy() < span.device_end_ns))
