"""Links from autograd's backward calls to the forward operators that made their nodes.

Autograd numbers its nodes on each thread. An operator carries the number that the next node on its
thread will get; a node carries its number and torch's number of that thread (`Sequence number`,
`Fwd thread id`). So a node belongs to the last operator that began with its number, as in kineto's
arrows `fwdbwd` (`torch/csrc/profiler/kineto_shim`, `generateForwardBackwardLinks`). torch's
`key_averages(group_by_stack_n=…)` takes the first instead (`_set_backward_stacktraces`), which may
be any operator since the node before.

Numbers take precedence over arrows, which are tied to calls by time alone. Arrows identify the
thread that a torch thread number stands for, and replace missing numbers.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.links import event_of_flow, flow_events, rows_of_keys
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

WRAPPER = "autograd::engine::evaluate_function: "
"""Prefix of the engine's call around a node, which runs it and accumulates gradients."""
FLOW = "fwdbwd"


@dataclass(frozen=True, kw_only=True, eq=False)
class ForwardBackward:
    """Rows of `host_calls`; all arrays are parallel to it."""

    node: Ints
    """The innermost autograd node that each call is, or runs in; -1: forward pass."""
    wrapper: Ints
    """Of a node, the engine's call around it; else -1."""
    forward: Ints
    """Of a node, the operator that made it; -1: unknown, or not a node."""
    differing_count: int
    """Nodes for which number and arrow give different operators."""


@computed
def forward_backward(trace: Trace) -> ForwardBackward:
    """Link backward calls to forward ones."""
    calls = trace.host_calls
    parent = calls["parent"].to_numpy()
    is_wrapper = name_mask(calls["name"], lambda name: name.startswith(WRAPPER))
    is_wrapped = _are_wrapped(calls)
    is_operator = calls["is_operator"].to_numpy()
    is_numbered = (calls["forward_thread_id"].to_numpy() > 0) & is_operator
    is_node = (is_numbered & ~is_wrapper) | is_wrapped
    nodes = np.flatnonzero(is_node)
    forward = np.full(len(calls), NONE, dtype=np.int64)
    makers = np.flatnonzero(
        is_operator & ~is_node & ~is_wrapper & (calls["sequence_number"].to_numpy() >= 0)
    )
    by_arrow = _by_arrow(trace, nodes, makers)
    by_number = _by_number(calls, nodes, makers, by_arrow)
    forward[nodes] = np.where(by_number != NONE, by_number, by_arrow)
    has_both = (by_number != NONE) & (by_arrow != NONE)
    return ForwardBackward(
        node=ancestry.nearest(parent, is_node),
        wrapper=np.where(is_wrapped, parent, NONE),
        forward=forward,
        differing_count=int((has_both & (by_number != by_arrow)).sum()),
    )


def _are_wrapped(calls: pd.DataFrame) -> Mask:
    """Return which calls are nodes inside the engine's wrapper of the same name."""
    named_calls = calls["name"].cat
    code_of = {str(name): code for code, name in enumerate(named_calls.categories)}
    wrapper = [code_of.get(WRAPPER + str(name), NONE) for name in named_calls.categories]
    expected, codes = np.array([*wrapper, NONE]), named_calls.codes.to_numpy()
    rows = np.flatnonzero((expected != NONE)[codes])
    parent = calls["parent"].to_numpy()[rows]
    is_operator = calls["is_operator"].to_numpy()
    is_wrapped = np.zeros(len(calls), dtype=bool)
    is_wrapped[rows] = (parent != NONE) & is_operator[rows] & is_operator[parent]
    is_wrapped[rows] &= codes[parent] == expected[codes[rows]]
    return is_wrapped


def _by_number(calls: pd.DataFrame, nodes: Ints, makers: Ints, by_arrow: Ints) -> Ints:
    """Return the last operator with each node's number on the node's forward thread, or -1."""
    thread = calls["thread"].cat.codes.to_numpy().astype(np.int64)
    number, _ = pd.factorize(calls["sequence_number"].to_numpy())
    thread_id = calls["forward_thread_id"].to_numpy()[nodes]
    made_on = _threads(thread, number, nodes, makers, (thread_id, by_arrow))
    size = int(thread.max(initial=0)) + 2
    keys = np.where(made_on >= 0, number[nodes] * size + made_on, NONE)
    last_first = makers[::-1]
    row = rows_of_keys(keys, number[last_first] * size + thread[last_first])
    return np.append(last_first, NONE)[row]


def _threads(
    thread: Ints, number: Ints, nodes: Ints, makers: Ints, hints: tuple[Ints, Ints]
) -> Ints:
    """Return each node's forward thread, or -1.

    torch's thread numbers are not the system's. Arrows map them, else operators whose sequence
    number occurs on one thread only. `hints` are torch's thread number and the arrow's operator.
    """
    thread_id, by_arrow = hints
    lowest = np.full(int(number.max(initial=0)) + 1, np.iinfo(np.int64).max)
    highest = np.full(len(lowest), NONE)
    np.minimum.at(lowest, number[makers], thread[makers])
    np.maximum.at(highest, number[makers], thread[makers])
    only = np.where(lowest == highest, highest, NONE)[number[nodes]]
    seen = np.where(by_arrow != NONE, np.append(thread, NONE)[by_arrow], NONE)
    made_on = np.full(len(nodes), NONE, dtype=np.int64)
    for candidates in (only, seen):  # arrows take precedence
        is_valid = (candidates != NONE) & (thread_id > 0)
        votes_by_id = pd.DataFrame(
            {"id": thread_id[is_valid], "thread": candidates[is_valid]}
        ).value_counts()
        first = (
            votes_by_id.index.to_frame(index=False).drop_duplicates("id").set_index("id")["thread"]
        )
        likeliest = first.reindex(thread_id, fill_value=NONE).to_numpy()
        made_on = np.where(likeliest != NONE, likeliest, made_on)
    return made_on


def _by_arrow(trace: Trace, nodes: Ints, makers: Ints) -> Ints:
    """Return the operator at whose start each node's arrow begins, or -1."""
    forward = np.full(len(nodes), NONE, dtype=np.int64)
    starts, ends = flow_events(trace, FLOW, "s"), flow_events(trace, FLOW, "f")
    if not len(starts) or not len(ends):
        return forward
    event, identifier = trace.host_calls["event"].to_numpy(), trace.columns.identifier
    origin = np.append(makers, NONE)[event_of_flow(trace, starts, event[makers])]
    target = event_of_flow(trace, ends, event[nodes])
    start = rows_of_keys(identifier[ends].astype(np.int64), identifier[starts].astype(np.int64))
    reached = (target != NONE) & (start != NONE)
    forward[target[reached]] = origin[start[reached]]
    return forward
