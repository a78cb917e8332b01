"""Backward nodes that earlier steps made: graphs that a step's backward pass still goes through."""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.forward_backward import forward_backward
from stepscope.analyses.core.window import complete_steps
from stepscope.model.arrays import NONE, Ints
from stepscope.model.trace import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class OlderGraphs:
    """Backward passes of complete steps."""

    rows: Ints
    """The engine's calls (rows of `host_calls`) of nodes that were made before their step."""
    older_per_step: Ints
    """Number of these in each complete step."""
    nodes_per_step: Ints
    """Number of all nodes with a sequence number in each complete step."""


def older_graphs(trace: Trace) -> OlderGraphs:
    """Return the nodes whose forward operator ran before the step, or before the trace."""
    calls, links, steps = trace.host_calls, forward_backward(trace), complete_steps(trace).steps
    start_ns = calls["start_ns"].to_numpy()
    numbered = (links.wrapper != NONE) & (calls["sequence_number"].to_numpy() >= 0)
    nodes = np.flatnonzero(numbered)
    step = np.searchsorted(steps["start_ns"].to_numpy(), start_ns[nodes], side="right") - 1
    inside = (step != NONE) & (start_ns[nodes] < np.append(steps["end_ns"].to_numpy(), 0)[step])
    nodes, step = nodes[inside], step[inside]
    forward = links.forward[nodes]
    made_ns = np.where(forward != NONE, start_ns[forward], NONE)
    is_older = made_ns < steps["start_ns"].to_numpy()[step]
    return OlderGraphs(
        rows=links.wrapper[nodes[is_older]],
        older_per_step=np.bincount(step[is_older], minlength=len(steps)),
        nodes_per_step=np.bincount(step, minlength=len(steps)),
    )
