"""The host's main thread, and a description of the host's activity during a time."""

import numpy as np
import pandas as pd

from stepscope.analyses.core import event_references
from stepscope.model.trace import Trace, computed

NOTHING = "no recorded activity"


@computed
def main_thread(trace: Trace) -> str:
    """Return the thread that runs the training loop: the steps', else the one with most calls."""
    if len(trace.steps):
        return str(trace.steps["thread"].iloc[0])
    for calls in (trace.host_calls, trace.runtime_calls):
        if len(calls):
            codes = calls["thread"].cat.codes.to_numpy()
            return str(calls["thread"].cat.categories[int(np.bincount(codes).argmax())])
    return ""


def activity_during(trace: Trace, start_ns: int, end_ns: int) -> str:
    """Describe the host's activity for most of a time: of the main thread, else of any thread.

    By the user's Python frame, else the operator or `record_function` range, and the runtime call.
    """
    during = (start_ns, end_ns)
    main = main_thread(trace)
    frame = event_references.longest_frame_during(trace, main, start_ns, end_ns)
    location = frame or _covering(trace, trace.host_calls, during, main)
    call = _covering(trace, trace.runtime_calls, during, main)
    if not location and not call:  # the backward pass runs on threads of its own
        location = _covering(trace, trace.host_calls, during)
        call = _covering(trace, trace.runtime_calls, during)
    if call and location:
        return f"{call}, called from {location}"
    return call or location or NOTHING


def call_during(trace: Trace, start_ns: int, end_ns: int) -> str:
    """Return the name of the runtime call that covers most of a time, or ""."""
    during = (start_ns, end_ns)
    calls = trace.runtime_calls
    return _covering(trace, calls, during, main_thread(trace)) or _covering(trace, calls, during)


def _covering(
    trace: Trace, calls: pd.DataFrame, during_ns: tuple[int, int], thread: str = ""
) -> str:
    """Return the innermost call, on one thread or on any, that covers most of a time, or ""."""
    start_ns, end_ns = during_ns
    begin, stop = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    covered = np.minimum(stop, end_ns) - np.maximum(begin, start_ns)
    rows = np.flatnonzero(2 * covered >= end_ns - start_ns)  # few rows remain
    if thread:
        rows = rows[(calls["thread"].iloc[rows] == thread).to_numpy()]
    rows = rows[~calls["event"].iloc[rows].isin(trace.steps["event"]).to_numpy()]
    if not len(rows):
        return ""
    best = rows[np.lexsort((begin[rows], covered[rows]))[-1]]
    return str(calls["name"].iloc[best])
