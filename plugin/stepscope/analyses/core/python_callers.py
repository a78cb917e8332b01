"""The Python function from which each operator and annotation was called."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.call_paths import Paths, merge_calls
from stepscope.model import call_tree
from stepscope.model.frames.spans import spans
from stepscope.model.trace import Trace, computed

Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class PythonCallers:
    """Python callers of host calls, as rows of `python_calls`."""

    caller: Rows
    """For each row of `host_calls`, the innermost Python call around its start, or -1."""
    nesting: call_tree.Nesting
    """Of `python_calls`."""


@computed
def python_callers(trace: Trace) -> PythonCallers:
    """Return the Python call around each operator and annotation, and the nesting."""
    thread, start_ns, _ = spans(trace.host_calls)
    return PythonCallers(
        caller=python_calls_at(trace, (thread, start_ns)), nesting=python_nesting(trace)
    )


@computed
def python_nesting(trace: Trace) -> call_tree.Nesting:
    """Return the nesting of `python_calls`."""
    thread, start_ns, _ = spans(trace.python_calls)
    return call_tree.nest(thread, start_ns, trace.python_calls["duration_ns"].to_numpy())


@computed
def python_paths(trace: Trace) -> Paths:
    """Return the paths of Python calls by their names' codes; a missing name has the last code."""
    names = trace.python_calls["name"].cat
    codes, count = names.codes.to_numpy().astype(np.int64), len(names.categories)
    codes[codes < 0] = count
    nesting = python_nesting(trace)
    return merge_calls(nesting.parent, nesting.depth, codes, count + 1)


def python_calls_at(trace: Trace, moments: call_tree.Moments) -> Rows:
    """Return the innermost Python call around each moment of a thread, or -1."""
    nesting = python_nesting(trace)
    calls = spans(trace.python_calls)
    return call_tree.innermost_at(calls, nesting.parent, nesting.order, moments)
