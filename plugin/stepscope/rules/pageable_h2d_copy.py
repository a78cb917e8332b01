"""Copies to the device come from pageable memory."""

from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.analyses.core import requirements
from stepscope.analyses.core.data_loading import DataLoading, data_loading
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.host_copies import HostCopies
from stepscope.analyses.idle.copy_cost import CopyCost, copy_cost
from stepscope.analyses.settings.recorded_settings import RECORDED
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import Evidence, Fix, Link
from stepscope.base.formatting import count, duration, share, size
from stepscope.model import intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, RuledOut, RuleResult, option, severity_of
from stepscope.rules.shared import copy_sources, facts, loading_costs, phrases, recorded_facts

VERIFY = "Recorded again, the copies say `Pinned`, no longer `Pageable`, and their rate is higher."


@dataclass(frozen=True, kw_only=True)
class Options:
    """Thresholds of copies by bytes and host time."""

    least_copy_bytes: int = option(
        64_000,
        "Of one copy; smaller ones are left out.",
        origin="ours: smaller copies are bound by latency, which pinning does not change",
    )
    least_step_bytes: int = option(
        1_000_000,
        "Of all these copies, per step (without steps: in total), from which it reports.",
        origin="ours: Nsight Systems lists every pageable copy, which is noise",
    )
    least_host_share: float = option(
        0.01,
        "Of the window, 0 to 1, in the calls: from here on it reports of fewer bytes too.",
        origin="ours: what all advice needs to be worth reporting",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report copies from pageable memory that are large, or keep the host busy."""
    device = requirements.main_device(trace)
    copies = copy_sources.to_device(trace, device)
    if not trace.dialect.records_pageable:
        vendor = trace.dialect.vendor or "this vendor"
        msg = f"{vendor}'s traces do not tell pageable memory from pinned"
        raise MissingDataError(msg)
    copies = copies.select(copies.is_pageable & (copies.bytes >= options.least_copy_bytes))
    span = window(trace)
    host_share = copies.host_ns / span.reference_ns
    is_large = span.per_step(copies.total_bytes) >= options.least_step_bytes
    if not len(copies.rows) or not (is_large or host_share >= options.least_host_share):
        return
    cost = copy_cost(trace, device, copies)
    claimed = intervals.merged(cost.exposed, cost.idle)
    claimed_ns = intervals.duration_ns(claimed)
    evidence = tuple(_evidence(trace, copies, cost, host_share))
    if not claimed_ns:
        yield RuledOut(
            message=f"{_copied(copies)}, but kernels run meanwhile and behind them: nothing could "
            "be won.",
            evidence=evidence,
        )
        return
    tables, events, lines = copy_sources.sources(trace, copies, copy_sources.largest(copies))
    loading = data_loading(trace)
    yield Finding(
        severity=severity_of(claimed_ns / span.reference_ns) or "info",
        message=f"{_copied(copies)}; the host spends {duration(span.per_step(copies.host_ns))} "
        f"{phrases.per_step(trace)} ({share(host_share)}) staging them.",
        evidence=evidence,
        tables=tables,
        events=events,
        locations=lines,
        claims=(
            Claim(
                claimed,
                HALF_TO_ALL,
                "Copying that no kernel hides, and idle time while the host stages the copies or "
                "right behind its waits for them. Pinned copies have still to be made: at least "
                "half of the copying is won.",
                low_intervals=cost.exposed,
            ),
        ),
        fix=_fix(trace, loading),
        effort="flag" if loading.call_count else "hour",
    )


def _copied(copies: HostCopies) -> str:
    rate = copies.bytes_per_second
    return (
        f"{count(len(copies.rows), 'copy comes', 'copies come')} from pageable memory: "
        f"{size(copies.total_bytes)} at {size(rate)}/s"
    )


def _evidence(
    trace: Trace, copies: HostCopies, cost: CopyCost, host_share: float
) -> Iterator[Evidence]:
    span = window(trace)
    a_step = span.per_step(copies.total_bytes)
    label = "Bytes per step" if span.has_steps else "Bytes"
    yield facts.size(label, a_step)
    yield facts.bandwidth("Rate", copies.bytes_per_second)
    yield facts.fraction("Host time in the copy calls", host_share)
    exposed_ns = intervals.duration_ns(cost.exposed)
    yield facts.duration("Copying while no kernel runs", exposed_ns)
    overview = Link(view="overview")
    late_ns, behind_ns = intervals.duration_ns(cost.late), intervals.duration_ns(cost.behind)
    staging = "Device idle while the host stages"
    yield facts.duration(staging, late_ns, overview)
    waiting = "Device idle behind waits for them"
    yield facts.duration(waiting, behind_ns, overview)


def _fix(trace: Trace, loading: DataLoading) -> Fix:
    """Return what to do: let the loader pin, or where there is none, keep a pinned buffer."""
    caveats = (
        "Do not pin in the loop (t.pin_memory().to(...)): that may be twice as slow.",
        "What is copied without blocking must not be overwritten before the copy has run.",
    )
    if not loading.call_count:
        return Fix(
            "Keep one pinned buffer, fill it, and copy from it without blocking.",
            "staging = torch.empty(shape, pin_memory=True)  # once\n"
            "staging.copy_(batch)\n"
            f"batch = staging.to({copy_sources.target(trace)}, non_blocking=True)",
            verify=VERIFY,
            caveats=caveats,
        )
    if recorded_facts.loader_setting(trace, lambda loader: loader.pin_memory):
        return _not_the_loaders(trace, caveats)
    batch_argument = loading_costs.batch_argument(trace)
    workers = loading_costs.worker_count(trace) or "..."
    if not loading.multi_process_count:
        workers = recorded_facts.bounded(trace, 4)
    return Fix(
        "Let the DataLoader pin its batches, and copy without blocking.",
        f"loader = DataLoader(dataset, {batch_argument}, num_workers={workers}, pin_memory=True)\n"
        "for batch in loader:\n"
        f"    batch = batch.to({copy_sources.target(trace)}, non_blocking=True)",
        verify=VERIFY,
        caveats=caveats,
    )


def _not_the_loaders(trace: Trace, caveats: tuple[str, ...]) -> Fix:
    """Return what helps where the loader pins already: these copies are of something else."""
    return Fix(
        "The DataLoader pins already: pin what is copied beside its batches, too.",
        "class Batch:\n"
        "    def pin_memory(self):  # the loader calls it on a batch of a class of your own\n"
        "        self.inputs = self.inputs.pin_memory()\n"
        "        return self\n"
        "# what is made behind the loader: make it on the device\n"
        f"mask = torch.zeros(shape, device={copy_sources.target(trace)})",
        verify=VERIFY,
        caveats=(f"pin_memory=True of the loader was {RECORDED}.", *caveats),
    )


RULE = Rule(
    id="pageable-h2d-copy",
    title="Copies to the device come from pageable memory",
    category="transfer",
    why="The driver first copies pageable memory into a pinned buffer of its own, in the calling "
    "thread: the copy is slower, cannot overlap, and blocks the host.",
    detects="Copies to the device of at least `least_copy_bytes` each that the profiler labels as "
    "pageable. It reports where they are at least `least_step_bytes` per step, or keep the host in "
    "their calls for `least_host_share` of the window.",
    silent=(
        "The copies lie in a first step that has ten times the copies of any later one: the model "
        "is being loaded.",
        "They are smaller than `least_copy_bytes`: many-small-h2d-copies answers for those.",
        "No time is lost: kernels run meanwhile, and the device is never idle for them.",
    ),
    saving="At most all copying that no kernel hides, and the idle time while the host is in their "
    "calls or right behind its waits for them; at least half of that copying, since pinned copies "
    "have to be made too.",
    fix=Fix(
        "Let the DataLoader pin its batches, and copy without blocking.",
        "loader = DataLoader(dataset, num_workers=4, pin_memory=True)\n"
        "for batch in loader:\n"
        "    batch = batch.to(device, non_blocking=True)",
        verify=VERIFY,
    ),
    effort="flag",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "launches", "clocks", "steps"}),
    priority=150,
    culprit="copying from pageable memory",
    links=(copy_sources.TUTORIAL,),
    origin="Nsight Systems cuda_memcpy_async; PyTorch tuning guide",
)
