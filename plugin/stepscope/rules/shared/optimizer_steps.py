"""Updates of each optimizer, and the faster forms that torch has of them."""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import requirements
from stepscope.analyses.host.optimizer_updates import OptimizerUpdates, optimizer_updates
from stepscope.analyses.idle.call_cost import CallCost, call_cost
from stepscope.base.findings import Evidence, EvidenceTable, Link
from stepscope.model import intervals
from stepscope.model.trace import Trace, computed
from stepscope.rules.shared import call_costs, facts

LISTWISE = frozenset(
    # torch.optim: these accept `foreach=True`
    {
        "ASGD",
        "Adadelta",
        "Adafactor",
        "Adagrad",
        "Adam",
        "AdamW",
        "Adamax",
        "NAdam",
        "RAdam",
        "RMSprop",
        "Rprop",
        "SGD",
    }
)
FUSED = frozenset({"Adam", "AdamW", "SGD"})
"""torch.optim: these accept `fused=True` on devices."""
NO_LISTS = frozenset({"LBFGS", "SparseAdam"})
"""These work on one vector, or on sparse gradients: there is nothing to group."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Updates:
    """One optimizer's updates on the main device."""

    optimizer: str
    """The class as the trace names it: `AdamW`."""
    count: int
    launch_count: int
    """Launches of all updates."""
    is_listwise: bool
    is_fused: bool
    rows: np.ndarray[tuple[int], np.dtype[np.int64]]
    """Rows of `host_calls`."""
    cost: CallCost

    @property
    def launches_per_update(self) -> float:
        """Launches of one update."""
        return self.launch_count / self.count


@computed
def updates(trace: Trace) -> tuple[Updates, ...]:
    """Return each optimizer's updates in the window, in the order of their first.

    Raises:
        MissingDataError: no device event was recorded.
        NotApplicableError: no optimizer's step was recorded, or the machine has no device.
    """
    requirements.main_device(trace)
    all_updates = optimizer_updates(trace)
    names = dict.fromkeys(all_updates.optimizer.tolist())
    return tuple(_of(trace, all_updates, name) for name in names)


def _of(trace: Trace, updates: OptimizerUpdates, optimizer: str) -> Updates:
    index = updates.of(optimizer)
    work = updates.work.select(np.isin(updates.work.callers, updates.rows[index]))
    host = intervals.union(updates.begin_ns[index], updates.end_ns[index])
    return Updates(
        optimizer=optimizer,
        count=len(index),
        launch_count=len(work.callers),
        is_listwise=bool(updates.is_listwise[index].any()),
        is_fused=bool(updates.is_fused[index].any()),
        rows=updates.rows[index],
        cost=call_cost(trace, host, work.events),
    )


def evidence(trace: Trace, updates: Updates) -> tuple[Evidence, ...]:
    """Return the numbers of one optimizer's updates."""
    search = Link(view="operators", search=f"Optimizer.step#{updates.optimizer}")
    return (
        facts.count("Updates in total", updates.count, search),
        facts.count("Launches per update", round(updates.launches_per_update)),
        *call_costs.evidence(trace, updates.cost),
    )


def operators(trace: Trace, updates: Updates) -> EvidenceTable:
    """Return the operators that the updates called directly."""
    calls = trace.host_calls
    is_child = np.isin(calls["parent"].to_numpy(), updates.rows) & calls["is_operator"].to_numpy()
    return call_costs.by_name(calls, np.flatnonzero(is_child), "Operators of the updates")
