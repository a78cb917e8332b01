"""Calls of DistributedDataParallel, and the device work that they launch."""

import re

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry, frame_times
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.links import calls_around_runtime_calls, links
from stepscope.analyses.core.window import window
from stepscope.model import intervals
from stepscope.model.arrays import NONE
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import applies_if

FORWARD = re.compile(r"^DistributedDataParallel\.forward$")
REDUCER = "torch.distributed.ddp.reducer::"
DOCUMENTATION = (
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
)
OF_DDP = re.compile(rf"^DistributedDataParallel\.forward$|^{REDUCER}")


def require_ddp(trace: Trace) -> None:
    """Raise NotApplicableError unless DistributedDataParallel ran."""
    names = trace.host_calls["name"].cat.categories
    applies_if(any(OF_DDP.search(str(name)) for name in names), "no DistributedDataParallel ran")


def calls(trace: Trace, name: str) -> NDArray[np.int64]:
    """Return the rows of `host_calls` of this name that began in the window."""
    span, frame = window(trace), trace.host_calls
    start = frame["start_ns"].to_numpy()
    inside = (start >= span.start_ns) & (start < span.end_ns)
    return np.flatnonzero(name_mask(frame["name"], name.__eq__) & inside)


def forward_count(trace: Trace) -> int:
    """Return the number of forward passes of DistributedDataParallel that began in the window."""
    return len(calls(trace, "DistributedDataParallel.forward"))


def host_loss(trace: Trace, rows: NDArray[np.int64]) -> Intervals:
    """Return the times in the window in which the host was in these calls and no device worked."""
    span = window(trace)
    times = intervals.difference(frame_times.times(trace.host_calls, rows), all_busy(trace))
    return intervals.clip(times, span.device_start_ns, span.device_end_ns)


def launched_under(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of `device_events` in the window that these calls launched."""
    span, events = window(trace), trace.device_events
    call = links(trace).call_of_device_event
    around = np.append(calls_around_runtime_calls(trace), NONE)[call]
    mask = np.zeros(len(trace.host_calls), dtype=bool)
    mask[rows] = True
    parent = trace.host_calls["parent"].to_numpy()
    is_under = ancestry.nearest_of(parent, around, mask) != NONE
    return np.flatnonzero(is_under & (events["start_ns"].to_numpy() < span.device_end_ns))
