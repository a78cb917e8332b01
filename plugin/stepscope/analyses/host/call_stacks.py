"""Python stack and self time of each call, as torch's `export_stacks` writes them.

An event's stack is the Python functions that were running when it started, without itself. It is
recorded as text (`Call stack`, in 2021 and with `_ExperimentalConfig(verbose=True)`), or as the
Python calls around the event. As in torch (`EventList._set_backward_stacktraces`), calls in a
backward function have the stack of its forward operator: the first one of its sequence number on
the thread that `Fwd thread id` numbers, which may differ from `forward_backward`'s.

Device time belongs to the operator that launched it. Torch leaves out work without an operator
(Triton kernels called from Python); here it belongs to the runtime call, whose stack is known as
well.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from stepscope.analyses.core.call_paths import Paths, python_calls_at, python_paths
from stepscope.analyses.core.group_statistics import sums_where
from stepscope.analyses.core.links import links, rows_of_keys
from stepscope.analyses.host.host_call_tree import HostTree, host_tree
from stepscope.base.errors import MissingDataError
from stepscope.model import call_tree
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.trace import Trace, computed

Metric = Literal["self-cpu", "self-device"]
EVALUATE = "autograd::engine::evaluate_function: "
"""Prefix of the engine's calls around backward functions (`torch/csrc/autograd/engine.cpp`)."""
RECORD_STACKS = "profile(with_stack=True)"


@dataclass(frozen=True, kw_only=True, eq=False)
class CallStacks:
    """Calls with a stack and self time, in start order."""

    stack: Ints
    """Of each call: an index into `texts`, or `len(texts)` plus a node of `python`."""
    host_self_ns: Ints
    """Without nested calls."""
    device_self_ns: Ints
    """Of the kernels, copies and memory sets that the call launched directly."""
    texts: tuple[str, ...]
    """Stacks recorded as text: innermost first, separated by semicolons."""
    python: Paths
    """Paths of Python functions, by the names in `python_names`."""
    python_names: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of calls."""
        return len(self.stack)

    def self_ns(self, metric: Metric) -> Ints:
        """Return the calls' self time on the host, or on devices."""
        return self.host_self_ns if metric == "self-cpu" else self.device_self_ns

    def frames(self, stack: int) -> list[str]:
        """Return a stack's functions, innermost first."""
        if stack < len(self.texts):
            return [frame for frame in self.texts[stack].split(";") if frame]
        frames: list[str] = []
        node = stack - len(self.texts)
        while node != NONE:
            frames.append(self.python_names[self.python.name[node]])
            node = self.python.parent[node]
        return frames


@computed
def call_stacks(trace: Trace) -> CallStacks:
    """Return every call that has a stack, with its self time.

    Raises:
        MissingDataError: the recording has neither Python calls nor stacks as text.
    """
    if not len(trace.python_calls) and not any(trace.host_calls["call_stack"].cat.categories):
        msg = "the recording holds no Python functions"
        raise MissingDataError(msg, RECORD_STACKS)
    tree = host_tree(trace)
    python = python_paths(trace)
    names = trace.python_calls["name"].cat.categories
    stack, texts = _stacks(trace, tree, python)
    is_counted, self_ns, device_ns = _merge_repeated_calls(tree, _launched_ns(trace, tree))
    stack = _with_forward_stacks(trace, tree, stack, is_counted)
    order = np.lexsort((-(tree.start_ns + tree.duration_ns), tree.start_ns))
    order = order[is_counted[order] & (stack[order] != NONE)]
    return CallStacks(
        stack=stack[order],
        host_self_ns=self_ns[order],
        device_self_ns=device_ns[order],
        texts=texts,
        python=python,
        python_names=(*map(str, names), ""),
    )


def _stacks(trace: Trace, tree: HostTree, python: Paths) -> tuple[Ints, tuple[str, ...]]:
    """Return the stack of each row of the tree, or -1, and the stacks recorded as text."""
    events = np.concatenate(
        [frame["event"].to_numpy() for frame in (trace.python_calls, trace.host_calls)]
    )
    written = trace.source.label("Call stack", events)
    texts = tuple(str(text) for text in written.categories)
    stack = np.full(len(tree), NONE, dtype=np.int64)
    python_rows = slice(0, tree.host_offset)
    around = python.parent[python.node]
    stack[python_rows] = np.where(around != NONE, around + len(texts), NONE)
    other_rows = slice(tree.host_offset, len(tree))
    row = python_calls_at(trace, (tree.thread[other_rows], tree.start_ns[other_rows]))
    stack[other_rows] = np.where(row != NONE, np.append(python.node, NONE)[row] + len(texts), NONE)
    is_empty = np.array([*(not text for text in texts), True])
    codes = np.where(is_empty[written.codes], NONE, written.codes)
    np.copyto(stack[: len(events)], codes, where=codes >= 0)
    return stack, texts


