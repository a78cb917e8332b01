"""What the rules on fetching batches have in common: what it costs, and what it spends that on."""

from collections.abc import Iterable

from stepscope.analyses.core import event_references
from stepscope.analyses.core.batch_size import batch_size
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.data_stalls import DataStalls, LoadingCost, loading_costs
from stepscope.analyses.idle.loader_restarts import loader_restarts
from stepscope.analyses.settings.recorded_settings import RECORDED
from stepscope.analyses.settings.user_metadata import hints
from stepscope.base.calibration import EXPOSED_TIME, EXPOSED_TIME_WITHOUT_DEVICE
from stepscope.base.findings import Confidence, Evidence, EvidenceTable, Link, SourceLine
from stepscope.base.formatting import duration, share
from stepscope.model.trace import Trace
from stepscope.rules import Claim
from stepscope.rules.shared import facts, phrases, recorded_facts

WORTH_LISTING = 0.01
"""Of all loading: what takes less explains nothing."""
CHEAP_BATCH_NS = 500_000
"""Of a batch made in the process: taking one from a worker costs more. Measured on two cores with a
data set in memory (torch 2.13, 32 samples of 12 kB): 0.3 ms without workers, 1.8 ms from one."""


def exposed_share(trace: Trace, stalls: DataStalls) -> float:
    """Return the share of the window in which nothing but loading went on."""
    return stalls.exposed_ns / window(trace).reference_ns


def confidence(trace: Trace, stalls: DataStalls) -> Confidence:
    """Return how sure it is that nothing else went on, and that there is room for workers."""
    if stalls.is_device_missing:
        return "low"
    if not stalls.has_device and recorded_facts.usable_cpus(trace) == 1:
        return "low"  # workers would only take turns with computing
    return "high" if stalls.has_device else "medium"


def claim(stalls: DataStalls) -> Claim:
    """Claim all loading that no device hides."""
    if stalls.has_device:
        return Claim(
            stalls.exposed,
            EXPOSED_TIME,
            "All loading time in which no device was busy; where it was measured, 77 and 84 % of "
            "that were won.",
        )
    return Claim(
        stalls.exposed,
        EXPOSED_TIME_WITHOUT_DEVICE,
        "All loading time; on a CPU alone, loading and computing share the cores, and where it was "
        "measured on two cores, a quarter of it to all of it was won.",
    )


def evidence(trace: Trace, stalls: DataStalls, label: str, search: str) -> tuple[Evidence, ...]:
    """Return the numbers behind a finding; `label` names the calls, `search` finds them."""
    return (
        facts.fraction("Exposed loading", exposed_share(trace, stalls), "overview"),
        facts.duration("Loading in all", stalls.total_ns),
        facts.count(label, len(stalls.rows), Link(view="operators", search=search)),
        facts.duration("Loading a batch, mean", round(stalls.batch_ns)),
        *recorded_facts.cpus(trace),
    )


def work(trace: Trace, stalls: DataStalls) -> tuple[tuple[EvidenceTable, ...], list[LoadingCost]]:
    """Return what the calls spend their time on, as a table (none where that is unknown)."""
    least_ns = WORTH_LISTING * stalls.total_ns
    costs = [each for each in loading_costs(trace, stalls.rows) if each.time_ns >= least_ns]
    if not costs:
        return (), costs
    rows = tuple(
        facts.row(
            cost.name,
            cost.time_ns,
            cost.time_ns / max(1, stalls.total_ns),
            link=Link(view="operators", search=cost.name)
            if not cost.is_function
            else Link(view="operators", source=cost.name),
        )
        for cost in costs
    )
    return (
        facts.table(
            "What loading does",
            {"Function or operator": "text", "With what it calls": "ns", "Of loading": "share"},
            rows,
        ),
    ), costs


def lines(costs: Iterable[LoadingCost]) -> tuple[SourceLine, ...]:
    """Return the user's own functions among what the calls spend their time on."""
    return event_references.source_lines(cost.name for cost in costs)


def batch_argument(trace: Trace) -> str:
    """Return the loader's argument for the batch that was recorded or seen."""
    recorded = recorded_facts.of_loaders(trace, lambda loader: loader.batch_size)
    if recorded is not None and hints(trace).batch_size is None:
        return f"batch_size={recorded}"
    batch = batch_size(trace)
    return f"batch_size={batch.size}" if batch and batch.is_certain else "batch_size=..."


def worker_count(trace: Trace) -> int:
    """Return how many workers load: as recorded or said, else as they started; 0: not known."""
    if (said := hints(trace).num_workers) is not None:
        return said
    recorded = recorded_facts.of_loaders(
        trace, lambda loader: loader.worker_count, has_workers=True
    )
    if recorded is not None:
        return recorded
    return max(loader_restarts(trace).worker_counts, default=0)


def room(trace: Trace) -> str:
    """Return the caveat on CPUs: with how many there are, where that was recorded."""
    count = recorded_facts.usable_cpus(trace)
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
    """Say that little could be won: the device works meanwhile, or it is little time at all."""
    within = window(trace)
    covered = 1 - stalls.exposed_ns / max(1, stalls.total_ns)
    working = f", but the {trace.dialect.device} works during {share(covered)} of that"
    return (
        f"{batches} take {duration(within.per_step(stalls.total_ns))}"
        f" {phrases.per_step(trace)}{working if covered >= 0.5 else ''}; "
        f"{share(exposed_share(trace, stalls))} of the time could be won at most."
    )
