"""Operators that Python called on the main thread, in order, and backward nodes of operators."""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import ancestry, frame_times
from stepscope.analyses.core.forward_backward import WRAPPER, forward_backward
from stepscope.analyses.core.host_activity import main_thread
from stepscope.analyses.core.window import window
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True, eq=False)
class PythonOperators:
    """Outermost operators of the main thread in the window, without backward passes."""

    rows: Ints
    """Rows of `host_calls`, in the order they began."""
    step: Ints
    """Number of the step (row of `Trace.steps`) in which each began; -1: in none."""


@computed
def python_operators(trace: Trace) -> PythonOperators:
    """Return the operators that no other operator called, on the thread of the training loop."""
    calls, span = trace.host_calls, window(trace)
    is_operator = calls["is_operator"].to_numpy()
    parent = calls["parent"].to_numpy()
    above = ancestry.nearest(parent, is_operator)
    outer = np.where(parent == NONE, NONE, np.append(above, NONE)[parent])
    start = calls["start_ns"].to_numpy()
    is_outermost = (
        is_operator & (outer == NONE) & (calls["thread"] == main_thread(trace)).to_numpy()
    )
    is_outermost &= (start >= span.start_ns) & (start < span.end_ns)
    is_outermost &= (forward_backward(trace).node == NONE) & ~name_mask(
        calls["name"], lambda name: name.startswith(WRAPPER)
    )
    rows = np.flatnonzero(is_outermost)
    steps = trace.steps
    step = np.searchsorted(steps["start_ns"].to_numpy(), start[rows], side="right") - 1
    is_inside = (step != NONE) & (start[rows] < np.append(steps["end_ns"].to_numpy(), 0)[step])
    return PythonOperators(rows=rows, step=np.where(is_inside, step, NONE))


def backward_times(trace: Trace, rows: Ints) -> Intervals:
    """Return the times of the backward nodes of operators (rows of `host_calls`), with the engine.

    Operators that the rows call count as well.
    """
    return frame_times.times(trace.host_calls, backward_calls(trace, rows))


def backward_calls(trace: Trace, rows: Ints) -> Ints:
    """Return the backward nodes of operators, or the engine's calls around them, as rows.

    Operators that the rows call count as well.
    """
    calls, links = trace.host_calls, forward_backward(trace)
    is_selected = np.zeros(len(calls), dtype=bool)
    is_selected[rows] = True
    around = ancestry.nearest(calls["parent"].to_numpy(), is_selected)
    nodes = np.flatnonzero(links.forward != NONE)
    nodes = nodes[around[links.forward[nodes]] != NONE]
    wrapped = links.wrapper[nodes]
    return np.asarray(np.where(wrapped != NONE, wrapped, nodes))
