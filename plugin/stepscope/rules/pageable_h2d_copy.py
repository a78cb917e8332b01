"""Copies to the device come from pageable memory."""

from collections.abc import Iterator

from stepscope.analyses.core import requirements
from stepscope.analyses.core.data_loading import DataLoading, data_loading
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.host_copies import HostCopies
from stepscope.analyses.idle.copy_cost import CopyCost, copy_cost
from stepscope.analyses.idle.loader_workers import worker_count
from stepscope.analyses.settings.recorded_settings import RECORDED
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.findings import Evidence, severity_of
from stepscope.base.formatting import count, rate, size
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import copy_sources, facts, loading_costs, phrases, recorded_facts

VERIFY = "Recorded again, the copies say `Pinned`, no longer `Pageable`, and their rate is higher."


class Options(Thresholds):
    """Thresholds of copies by bytes and host time."""

    least_copy_bytes: int = option(
        64_000,
        "Size of one copy; smaller ones are left out.",
        origin="ours: smaller copies are bound by latency, which pinning does not change",
    )
    least_step_bytes: int = option(
        1_000_000,
        "Size of all these copies per step (without steps: in total) from which it reports.",
        origin="ours: Nsight Systems lists every pageable copy, which is noise",
    )
    least_host_share: float = option(
        0.01,
        "Fraction of the window in the calls, from which it reports fewer bytes too.",
        origin="ours: below 1 % no rule reports",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report copies from pageable memory that are large, or keep the host busy."""
    device = requirements.main_device(trace)
    copies = copy_sources.to_device(trace, device)
    vendor = trace.dialect.vendor or "this vendor"
    requirements.conclusive_if(
        trace.dialect.records_pageable,
        f"{vendor}'s traces do not distinguish pageable memory from pinned",
    )
    copies = copies.select(copies.is_pageable & (copies.bytes >= options.least_copy_bytes))
    host_share = phrases.fraction_of_window(trace, copies.host_ns)
    is_large = window(trace).per_step(copies.total_bytes) >= options.least_step_bytes
    if not len(copies.rows) or not (is_large or host_share >= options.least_host_share):
        return
    cost = copy_cost(trace, device, copies)
    claimed = intervals.merged(cost.exposed, cost.idle)
    evidence = tuple(_evidence(trace, copies, cost, host_share))
    text = (
        f"{count(len(copies.rows), 'copy comes', 'copies come')} from pageable memory: "
        f"{size(copies.total_bytes)} at {rate(copies.bytes_per_second)}"
    )
    if not len(claimed):
        reason = "but kernels run during and after them: nothing could be saved."
        yield RuledOut(message=f"{text}, {reason}", evidence=evidence)
        return
    tables, events, lines = copy_sources.sources(trace, copies, copy_sources.largest(copies))
    loading = data_loading(trace)
    lost = phrases.fraction_of_window(trace, intervals.duration_ns(claimed))
    yield Finding(
        severity=severity_of(lost) or "info",
        message=f"{text}; the host spends {phrases.time_and_fraction(trace, copies.host_ns)} "
        "staging them.",
        evidence=evidence,
        tables=tables,
        events=events,
        locations=lines,
        claims=(
            Claim(
                claimed,
                HALF_TO_ALL,
                "Copying that no kernel hides, and idle time while the host stages the copies or "
                "right after its waits for them. Pinned copies also take time: at least half of "
                "the copying is saved.",
                low_intervals=cost.exposed,
            ),
        ),
        fix=_fix(trace, loading),
        effort="flag" if loading.call_count else "hour",
    )


def _evidence(
    trace: Trace, copies: HostCopies, cost: CopyCost, host_share: float
) -> Iterator[Evidence]:
    times_ns = map(intervals.duration_ns, (cost.exposed, cost.late, cost.behind))
    exposed_ns, late_ns, behind_ns = times_ns
    per_step = window(trace).per_step(copies.total_bytes)
    yield facts.size(f"Bytes {phrases.per_step(trace)}", per_step)
    yield facts.bandwidth("Rate", copies.bytes_per_second)
    yield facts.fraction("Host time in the copy calls", host_share)
    yield facts.duration("Copying while no kernel runs, in total", exposed_ns)
    yield facts.duration("Device idle while the host stages, in total", late_ns, "overview")
    yield facts.duration("Device idle after waits for them, in total", behind_ns, "overview")


def _fix(trace: Trace, loading: DataLoading) -> Fix:
    """Return the fix: let the loader pin, or where there is none, reuse a pinned buffer."""
    caveats = (
        "Do not pin in the loop (t.pin_memory().to(...)): that may be twice as slow.",
        "Do not overwrite memory that is copied without blocking before the copy has run.",
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
    workers = worker_count(trace) or "..."
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
    """Return the fix where the loader pins already: these copies are not of its batches."""
    return Fix(
        "The DataLoader pins already: pin the other tensors that are copied, too.",
        "class Batch:\n"
        "    def pin_memory(self):  # the loader calls it on batches of your class\n"
        "        self.inputs = self.inputs.pin_memory()\n"
        "        return self\n"
        "# tensors made after the loader: make them on the device\n"
        f"mask = torch.zeros(shape, device={copy_sources.target(trace)})",
        verify=VERIFY,
        caveats=(f"pin_memory=True of the loader was {RECORDED}.", *caveats),
    )


RULE = Rule(
    id="pageable-h2d-copy",
    title="Copies to the device come from pageable memory",
    passed="Copies to the device come from pinned memory, or are short",
    category="transfer",
    why="The driver first copies pageable memory into its pinned buffer, in the calling thread: "
    "the copy is slower, cannot overlap, and blocks the host.",
    detects="Copies to the device of at least `least_copy_bytes` each that the profiler labels as "
    "pageable. It reports where they are at least `least_step_bytes` per step, or keep the host in "
    "their calls for `least_host_share` of the window.",
    silent=(
        "The copies are in a first step that has ten times the copies of any later step: the "
        "model is being loaded.",
        "They are smaller than `least_copy_bytes`: many-small-h2d-copies reports those.",
        "No time is lost: kernels run meanwhile, and the device is never idle for them.",
    ),
    saving="At most all copying that no kernel hides, and the idle time while the host is in "
    "their calls or right after its waits for them; at least half of that copying, since pinned "
    "copies take time too.",
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
    priority="synchronization",
    after=("explicit-device-sync",),
    culprit="copying from pageable memory",
    links=(copy_sources.TUTORIAL,),
    origin="Nsight Systems cuda_memcpy_async; PyTorch tuning guide",
)
