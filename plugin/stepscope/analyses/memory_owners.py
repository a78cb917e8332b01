"""In which operator, module and Python function memory was allocated or given back.

Memory events carry no operator: each belongs to the innermost call that ran on its thread at its
time, from the call's start up to, not including, its end, as in torch-tb-profiler
(`memory_parser.py`). torch's `key_averages()` counts an event for every call of that time, on any
thread, and for both of two calls of which one ends where the other begins
(`profiler_util.MemRecordsAcc.in_interval`).
"""

import re

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope import call_tree
from stepscope.frames.naming import named
from stepscope.trace import Trace, computed

NONE = -1
MOST_ROUNDS = 64
"""Calls nested deeper than this are looked up one by one (`call_tree.enclosing`)."""
MODULE_NAME = re.compile(r"^nn\.Module: ")
"""How torch's Python tracer names calls of modules (`torch/csrc/profiler/collection.cpp`)."""
Spans = tuple[NDArray[np.integer], NDArray[np.int64], NDArray[np.int64]]


@computed
def calls_around(trace: Trace) -> NDArray[np.int64]:
    """Return, for each row of `memory`, the innermost operator or annotation: its row, or -1."""
    calls, memory = trace.host_calls, trace.memory
    thread, time_ns = memory["thread"].cat.codes.to_numpy(), memory["start_ns"].to_numpy()
    found = _last_begun(calls, thread, time_ns)
    end_ns = np.append(calls["end_ns"].to_numpy(), np.iinfo(np.int64).max)  # of row -1
    parent = calls["parent"].to_numpy()
    over = np.flatnonzero(end_ns[found] <= time_ns)
    for _ in range(MOST_ROUNDS):
        found[over] = parent[found[over]]
        over = over[end_ns[found[over]] <= time_ns[over]]
        if not len(over):
            return found
    left = thread[over], time_ns[over], time_ns[over]
    found[over] = call_tree.enclosing(_spans(calls), left)
    return found


@computed
def operators_around(trace: Trace) -> NDArray[np.int64]:
    """Return, for each row of `memory`, the innermost operator: its row in `host_calls`, or -1."""
    nearest = _nearest_operator(trace)
    found: NDArray[np.int64] = np.append(nearest, NONE)[calls_around(trace)]
    return found


@computed
def callers_of_operators(trace: Trace) -> NDArray[np.int64]:
    """Return, for each row of `host_calls`, the operator that it was called from, or -1."""
    calls = trace.host_calls
    found: NDArray[np.int64] = np.append(_nearest_operator(trace), NONE)[calls["parent"].to_numpy()]
    return found


@computed
def modules_around(trace: Trace) -> NDArray[np.int64]:
    """Return, for each row of `memory`, the innermost `nn.Module` call: a `python_calls` row."""
    return python_calls_around(trace, named(trace.python_calls["name"], MODULE_NAME.match))


def python_calls_around(trace: Trace, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return, for each row of `memory`, the innermost of the chosen `python_calls`, or -1."""
    rows = np.flatnonzero(chosen)
    thread, start_ns, end_ns = _spans(trace.python_calls)
    memory = trace.memory
    time_ns = memory["start_ns"].to_numpy()
    inner = memory["thread"].cat.codes.to_numpy(), time_ns, time_ns
    outer = thread[rows], start_ns[rows], end_ns[rows]
    return np.append(rows, NONE)[call_tree.enclosing(outer, inner)]


def _nearest_operator(trace: Trace) -> NDArray[np.int64]:
    """Return, for each host call, itself if it is an operator, else the nearest one around."""
    calls = trace.host_calls
    is_operator, parent = calls["is_operator"].to_numpy(), calls["parent"].to_numpy()
    nearest: NDArray[np.int64] = np.where(is_operator, np.arange(len(calls)), parent)
    going = np.flatnonzero(~is_operator & (nearest != NONE))
    going = going[~is_operator[nearest[going]]]
    while len(going):  # an annotation's is its parent's: twice as far each round
        nearest[going] = nearest[nearest[going]]
        going = going[nearest[going] != NONE]
        going = going[~is_operator[nearest[going]]]
    return nearest


def _last_begun(
    calls: pd.DataFrame, thread: NDArray[np.integer], time_ns: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return, for each time, the call that was begun last on the thread; of equal ones the inner.

    Calls and times are in the order of time.
    """
    of_call = calls["thread"].cat.codes.to_numpy()
    order = _by_thread(calls, of_call)
    query = np.argsort(thread, kind="stable")
    found = np.full(len(time_ns), NONE, dtype=np.int64)
    codes, first = np.unique(thread[query], return_index=True)
    sorted_thread, start_ns = of_call[order], calls["start_ns"].to_numpy()[order]
    low = np.asarray(np.searchsorted(sorted_thread, codes, side="left")).tolist()
    high = np.asarray(np.searchsorted(sorted_thread, codes, side="right")).tolist()
    asked_of = np.split(query, first[1:]) if len(query) else []
    for asked, begin, end in zip(asked_of, low, high, strict=True):
        begun = np.searchsorted(start_ns[begin:end], time_ns[asked], side="right")
        found[asked] = np.append(NONE, order[begin:end])[begun]
    return found


def _by_thread(calls: pd.DataFrame, thread: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the calls' rows by thread, then start; where starts are equal, the outer first."""
    order = np.argsort(thread, kind="stable")
    start_ns, where = calls["start_ns"].to_numpy()[order], thread[order]
    is_like_next = (where[1:] == where[:-1]) & (start_ns[1:] == start_ns[:-1])
    alike = np.flatnonzero(np.append(is_like_next, False) | np.append(False, is_like_next))
    rows = order[alike]
    depth = calls["depth"].to_numpy()[rows]
    order[alike] = rows[np.lexsort((depth, start_ns[alike], where[alike]))]
    return order


def _spans(frame: pd.DataFrame) -> Spans:
    return (
        frame["thread"].cat.codes.to_numpy(),
        frame["start_ns"].to_numpy(),
        frame["end_ns"].to_numpy(),
    )
