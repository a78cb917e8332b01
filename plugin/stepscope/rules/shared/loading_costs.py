"""Costs of fetching batches: their time, and the functions that take it."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from stepscope.analyses.core import event_references
from stepscope.analyses.core.batch_size import batch_size
from stepscope.analyses.core.window import window
from stepscope.analyses.host.hot_spots import loading_lines, worker_spots
from stepscope.analyses.idle.data_stalls import DataStalls, LoadingCost, loading_costs
from stepscope.analyses.settings.host_samples import worker_samples
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings, usable_cpus
from stepscope.analyses.settings.user_metadata import hints
from stepscope.base.calibration import (
    EXPOSED_TIME,
    EXPOSED_TIME_WITHOUT_DEVICE,
    LOCATED_WORK,
    MOVED_LOADING,
)
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.base.findings import (
    Confidence,
    Evidence,
    EvidenceTable,
    Link,
    Severity,
    SourceLine,
    Unit,
)
from stepscope.base.formatting import count, duration, share
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.replay.changes import ChangeRange
from stepscope.replay.loading import (
    MoveLoading,
    best_worker_count,
    computing_threads,
    move_loading_range,
)
from stepscope.rules import Claim, Finding, RuledOut
from stepscope.rules.shared import facts, phrases, recorded_facts
from stepscope.rules.shared.step_savings import is_worth_reporting, sure_severity, sure_share

MOST_WORKERS = 16
"""The most workers advised: a loop that needs more should do less work per sample."""
WORTH_LISTING = 0.01
"""Of all loading: functions that take less explain nothing."""
MOST_FUNCTIONS = 10
"""Of workers that a table lists."""
CHEAP_BATCH_NS = 1_000_000
"""Of a batch made in the process: taking one from a worker costs as much (`handover_ns`)."""


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


class SharedCores(NamedTuple):
    """Cores on which operators compute and workers would load."""

    cpus: int
    """CPUs of the process."""
    threads: int
    """Threads of its operators."""


def shared_cores(trace: Trace, stalls: DataStalls) -> SharedCores | None:
    """Return the cores that workers would share; None with a device, or for an unknown number."""
    cpus, threads = usable_cpus(trace), recorded_settings(trace).host.thread_count
    if not stalls.computes_on_host or cpus is None or threads is None:
        return None
    return SharedCores(cpus, threads)


def most_workers(trace: Trace, stalls: DataStalls) -> int | None:
    """Return how many workers have a core beside the threads of operators, at least one.

    All cores of the process where a device computes; None if unknown.
    """
    cores = shared_cores(trace, stalls)
    return usable_cpus(trace) if cores is None else max(1, cores.cpus - cores.threads)


def has_free_core(trace: Trace, stalls: DataStalls, workers: int = 0) -> bool:
    """Return whether operators leave a core to one worker more; unknown numbers count as enough."""
    cores = shared_cores(trace, stalls)
    return cores is None or cores.threads + workers < cores.cpus


def advised_workers(trace: Trace, stalls: DataStalls) -> tuple[int, int]:
    """Return the number of workers that just keeps up, and the number advised, within the CPUs.

    Where they share the cores with operators, the number whose step is surely the shortest.
    """
    needed = math.ceil(stalls.batch_ns / rest_ns(trace, stalls))
    most, cores = min(MOST_WORKERS, max(2, needed + 1)), shared_cores(trace, stalls)
    if cores is None:
        return needed, recorded_facts.bounded(trace, most)
    most = max(1, min(most, cores.cpus - 1))
    try:
        return needed, best_worker_count(trace, most)
    except (MissingDataError, NotApplicableError):
        return needed, most


def are_workers_advised(trace: Trace, stalls: DataStalls, claim: Claim) -> bool:
    """Return whether workers save more for sure than less work per sample, or take a free core."""
    if has_free_core(trace, stalls):
        return True
    less_work = Claim(stalls.exposed, LOCATED_WORK, "")
    return sure_share(trace, (claim,)) >= sure_share(trace, (less_work,))


def fewer_threads(trace: Trace, stalls: DataStalls, workers: int) -> str:
    """Return the line of code that leaves cores to workers; "" where operators leave enough."""
    cores = shared_cores(trace, stalls)
    if cores is None:
        return ""
    left = computing_threads(cores.threads, workers, cores.cpus)
    if left in (cores.threads, cores.cpus):  # all threads stay, or the only CPU has one
        return ""
    taken = f"{cores.cpus - left} of {cores.cpus} CPUs"
    return f"torch.set_num_threads({left})    # {taken} are for the workers\n"


def rest_ns(trace: Trace, stalls: DataStalls) -> float:
    """Return the time per batch without its exposed loading; at least 1 ns."""
    return max(1.0, (window(trace).reference_ns - stalls.exposed_ns) / len(stalls.rows))


def claim(trace: Trace, stalls: DataStalls, times: Intervals, workers: int = 0) -> Claim:
    """Claim the loading that no device hides, by a replay with so many workers where it can be.

    0 workers: the fix is another one. Without a replay, `times` are claimed.
    """
    if moved := _with_workers(trace, workers):
        least, most = moved
        changes = ChangeRange(least=(least,), most=(most,))
        return Claim(stalls.exposed, MOVED_LOADING, _method(least, most), changes=changes)
    if stalls.has_device:
        return Claim(
            times,
            EXPOSED_TIME,
            "All loading time in which no device was busy; measured cases saved 77 and 84 % of it.",
        )
    return Claim(
        times,
        EXPOSED_TIME_WITHOUT_DEVICE,
        "All loading time; on a CPU alone, loading and computing share the cores: measured cases "
        "on two cores saved a quarter to all of it.",
    )


def _with_workers(trace: Trace, workers: int) -> tuple[MoveLoading, MoveLoading] | None:
    if not workers:
        return None
    try:
        return move_loading_range(trace, workers)
    except (MissingDataError, NotApplicableError):
        return None


def _method(least: MoveLoading, most: MoveLoading) -> str:
    """Return a sentence on the simulated workers."""
    least_more, most_more = share(most.loop_factor - 1), share(least.loop_factor - 1)
    fewer = f" With fewer threads the loop takes {least_more} to {most_more} longer."
    is_fewer = least.loop_factor > 1
    return (
        f"The trace is simulated with {count(most.workers, 'worker')} on "
        f"{count(most.cores, 'core')}: the loop takes {duration(most.handover_ns)} to "
        f"{duration(least.handover_ns)} to receive a batch, and each busy worker slows it by "
        f"{share(most.contention)} to {share(least.contention)}.{fewer if is_fewer else ''}"
    )


def severity(trace: Trace, stalls: DataStalls, claim: Claim) -> Severity | None:
    """Return the severity by what is sure, where loading and computing share cores; else None.

    None stands for the severity by what may be saved. On shared cores workers may save nothing.
    """
    return sure_severity(trace, (claim,)) or "info" if stalls.computes_on_host else None


def ruled_out(trace: Trace, finding: Finding) -> RuledOut | None:
    """Return a finding as a pattern that costs nothing, where its claims save next to nothing."""
    if is_worth_reporting(trace, finding.claims):
        return None
    [loading] = finding.claims
    return finding.ruled_out(f"{finding.message} But little is saved. {loading.method}")


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


def lines(trace: Trace, costs: Iterable[LoadingCost]) -> tuple[SourceLine, ...]:
    """Return the user's functions on which the calls spend their time; else sampled lines."""
    recorded = event_references.source_lines(cost.name for cost in costs)
    return recorded or event_references.source_lines(loading_lines(trace))