def _launched_ns(trace: Trace, tree: HostTree) -> Ints:
    """Return the device time of each row; an operator's includes its runtime calls'."""
    linked = links(trace)
    call, owner = linked.call_of_device_event, linked.owner_of_device_event
    by_call = np.where(call >= 0, call + tree.runtime_offset, NONE)
    row = np.where(owner >= 0, owner + tree.host_offset, by_call)
    return sums_where(trace.device_events["duration_ns"].to_numpy(), row, len(tree))


def _merge_repeated_calls(tree: HostTree, device_ns: Ints) -> tuple[Mask, Ints, Ints]:
    """Return a mask of the rows that torch counts, and their host and device self time.

    A call that is the only child of its caller, and of its name, is merged into it
    (`EventList._remove_dup_nodes`); torch moves the inner one's kernels.
    """
    parent, duration_ns = tree.nesting.parent, tree.duration_ns
    child = np.flatnonzero(parent != NONE)
    self_ns = duration_ns.copy()
    np.subtract.at(self_ns, parent[child], duration_ns[child])
    child_count = np.bincount(parent[child], minlength=len(tree))
    doubles = child[
        (child_count[parent[child]] == 1) & (tree.name[child] == tree.name[parent[child]])
    ]
    into = np.arange(len(tree))
    into[doubles] = parent[doubles]
    going = doubles[into[into[doubles]] != into[doubles]]
    while len(going):
        into[going] = into[into[going]]
        going = going[into[into[going]] != into[going]]
    np.add.at(self_ns, into[doubles], self_ns[doubles])
    np.add.at(device_ns, into[doubles], device_ns[doubles])
    is_counted = np.ones(len(tree), dtype=bool)
    is_counted[doubles] = False
    return is_counted, self_ns, device_ns


def _with_forward_stacks(trace: Trace, tree: HostTree, stack: Ints, is_counted: Mask) -> Ints:
    """Return the stacks, with the forward operator's for calls in backward functions."""
    calls = trace.host_calls
    is_backward = _are_backward(trace)
    if not is_backward.any():
        return stack
    rows = np.flatnonzero(is_backward)
    end_ns = tree.start_ns + tree.duration_ns
    outer = tree.host_offset + rows
    match = call_tree.enclosing(
        (tree.thread[outer], tree.start_ns[outer], end_ns[outer]),
        (tree.thread, tree.start_ns, end_ns),
    )
    around = np.append(rows, NONE)[match]
    is_backward_row = around != NONE
    host_rows = slice(tree.host_offset, tree.runtime_offset)
    forward = np.flatnonzero(is_counted[host_rows] & ~is_backward_row[host_rows])
    match = forward_operators(trace, rows, forward)
    of_call = np.full(len(calls) + 1, NONE, dtype=np.int64)
    of_call[rows] = np.append(stack[host_rows], NONE)[match]
    return np.where(is_backward_row, of_call[around], stack)


def _are_backward(trace: Trace) -> Mask:
    """Return a mask of backward functions, after which the engine's own calls are named."""
    calls = trace.host_calls
    name, parent = calls["name"].cat, calls["parent"].to_numpy()
    texts = [str(text) for text in name.categories]
    code_of_name = {text: code for code, text in enumerate(texts)}
    of_engine = np.array(
        [code_of_name.get(text.removeprefix(EVALUATE), -2) if text.startswith(EVALUATE) else -2
         for text in texts] + [-2]
    )  # fmt: skip
    codes = name.codes.to_numpy()
    expected = np.append(of_engine[codes], -2)[parent]
    return np.asarray((codes >= 0) & (codes == expected))


def forward_operators(trace: Trace, backward: Ints, forward: Ints) -> Ints:
    """Return each backward call's forward operator, or -1.

    All are rows of `host_calls`; `forward` are the candidates, in start order.
    """
    calls = trace.host_calls
    sequence = calls["sequence_number"].to_numpy()
    forward = forward[sequence[forward] >= 0]
    thread = calls["thread"].cat.codes.to_numpy().astype(np.int64)
    number = trace.source.whole("Fwd thread id", calls["event"].to_numpy()[backward])
    backward_sequence = sequence[backward]
    has_thread = (backward_sequence >= 0) & (number > 0)
    forward_thread = np.full(len(backward), NONE, dtype=np.int64)
    forward_thread[has_thread] = _threads(
        number[has_thread],
        rows_of_keys(backward_sequence[has_thread], sequence[forward]),
        thread[forward],
    )
    sequence_code, distinct = pd.factorize(sequence[forward])
    width = int(thread.max(initial=0)) + 1
    keys = np.where(
        forward_thread >= 0,
        rows_of_keys(backward_sequence, distinct) * width + forward_thread,
        NONE,
    )
    match = rows_of_keys(keys, sequence_code * width + thread[forward])
    return np.append(forward, NONE)[match]


def _threads(number: Ints, row: Ints, thread: Ints) -> Ints:
    """Return each number's thread: the one where most of its calls find their sequence."""
    votes = pd.DataFrame({"number": number, "thread": np.append(thread, NONE)[row]})
    counted = votes[votes["thread"] >= 0].value_counts().reset_index()
    most = counted.drop_duplicates("number").set_index("number")["thread"]
    return most.reindex(number, fill_value=NONE).to_numpy().astype(np.int64)
