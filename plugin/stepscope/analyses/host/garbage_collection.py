"""Times of Python's garbage collector, automatic or by `gc.collect()`.

torch 2.9 and later record its runs with `record_python_gc_info=True`, as functions named `Python
GC`; calls of `gc.collect()` are recorded with stacks.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.event_references import user_calls
from stepscope.analyses.core.frame_times import times
from stepscope.analyses.core.window import window
from stepscope.analyses.host.library_detection import COLLECTION
from stepscope.base.errors import MissingDataError
from stepscope.model import call_tree, intervals
from stepscope.model.arrays import Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.spans import spans
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace

RUN = re.compile(r"^Python GC")
RECORD = (
    "torch.profiler.profile(..., with_stack=True, experimental_config="
    "torch.profiler._ExperimentalConfig(record_python_gc_info=True))  # without schedule="
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Collections:
    """The collector's runs in the window."""

    rows: Ints
    """Rows of `python_calls`: outermost runs and calls of `gc.collect()`."""
    times: Intervals
    """Times of all of them."""
    explicit: Intervals
    """Times in `gc.collect()`."""
    lines: tuple[str, ...]
    """The user's line around each row, or ""."""


def collections(trace: Trace) -> Collections:
    """Return the times of garbage collection.

    Raises:
        MissingDataError: neither its runs nor calls of it were recorded.
    """
    calls = trace.python_calls
    is_run = name_mask(calls["name"], RUN.search)
    is_call = name_mask(calls["name"], COLLECTION.search) & ~is_run
    if not (is_run | is_call).any():
        msg = "no run of Python's garbage collector was recorded"
        raise MissingDataError(msg, RECORD)
    span = window(trace)
    inside = (calls["end_ns"] > span.start_ns) & (calls["start_ns"] < span.end_ns)
    rows = _outermost(trace, np.flatnonzero((is_run | is_call) & inside.to_numpy()))
    functions = user_calls(trace)
    around = call_tree.enclosing(spans(functions), spans(calls.iloc[rows]))
    names = functions["name"].astype(str).to_numpy()
    bounds = span.start_ns, span.end_ns
    return Collections(
        rows=rows,
        times=intervals.clip(times(calls, rows), *bounds),
        explicit=intervals.clip(times(calls, is_call), *bounds),
        lines=tuple(str(names[row]) if row >= 0 else "" for row in around.tolist()),
    )


def _outermost(trace: Trace, rows: Ints) -> Ints:
    """Return the rows that lie in no other one: `gc.collect()` is a run, too."""
    calls = trace.python_calls.iloc[rows]
    thread = calls["thread"].cat.codes.to_numpy()
    nesting = call_tree.nest(thread, calls["start_ns"].to_numpy(), calls["duration_ns"].to_numpy())
    return rows[nesting.parent < 0]
