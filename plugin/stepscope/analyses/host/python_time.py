"""Time of the host's main thread outside operators, per step and library.

A moment belongs to the call that started last: in an operator to the operators, in a runtime call
that no operator made to the runtime, else to the running function's library (`library_detection`).
Without a recorded function it is `not recorded`.
"""

import numpy as np
import pandas as pd

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.host_activity import main_thread
from stepscope.analyses.core.window import complete_steps, window
from stepscope.analyses.host.host_call_tree import HostTree, host_flame, host_tree
from stepscope.analyses.host.library_detection import GARBAGE, NAMED, OTHER, TORCH, USER, library_of
from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

RUNTIME, UNKNOWN, OPERATORS = "runtime", "not recorded", "operators"
LIBRARIES = (USER, TORCH, *NAMED, OTHER, GARBAGE, RUNTIME, UNKNOWN)
KINDS = (*LIBRARIES, OPERATORS)
RECORD = "profile(with_stack=True)"
NO_STEP = -1
SCHEMA: Schema = (
    Column("step", "int64", "id", "N of `ProfilerStep#N`; -1: the recording has no steps."),
    Column("library", "object", "text", "`user code`, `torch`, `numpy`, `pandas`, `PIL`, `other"
           " library` (Python's own too), `garbage collection`, `runtime` (calls that no operator"
           " made) or `not recorded`."),
    Column("duration_ns", "int64", "ns", "How long the main thread was at it in the step."),
    Column("outside_share", "float64", "share", "Of the step's time outside operators."),
    Column("step_share", "float64", "share", "Of the step's host time."),
)  # fmt: skip


@public_table(
    "python-time",
    SCHEMA,
    "One row per step and library: whose Python code ran between operators, for how long.",
)
@computed
def python_time(trace: Trace) -> pd.DataFrame:
    """Return one row per step and library with time.

    Raises:
        MissingDataError: the recording holds no Python functions.
    """
    if not len(trace.python_calls):
        msg = "no Python function was recorded"
        raise MissingDataError(msg, RECORD)
    numbers, start_ns, end_ns = _steps(trace)
    spent = time_by_kind(trace, start_ns, end_ns)[:, : len(LIBRARIES)]
    step, library = np.nonzero(spent)
    duration_ns = spent[step, library]
    outside_ns = np.maximum(spent.sum(axis=1), 1)[step]
    columns = {
        "step": numbers[step],
        "library": np.array(LIBRARIES, dtype=object)[library],
        "duration_ns": duration_ns,
        "outside_share": duration_ns / outside_ns,
        "step_share": duration_ns / np.maximum(end_ns - start_ns, 1)[step],
    }
    return to_frame(SCHEMA, columns)


def _steps(trace: Trace) -> tuple[Ints, Ints, Ints]:
    """Return the complete steps' numbers, starts and ends on the host."""
    steps = complete_steps(trace).steps
    if not len(steps):
        whole = window(trace)
        return np.array([NO_STEP]), np.array([whole.start_ns]), np.array([whole.end_ns])
    start_ns, end_ns = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    until = np.append(start_ns[1:], np.iinfo(np.int64).max)
    return steps["number"].to_numpy(), start_ns, np.minimum(end_ns, until)


def time_by_kind(trace: Trace, start_ns: Ints, end_ns: Ints) -> Ints:
    """Return the main thread's time in each of `KINDS`: one row per time range.

    Ranges ascend and do not overlap. A row sums to the range's length.
    """
    tree = host_tree(trace)
    threads = list(trace.host_calls["thread"].cat.categories)
    name = main_thread(trace)
    is_main = tree.thread == (threads.index(name) if name in threads else NONE)
    kind = _kinds(trace, tree)
    bounds = np.stack((start_ns, end_ns), axis=1).ravel()
    bound = np.searchsorted(bounds, tree.start_ns, side="right")
    crosses = tree.until_ns > np.append(bounds, np.iinfo(np.int64).max)[bound]
    whole = np.flatnonzero(is_main & ~crosses & (bound % 2 == 1))
    spent = np.zeros((len(start_ns), len(KINDS)), dtype=np.int64)
    np.add.at(spent.ravel(), bound[whole] // 2 * len(KINDS) + kind[whole], tree.self_ns[whole])
    outer = np.flatnonzero(is_main & crosses)
    total = _time_before(bounds, kind[outer], tree.start_ns[outer], tree.until_ns[outer])
    inner = np.flatnonzero(is_main & np.append(crosses, False)[tree.nesting.parent])
    # What a call takes is not its caller's.
    of_caller = kind[tree.nesting.parent[inner]]
    total -= _time_before(bounds, of_caller, tree.start_ns[inner], tree.until_ns[inner])
    spent += total[1::2] - total[0::2]
    spent[:, KINDS.index(UNKNOWN)] += end_ns - start_ns - spent.sum(axis=1)
    return spent


def _kinds(trace: Trace, tree: HostTree) -> Ints:
    """Return the kind of each row of the tree, an index into `KINDS`."""
    flame = host_flame(trace)
    parent, node = flame.paths.parent, flame.paths.node
    libraries = [library_of(name) for name in flame.names]
    of_name = np.array([KINDS.index(library) if library else NONE for library in libraries])
    is_python = np.zeros(len(flame), dtype=bool)
    is_python[node[: tree.host_offset]] = True
    python_kind = np.where(is_python, of_name[flame.paths.name], NONE)
    kind = np.append(python_kind, KINDS.index(UNKNOWN))[
        ancestry.nearest(parent, python_kind != NONE)
    ]
    calls = np.zeros(len(flame), dtype=bool)
    calls[node[tree.runtime_offset :]] = True
    kind[calls] = KINDS.index(RUNTIME)
    operators = np.zeros(len(flame), dtype=bool)
    operators[node[: tree.runtime_offset][tree.is_operator[: tree.runtime_offset]]] = True
    kind[ancestry.nearest(parent, operators) != NONE] = KINDS.index(OPERATORS)
    return np.asarray(kind[node])


def _time_before(
    bounds: Ints,
    kind: Ints,
    start_ns: Ints,
    end_ns: Ints,
) -> Ints:
    """Return the intervals' time of each kind before each bound: one row per bound.

    It is the sum of `bound - start` over the intervals started before, minus `bound - end` over
    those ended: in int64, whose overflows cancel.
    """
    size = len(bounds), len(KINDS)
    before = np.zeros(size, dtype=np.int64)
    for times, sign in ((start_ns, 1), (end_ns, -1)):
        bound = np.searchsorted(bounds, times, side="right")
        inside = bound < len(bounds)
        key = bound[inside] * len(KINDS) + kind[inside]
        count, total = (np.zeros(size[0] * size[1], dtype=np.int64) for _ in range(2))
        np.add.at(count, key, 1)
        np.add.at(total, key, times[inside])
        counts, totals = (np.cumsum(column.reshape(size), axis=0) for column in (count, total))
        before += sign * (bounds[:, None] * counts - totals)
    return before
