"""The Python function from which each operator and annotation was called."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope import call_tree
from stepscope.analyses.links import spans
from stepscope.trace import Trace, computed

NONE = -1
MOST_STEPS = 64
"""Calls nested deeper than this are looked up one by one (`call_tree.enclosing`)."""
Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class PythonCallers:
    """Who called what, by rows of `python_calls`."""

    caller: Rows
    """For each row of `host_calls`, the innermost Python call around its start, or -1."""
    nesting: call_tree.Nesting
    """Of `python_calls`."""


@computed
def python_callers(trace: Trace) -> PythonCallers:
    """Return the Python call around each operator and annotation, and how Python calls nest."""
    python = trace.python_calls
    thread, start_ns, _ = spans(python)
    nesting = call_tree.nest(thread, start_ns, python["duration_ns"].to_numpy())
    return PythonCallers(caller=_callers(python, nesting, trace.host_calls), nesting=nesting)


def _callers(python: pd.DataFrame, nesting: call_tree.Nesting, calls: pd.DataFrame) -> Rows:
    """Return what `call_tree.enclosing` does: from the call begun last, up to one not over yet."""
    asked_ns, end_ns = calls["start_ns"].to_numpy(), python["end_ns"].to_numpy()
    caller = _last_begun(python, nesting.depth, calls)
    over = np.flatnonzero(caller != NONE)
    over = over[end_ns[caller[over]] <= asked_ns[over]]
    for _ in range(MOST_STEPS):
        if not len(over):
            return caller
        caller[over] = nesting.parent[caller[over]]
        over = over[caller[over] != NONE]
        over = over[end_ns[caller[over]] <= asked_ns[over]]
    thread, start_ns, _ = spans(calls)
    left = thread[over], start_ns[over], start_ns[over]
    caller[over] = call_tree.enclosing(spans(python), left)
    return caller


def _last_begun(python: pd.DataFrame, depth: Rows, calls: pd.DataFrame) -> Rows:
    """Return the Python call begun last before each call on its thread; of equal ones the inner."""
    order = _by_thread(python, depth)
    thread, start_ns, _ = (column[order] for column in spans(python))
    of_call, asked_ns, _ = spans(calls)
    begun = np.full(len(calls), NONE, dtype=np.int64)
    by_thread = np.argsort(of_call, kind="stable")
    codes, first = np.unique(of_call[by_thread], return_index=True)
    borders = np.searchsorted(thread, np.append(codes, codes + 1))
    low, high = borders.reshape(2, -1).tolist()
    parts = np.split(by_thread, first[1:]) if len(codes) else []
    for asked, begin, end in zip(parts, low, high, strict=True):
        place = np.searchsorted(start_ns[begin:end], asked_ns[asked], side="right")
        begun[asked] = np.append(NONE, order[begin:end])[place]
    return begun


def _by_thread(python: pd.DataFrame, depth: Rows) -> Rows:
    """Return the rows by thread, then start, as they are; of equal ones the outer first."""
    thread, start_ns, _ = spans(python)
    order = np.argsort(thread, kind="stable")
    is_like_next = np.diff(start_ns[order]) == 0
    is_like_next &= np.diff(thread[order].astype(np.int64)) == 0
    alike = np.flatnonzero(np.append(is_like_next, False) | np.append(False, is_like_next))
    rows = order[alike]
    order[alike] = rows[np.lexsort((depth[rows], start_ns[rows], thread[rows]))]
    return order
