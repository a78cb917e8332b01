"""Costs of fetching batches: their time, and the functions that take it."""

from collections.abc import Iterable

from stepscope.analyses.core import event_references
from stepscope.analyses.core.batch_size import batch_size
from stepscope.analyses.idle.data_stalls import DataStalls, LoadingCost, loading_costs
from stepscope.analyses.settings.recorded_settings import RECORDED, usable_cpus
from stepscope.analyses.settings.user_metadata import hints
from stepscope.base.calibration import EXPOSED_TIME, EXPOSED_TIME_WITHOUT_DEVICE
from stepscope.base.findings import Confidence, Evidence, EvidenceTable, Link, SourceLine
from stepscope.base.formatting import share
from stepscope.model.trace import Trace
from stepscope.rules import Claim
from stepscope.rules.shared import facts, phrases, recorded_facts

WORTH_LISTING = 0.01
"""Of all loading: functions that take less explain nothing."""
CHEAP_BATCH_NS = 500_000
"""Of a batch made in the process: taking one from a worker costs more. Measured on two cores with a
data set in memory (torch 2.13, 32 samples of 12 kB): 0.3 ms without workers, 1.8 ms from one."""


def exposed_share(trace: Trace, stalls: DataStalls) -> float:
    """Return the fraction of the window in which nothing but loading went on."""
    return phrases.fraction_of_window(trace, stalls.exposed_ns)


def confidence(trace: Trace, stalls: DataStalls) -> Confidence:
    """Return the confidence that nothing else went on, and that workers find free cores."""
    if stalls.is_device_missing:
        return "low"
    if not stalls.has_device and usable_cpus(trace) == 1:
        return "low"  # workers would only take turns with computing
    return "high" if stalls.has_device else "medium"


def claim(stalls: DataStalls) -> Claim:
    """Claim all loading that no device hides."""
    if stalls.has_device:
        return Claim(
            stalls.exposed,
            EXPOSED_TIME,
            "All loading time in which no device was busy; measured cases saved 77 and 84 % of it.",
        )
    return Claim(
        stalls.exposed,
        EXPOSED_TIME_WITHOUT_DEVICE,
        "All loading time; on a CPU alone, loading and computing share the cores: measured cases "
        "on two cores saved a quarter to all of it.",
    )


def evidence(trace: Trace, stalls: DataStalls, label: str, search: str) -> tuple[Evidence, ...]:
    """Return the numbers of a finding; `label` names the calls, `search` selects them."""
    return (
        facts.fraction("Exposed loading", exposed_share(trace, stalls), "overview"),
        facts.duration("Loading in total", stalls.total_ns),
        facts.count(label, len(stalls.rows), Link(view="operators", search=search)),
        facts.duration("Mean loading per batch", round(stalls.batch_ns)),
        *recorded_facts.cpus(trace),
    )


def costs(trace: Trace, stalls: DataStalls) -> list[LoadingCost]:
    """Return the functions and operators on which the calls spend their time."""
    least_ns = WORTH_LISTING * stalls.total_ns
    return [cost for cost in loading_costs(trace, stalls.rows) if cost.time_ns >= least_ns]


def table(stalls: DataStalls, costs: Iterable[LoadingCost]) -> EvidenceTable:
    """Return the functions and operators on which the calls spend their time, as a table."""
    return facts.table(
        "Functions and operators of loading",
        {"Function or operator": "text", "Time with callees in total": "ns", "Of loading": "share"},
        (
            facts.row(
                cost.name,
                cost.time_ns,
                cost.time_ns / max(1, stalls.total_ns),
                link=Link(view="operators", source=cost.name)
                if cost.is_function
                else Link(view="operators", search=cost.name),
            )
            for cost in costs
        ),
    )


def lines(costs: Iterable[LoadingCost]) -> tuple[SourceLine, ...]:
    """Return the user's own functions among those on which the calls spend their time."""
    return event_references.source_lines(cost.name for cost in costs)


def batch_argument(trace: Trace) -> str:
    """Return the loader's argument for the batch size that was recorded or inferred."""
    recorded = recorded_facts.loader_setting(trace, lambda loader: loader.batch_size)
    if recorded is not None and hints(trace).batch_size is None:
        return f"batch_size={recorded}"
    batch = batch_size(trace)
    return f"batch_size={batch.size}" if batch and batch.is_certain else "batch_size=..."


def cpu_caveat(trace: Trace) -> str:
    """Return the caveat on CPUs: with their number, where that was recorded."""
    count = usable_cpus(trace)
    if count is None:
        return (
            "All processes of a machine share its cores: workers times processes should not exceed "
            "them."
        )
    cpus = "one CPU" if count == 1 else f"{count} CPUs"
    return f"This process may use {cpus} ({RECORDED}): more workers would not load faster."


def pinned_argument(stalls: DataStalls) -> str:
    """Return the argument that pins batches, where there is a device to copy them to."""
    return ", pin_memory=True" if stalls.has_device or stalls.is_device_missing else ""


def too_little(trace: Trace, stalls: DataStalls, batches: str) -> str:
    """Return why little could be saved: the device works meanwhile, or it is little time."""
    covered = 1 - stalls.exposed_ns / max(1, stalls.total_ns)
    working = f", but the {trace.dialect.device} works during {share(covered)} of that"
    return (
        f"{batches} take {phrases.time(trace, stalls.total_ns)}"
        f"{working if covered >= 0.5 else ''}; at most {share(exposed_share(trace, stalls))} of "
        "the time could be saved."
    )
