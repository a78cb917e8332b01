"""Waits for the device, by location: the idle time that they cause, not the host's blocked time.

A host that waits while the device works loses nothing. The loss is the device's idle time between
the end of its queued work and its next work. The location is the source line, else the operator,
else the runtime call.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.core import event_references
from stepscope.analyses.core.device_activity import all_busy, main_device
from stepscope.analyses.core.event_references import call_stack_lines, user_calls
from stepscope.analyses.core.group_statistics import group_rows, sums
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import Cause, outermost_operator, synchronizations
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.dialects import LAUNCH_NAME
from stepscope.model import call_tree, intervals
from stepscope.model.arrays import NONE, Ints, Mask, Objects
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.spans import spans
from stepscope.model.intervals import EMPTY, Intervals
from stepscope.model.trace import Trace, computed

REFILL_LAUNCHES = 2
"""After this many launches the queue counts as filled again."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SyncCost:
    """The waits of one cause, and the idle time of the busiest device after them."""

    rows: Ints
    """Rows of `synchronizations`."""
    blocked_ns: int
    """Duration of the host's waits, which is no loss by itself."""
    working_share: float
    """Fraction of that time in which the device works."""
    idle: Intervals
    """Idle time right after these waits."""
    refill: Intervals
    """Idle time from the waits until the queue is filled again; contains `idle`."""

    operators: Ints
    """The distinct operators of the waits (`host_calls` rows): a read may copy and then wait."""
    unowned_count: int
    """Waits outside operators."""

    @property
    def count(self) -> int:
        """Number of waits; a blocking copy and the wait after it count once."""
        return len(self.operators) + self.unowned_count


def sync_cost(trace: Trace, cause: Cause, among: Mask | None = None) -> SyncCost:
    """Return the cost of the waits of one cause, optionally of those in the mask `among`."""
    syncs = synchronizations(trace)
    has_cause = syncs.of(cause)
    rows = np.flatnonzero(has_cause if among is None else has_cause & among)
    idle = late = EMPTY
    if (device := main_device(trace)) is not None:
        ledger = idle_ledger(trace)[device.device]
        gaps = ledger.gaps[np.isin(ledger.sync, rows)]
        idle, late = intervals.intersection(ledger.times["post-sync"], gaps), ledger.host_late
    until = _refilled_ns(trace, syncs.end_ns[rows])
    refilling = intervals.union(syncs.end_ns[rows], until)
    blocked = intervals.union(syncs.start_ns[rows], syncs.end_ns[rows])
    blocked_ns = intervals.duration_ns(blocked)
    working_ns = intervals.duration_ns(intervals.intersection(blocked, all_busy(trace)))
    asker = links(trace).owner_of_call[syncs.calls[rows]]
    return SyncCost(
        rows=rows,
        operators=np.unique(asker[asker >= 0]),
        unowned_count=int((asker < 0).sum()),
        blocked_ns=blocked_ns,
        working_share=working_ns / blocked_ns if blocked_ns else 0.0,
        idle=idle,
        refill=intervals.merged(idle, intervals.intersection(late, refilling)),
    )


def _refilled_ns(trace: Trace, end_ns: Ints) -> Ints:
    """Return, for each wait's end, the end of the second launch after it, in the same step."""
    made = _launch_ends(trace)
    location = np.searchsorted(made, end_ns, side="left") + REFILL_LAUNCHES - 1
    is_refilled = location < len(made)
    until = np.where(is_refilled, np.append(made, 0)[np.minimum(location, len(made))], end_ns)
    ends = np.append(np.sort(trace.steps["end_ns"].to_numpy()), np.iinfo(np.int64).max)
    return np.asarray(np.minimum(until, ends[np.searchsorted(ends, end_ns, side="left")]))


@computed
def _launch_ends(trace: Trace) -> Ints:
    calls = trace.runtime_calls
    return np.sort(calls["end_ns"].to_numpy()[name_mask(calls["name"], LAUNCH_NAME.search)])


def longest(trace: Trace, cost: SyncCost, count: int) -> Ints:
    """Return the longest waits, as rows of `synchronizations`, the longest first."""
    syncs = synchronizations(trace)
    waited = (syncs.end_ns - syncs.start_ns)[cost.rows]
    return np.asarray(cost.rows[np.argsort(-waited, kind="stable")[:count]])


def location(trace: Trace, owner: int) -> str:
    """Return the user's source line of an operator, else its name; -1: outside any operator."""
    if owner < 0:
        return "outside any operator"
    return event_references.line_of_host_call(trace, owner) or str(
        trace.host_calls["name"].iloc[owner]
    )


