"""What the host was at during a time: for gaps on the device, and stalls of the loop."""

import numpy as np
import pandas as pd

from stepscope.analyses import references
from stepscope.trace import Trace, computed

NOTHING = "no recorded activity"


@computed
def main_thread(trace: Trace) -> str:
    """Return the thread that runs the loop: that of the steps, else the one with most calls."""
    if len(trace.steps):
        return str(trace.steps["thread"].iloc[0])
    for calls in (trace.host_calls, trace.runtime_calls):
        if len(calls):
            codes = calls["thread"].cat.codes.to_numpy()
            return str(calls["thread"].cat.categories[int(np.bincount(codes).argmax())])
    return ""


def activity_during(trace: Trace, start_ns: int, end_ns: int) -> str:
    """Name what the main thread did for most of a time.

    The user's Python frame that fills it, else the operator or `record_function` range that covers
    most of it, with the runtime call in it, else that nothing was recorded.
    """
    thread = main_thread(trace)
    frame = references.longest_frame_within(trace, thread, start_ns, end_ns)
    place = frame or _covering(trace, trace.host_calls, thread, (start_ns, end_ns))
    call = call_during(trace, start_ns, end_ns)
    if call and place:
        return f"{call}, called from {place}"
    return call or place or NOTHING


def call_during(trace: Trace, start_ns: int, end_ns: int) -> str:
    """Name the runtime call in which the main thread was for most of a time, or ""."""
    return _covering(trace, trace.runtime_calls, main_thread(trace), (start_ns, end_ns))


def _covering(trace: Trace, calls: pd.DataFrame, thread: str, during_ns: tuple[int, int]) -> str:
    """Return the innermost call that covers most of a time, or ""."""
    start_ns, end_ns = during_ns
    begin, stop = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    covered = np.minimum(stop, end_ns) - np.maximum(begin, start_ns)
    fits = (2 * covered >= end_ns - start_ns) & (calls["thread"] == thread).to_numpy()
    fits &= ~calls["event"].isin(trace.steps["event"]).to_numpy()
    rows = np.flatnonzero(fits)
    if not len(rows):
        return ""
    best = rows[np.lexsort((begin[rows], covered[rows]))[-1]]
    return str(calls["name"].iloc[best])
