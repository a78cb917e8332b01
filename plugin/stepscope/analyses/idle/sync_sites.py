"""Code locations that wait for the device: a source line (with stacks) and an operator.

Where neither is known, the location is the runtime call.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.event_references import call_stack_lines, user_calls
from stepscope.analyses.core.group_statistics import group_rows, sums
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.analyses.idle.sync_cost import SyncCost
from stepscope.model import call_tree, intervals
from stepscope.model.arrays import NONE, Ints, Objects
from stepscope.model.frames.spans import spans
from stepscope.model.trace import Trace


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
