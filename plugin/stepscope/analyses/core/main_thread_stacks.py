"""The main thread's innermost user function and annotation at every moment."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core.event_references import user_calls
from stepscope.analyses.core.host_activity import main_thread
from stepscope.model import call_tree
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.steps import STEP_NAME
from stepscope.model.trace import Trace, computed


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
