"""Tree of operators and runtime calls, without annotations."""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.ancestry import nearest_of
from stepscope.analyses.core.links import links
from stepscope.model.arrays import NONE, Ints
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorTree:
    """Operators, then runtime calls; all arrays are parallel."""

    event: Ints
    thread: Ints
    """Codes of the frames' `thread`."""
    start_ns: Ints
    end_ns: Ints
    parent: Ints
    """Row of the calling operator, or -1."""
    operator_count: int
    """Number of operators, the first rows."""


@computed
def operator_tree(trace: Trace) -> OperatorTree:
    """Return operators and runtime calls with their calling operators."""
    host, calls = trace.host_calls, trace.runtime_calls
    is_operator = host["is_operator"].to_numpy()
    rows = np.flatnonzero(is_operator)
    tree_row = np.full(len(host) + 1, NONE, dtype=np.int64)  # the last is for "none"
    tree_row[rows] = np.arange(len(rows))
    caller = host["parent"].to_numpy()
    parent = nearest_of(caller, caller[rows], is_operator)
    names = "event", "start_ns", "end_ns"
    event, start, end = (
        np.concatenate((host[name].to_numpy()[rows], calls[name].to_numpy())) for name in names
    )
    threads = host["thread"].cat.codes.to_numpy()[rows], calls["thread"].cat.codes.to_numpy()
    return OperatorTree(
        event=event,
        thread=np.concatenate(threads).astype(np.int64),
        start_ns=start,
        end_ns=end,
        parent=np.concatenate((tree_row[parent], tree_row[links(trace).owner_of_call])),
        operator_count=len(rows),
    )


def self_covered_ns(tree: OperatorTree, covered: Ints, rows: Ints) -> Ints:
    """Return the part of each row's covered time that no row called by it covers.

    `covered` has all rows, and is 0 outside `rows`. Where calls cross one another the result is at
    least 0.
    """
    left = covered.copy()
    child = rows[tree.parent[rows] >= 0]
    np.subtract.at(left, tree.parent[child], covered[child])
    return np.maximum(left, 0)