LONGEST = 4
"""`(scores.argmax(1) == labels).sum().item()` are three operators; few checks are longer."""
COMPARES_OR_REDUCES = frozenset(
    f"aten::{name}"
    for name in (
        *("abs", "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "eq", "equal"),
        *("ge", "gt", "isclose", "isfinite", "isinf", "isnan", "le", "linalg_vector_norm"),
        *("logical_and", "logical_not", "logical_or", "lt", "max", "mean", "min", "ne", "norm"),
        "sum",
    )
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ValueReads:
    """Rows of `device_events`."""

    copies: Ints
    """Copies of the values."""
    makers: Ints
    """Work that computed the values, apparently for the reads alone."""


def value_reads(trace: Trace, cost: SyncCost) -> ValueReads:
    """Return the device work due only to value reads (`sync_cost(trace, "item")`).

    That is the copies, and the work of operators right before the read on its thread that compare
    or reduce, and that autograd did not record (a backward pass needs those).
    """
    owner = links(trace).owner_of_device_event
    is_copy = _marked(trace, cost.operators)[owner]
    makers = _makers(trace, synchronizations(trace).owner[cost.rows])
    around = outermost_operator(trace, np.where(is_copy, NONE, owner))
    is_made = _marked(trace, makers)[around]
    return ValueReads(copies=np.flatnonzero(is_copy), makers=np.flatnonzero(is_made))


def _makers(trace: Trace, reads: Ints) -> Ints:
    """Return the outermost operators (`host_calls` rows) right before reads."""
    calls = trace.host_calls
    is_operator = calls["is_operator"].to_numpy()
    is_inner = np.append(is_operator, False)[calls["parent"].to_numpy()]
    thread = calls["thread"].cat.codes.to_numpy()
    top = np.flatnonzero(is_operator & ~is_inner)
    top = top[np.argsort(thread[top], kind="stable")]
    fits = name_mask(calls["name"], COMPARES_OR_REDUCES.__contains__)
    fits &= calls["sequence_number"].to_numpy() < 0
    position = np.flatnonzero(_marked(trace, reads)[top])
    makers = []
    for _ in range(LONGEST):
        position = position[position > 0]
        before = top[position - 1]
        position = position[fits[before] & (thread[before] == thread[top[position]])] - 1
        makers.append(top[position])
    return np.concatenate(makers)


def _marked(trace: Trace, rows: Ints) -> Mask:
    """Return a mask of some `host_calls` rows, with False for row -1."""
    is_marked = np.zeros(len(trace.host_calls) + 1, dtype=bool)
    is_marked[rows] = True
    is_marked[NONE] = False
    return is_marked


@dataclass(frozen=True, kw_only=True)
class SyncSite:
    """One code location that waits."""

    line: str
    """The user's source line, or ""."""
    operator: str
    """The operator, or the runtime call outside operators."""
    count: int
    """Number of waits; a blocking copy and the wait after it count once."""
    blocked_ns: int
    """Total duration of the host's waits."""
    idle_ns: int
    """Idle time of the busiest device right after these waits."""

    @property
    def name(self) -> str:
        """The line, else the operator."""
        return self.line or self.operator


@dataclass(frozen=True, kw_only=True, eq=False)
class SyncSites:
    """The code locations of some waits."""

    sites: tuple[SyncSite, ...]
    """The costliest first."""
    site_of: Ints
    """For each wait, in the order of `SyncCost.rows`: its index in `sites`."""


def sync_sites(trace: Trace, cost: SyncCost, operators: Ints | None = None) -> SyncSites:
    """Return the code locations of waits.

    `operators` are the operators to name (`host_calls` rows, parallel to the waits), by default the
    outermost ones.
    """
    syncs = synchronizations(trace)
    named_by = syncs.owner[cost.rows] if operators is None else operators
    calls = syncs.calls[cost.rows]
    lines = _lines(trace, calls, syncs.owner[cost.rows])
    keys = pd.DataFrame({"line": lines, "operator": _operators(trace, calls, named_by)})
    group, first = group_rows(keys, keys.columns)
    asker = links(trace).owner_of_call[calls]
    is_first = (asker < 0) | ~pd.Series(asker).duplicated().to_numpy()
    blocked_ns = (syncs.end_ns - syncs.start_ns)[cost.rows]
    idle_ns = _idle_behind(trace, cost.rows)
    number = len(first)
    totals = [
        sums(values, group, number) for values in (is_first.astype(np.int64), blocked_ns, idle_ns)
    ]
    order = np.lexsort((-totals[0], -totals[1], -totals[2]))
    rank = np.empty(number, dtype=np.int64)
    rank[order] = np.arange(number)
    sites = tuple(
        SyncSite(
            line=str(keys["line"].iloc[first[at]]),
            operator=str(keys["operator"].iloc[first[at]]),
            count=int(totals[0][at]),
            blocked_ns=int(totals[1][at]),
            idle_ns=int(totals[2][at]),
        )
        for at in order.tolist()
    )
    return SyncSites(sites=sites, site_of=rank[group])


def _lines(trace: Trace, calls: Ints, owner: Ints) -> Objects:
    """Return the user's line of each runtime call, by Python calls or `Call stack`, or ""."""
    functions = user_calls(trace)
    around = call_tree.enclosing(spans(functions), spans(trace.runtime_calls.iloc[calls]))
    lines = _texts(functions["name"], around)
    by_stack, listed = call_stack_lines(trace, owner)
    return np.where(lines == "", np.array([*listed, ""], dtype=object)[by_stack], lines)


def _operators(trace: Trace, calls: Ints, owner: Ints) -> Objects:
    operators = _texts(trace.host_calls["name"], owner)
    called = _texts(trace.runtime_calls["name"], calls)
    return np.where(owner >= 0, operators, called)


def _texts(names: "pd.Series[Any]", rows: Ints) -> Objects:
    """Return the names of rows, "" for -1 and for a row without a name."""
    texts = np.array([*map(str, names.cat.categories), ""], dtype=object)
    return np.asarray(texts[np.append(names.cat.codes.to_numpy(), NONE)[rows]])


def _idle_behind(trace: Trace, rows: Ints) -> Ints:
    device = main_device(trace)
    if device is None:
        return np.zeros(len(rows), dtype=np.int64)
    ledger = idle_ledger(trace)[device.device]
    idle_ns = intervals.covered_ns(ledger.times["post-sync"], ledger.gaps[:, 0], ledger.gaps[:, 1])
    behind = np.zeros(len(synchronizations(trace).calls) + 1, dtype=np.int64)
    np.add.at(behind, ledger.sync, idle_ns)
    return behind[rows]