def worker_summary(trace: Trace) -> str:
    """Return a sentence on the time of sampled workers, after a space; "" without samples."""
    samples = worker_samples(trace)
    if samples is None:
        return ""
    processes = count(samples.process_count, "worker process", "worker processes")
    waiting = f"for {share(samples.waiting_share)} of the time"
    spots = worker_spots(trace)
    if not spots:
        return f" In unrecorded steps, {processes} waited for indices {waiting}."
    working = f"{spots[0].count:,} of {samples.working.count:,} samples"
    return (
        f" In unrecorded steps, {processes} spent {share(spots[0].share)} of their working time in "
        f"{spots[0].name} ({working}), and waited for indices {waiting}."
    )


def worker_evidence(trace: Trace) -> tuple[Evidence, ...]:
    """Return the numbers of sampled workers."""
    samples = worker_samples(trace)
    if samples is None:
        return ()
    spots = worker_spots(trace)[:1]
    return (
        *(facts.code("Workers' function with most time", spot.name) for spot in spots),
        *(facts.fraction("Of the workers' working time", spot.share) for spot in spots),
        facts.count("Samples of working workers", samples.working.count),
        facts.fraction("Workers waiting for indices", samples.waiting_share),
    )


def worker_table(trace: Trace) -> tuple[EvidenceTable, ...]:
    """Return the functions of sampled workers; nothing without samples."""
    columns: dict[str, Unit] = {
        "Function of workers": "code",
        "Line with most time": "code",
        "Of their working time": "share",
        "At least": "share",
        "At most": "share",
        "Samples": "count",
    }
    spots = [spot for spot in worker_spots(trace) if spot.share >= WORTH_LISTING]
    rows = [
        (spot.name, spot.lines[0], spot.share, *spot.interval, spot.count)
        for spot in spots[:MOST_FUNCTIONS]
    ]
    label = "Functions of DataLoader workers, by samples (95 % confidence)"
    return (facts.table(label, columns, rows),) if rows else ()


def worker_lines(trace: Trace) -> tuple[SourceLine, ...]:
    """Return the user's lines at which sampled workers work."""
    lines = (line for spot in worker_spots(trace) for line in spot.lines)
    return event_references.source_lines(filter(event_references.is_user_code, lines))


def batch_argument(trace: Trace) -> str:
    """Return the loader's argument for the batch size that was recorded or inferred."""
    recorded = recorded_facts.loader_setting(trace, lambda loader: loader.batch_size)
    if recorded is not None and hints(trace).batch_size is None:
        return f"batch_size={recorded}"
    batch = batch_size(trace)
    return f"batch_size={batch.size}" if batch and batch.is_certain else "batch_size=..."


def cpu_caveat(trace: Trace) -> str:
    """Return the caveat on CPUs: with their number, where that was recorded."""
    usable = usable_cpus(trace)
    if usable is None:
        return (
            "All processes of a machine share its cores: workers times processes should not exceed "
            "them."
        )
    cpus = "one CPU" if usable == 1 else f"{usable} CPUs"
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
