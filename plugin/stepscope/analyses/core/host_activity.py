"""The host's main thread: its activity during a time, and its stack at every moment."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core import event_references
from stepscope.analyses.core.event_references import user_calls
from stepscope.model import call_tree
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.steps import STEP_NAME
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


@dataclass(frozen=True, kw_only=True, eq=False)
class MainThreadStacks:
    """Consecutive stretches that cover all time; all arrays are parallel."""

    start_ns: Ints
    """The first is the least int64."""
    function: Ints
    """The user's innermost function: a code of `user_calls`' names, or -1."""
    annotation: Ints
    """The innermost annotation other than a step: a code of `host_calls`' names, or -1."""

    def at(self, moment_ns: Ints) -> Ints:
        """Return the stretch of each moment."""
        return np.searchsorted(self.start_ns, moment_ns, side="right") - 1

    def cut(self, start_ns: Ints, end_ns: Ints) -> tuple[Ints, Ints, Ints]:
        """Cut times at the stretches' borders.

        Returns:
            For each piece: the index of its time, its stretch, and its duration in ns.
        """
        first, last = self.at(start_ns), np.searchsorted(self.start_ns, end_ns, side="left") - 1
        counts = np.maximum(last - first + 1, 0)
        owner = np.repeat(np.arange(len(start_ns)), counts)
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        stretch = first[owner] + offset
        until = np.append(self.start_ns[1:], np.iinfo(np.int64).max)[stretch]
        begin = np.maximum(self.start_ns[stretch], start_ns[owner])
        return owner, stretch, np.minimum(until, end_ns[owner]) - begin


@computed
def main_thread_stacks(trace: Trace) -> MainThreadStacks:
    """Return the main thread's stretches; without `with_stack` they have no functions."""
    main = main_thread(trace)
    functions = user_calls(trace)
    functions = functions[(functions["thread"] == main).to_numpy()]
    calls = trace.host_calls
    is_annotation = ~calls["is_operator"].to_numpy() & ~name_mask(calls["name"], STEP_NAME.match)
    rows = np.flatnonzero(is_annotation)
    annotations = calls[["name", "thread", "start_ns", "end_ns"]].iloc[rows]
    annotations = annotations[(annotations["thread"] == main).to_numpy()]
    borders = [frame[name].to_numpy() for frame in (functions, annotations) for name in TIMES]
    moments = np.concatenate((np.array([np.iinfo(np.int64).min]), *borders))
    start = np.sort(pd.unique(moments))
    return MainThreadStacks(
        start_ns=start,
        function=_innermost(functions, start),
        annotation=_innermost(annotations, start),
    )


TIMES = ("start_ns", "end_ns")


def _innermost(frame: pd.DataFrame, moment_ns: Ints) -> Ints:
    """Return the name's code of the innermost row around each moment, or -1."""
    one_thread = np.zeros(len(frame), dtype=np.int8)
    outer = one_thread, frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy()
    at = np.zeros(len(moment_ns), dtype=np.int8), moment_ns, moment_ns
    row = call_tree.enclosing(outer, at)
    return np.append(frame["name"].cat.codes.to_numpy().astype(np.int64), NONE)[row]
