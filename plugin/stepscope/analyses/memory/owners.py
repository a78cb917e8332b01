"""In which operator, module and Python function memory was allocated or given back.

Memory events carry no operator: each belongs to the innermost call that ran on its thread at its
time, from the call's start up to, not including, its end, as in torch-tb-profiler
(`memory_parser.py`). torch's `key_averages()` counts an event for every call of that time, on any
thread, and for both of two calls of which one ends where the other begins
(`profiler_util.MemRecordsAcc.in_interval`).
"""

import re

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.call_paths import python_calls_at, python_nesting
from stepscope.analyses.core.links import enclosing_call
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

MODULE_NAME = re.compile(r"^nn\.Module: ")
"""How torch's Python tracer names calls of modules (`torch/csrc/profiler/collection.cpp`)."""


@computed
def calls_around(trace: Trace) -> NDArray[np.int64]:
    """Return, for each row of `memory`, the innermost operator or annotation: its row, or -1."""
    return enclosing_call(trace, trace.memory)


@computed
def operators_around(trace: Trace) -> NDArray[np.int64]:
    """Return, for each row of `memory`, the innermost operator: its row in `host_calls`, or -1."""
    return _nearest_operators(trace, calls_around(trace))


@computed
def callers_of_operators(trace: Trace) -> NDArray[np.int64]:
    """Return, for each row of `host_calls`, the operator that it was called from, or -1."""
    return _nearest_operators(trace, trace.host_calls["parent"].to_numpy())


@computed
def modules_around(trace: Trace) -> NDArray[np.int64]:
    """Return, for each row of `memory`, the innermost `nn.Module` call: a `python_calls` row."""
    is_module = name_mask(trace.python_calls["name"], MODULE_NAME.match)
    parent = python_nesting(trace).parent
    return ancestry.nearest_of(parent, python_calls_around(trace), is_module)


@computed
def python_calls_around(trace: Trace) -> NDArray[np.int64]:
    """Return, for each row of `memory`, the innermost Python call: its row, or -1."""
    memory = trace.memory
    moments = memory["thread"].cat.codes.to_numpy(), memory["start_ns"].to_numpy()
    return python_calls_at(trace, moments)


def _nearest_operators(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for rows of `host_calls`, themselves if operators, else the nearest one around."""
    calls = trace.host_calls
    return ancestry.nearest_of(calls["parent"].to_numpy(), rows, calls["is_operator"].to_numpy())
