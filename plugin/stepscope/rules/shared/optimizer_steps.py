"""What the rules on optimizers have in common: each optimizer's updates, and what torch offers."""

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
    # torch.optim: these take `foreach=True`
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
"""torch.optim: these take `fused=True` on devices."""
NO_LISTS = frozenset({"LBFGS", "SparseAdam"})
"""These work on one vector, or on sparse gradients: there is nothing to take at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Updates:
    """One optimizer's updates on the main device."""

    optimizer: str
    """The class as the trace names it: `AdamW`."""
    count: int
    launch_count: int
    """Launches of all of them."""
    is_listwise: bool
    is_fused: bool
    rows: np.ndarray[tuple[int], np.dtype[np.int64]]
    """Rows of `host_calls`."""
    cost: CallCost

    @property
    def launches_each(self) -> float:
        """Launches of one update."""
        return self.launch_count / self.count


@computed
def updates(trace: Trace) -> tuple[Updates, ...]:
    """Return each optimizer's updates within the window, in the order of their first.

    Raises:
        MissingDataError: no device event was recorded.
        NotApplicableError: no optimizer's step was recorded, or the machine has no device.
    """
    requirements.main_device(trace)
    found = optimizer_updates(trace)
    return tuple(_of(trace, found, name) for name in dict.fromkeys(found.optimizer.tolist()))


def _of(trace: Trace, found: OptimizerUpdates, optimizer: str) -> Updates:
    at = found.of(optimizer)
    own = found.work.only(np.isin(found.work.callers, found.rows[at]))
    host = intervals.union(found.begin_ns[at], found.end_ns[at])
    return Updates(
        optimizer=optimizer,
        count=len(at),
        launch_count=len(own.callers),
        is_listwise=bool(found.is_listwise[at].any()),
        is_fused=bool(found.is_fused[at].any()),
        rows=found.rows[at],
        cost=call_cost(trace, host, own.events),
    )


def evidence(trace: Trace, found: Updates) -> tuple[Evidence, ...]:
    """Return the numbers of one optimizer's updates."""
    search = Link(view="operators", search=f"Optimizer.step#{found.optimizer}")
    return (
        facts.count("Updates", found.count, search),
        facts.count("Launches an update", round(found.launches_each)),
        *call_costs.evidence(trace, found.cost),
    )


def operators(trace: Trace, found: Updates) -> EvidenceTable:
    """Return the operators that the updates called themselves."""
    calls = trace.host_calls
    inside = np.isin(calls["parent"].to_numpy(), found.rows) & calls["is_operator"].to_numpy()
    return call_costs.by_name(calls, np.flatnonzero(inside), "Operators of the updates")
