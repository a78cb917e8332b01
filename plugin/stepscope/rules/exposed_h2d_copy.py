"""Copies to the device run while nothing computes."""

from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.analyses.core import requirements
from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import gpu_bound_times
from stepscope.analyses.devices.host_copies import HostCopies
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.findings import Evidence, Fix
from stepscope.base.formatting import count, duration, share, size
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, RuledOut, RuleResult, option
from stepscope.rules.shared import copy_sources, facts, phrases
from stepscope.rules.shared.copy_sources import ANY_DEVICE

VERIFY = "Memcpy's share of the step in Overview falls: copies then run beside kernels."


@dataclass(frozen=True, kw_only=True)
class Options:
    """From how much time on it speaks."""

    least_share: float = option(
        0.03,
        "Of the device's time, 0 to 1: copies that no kernel hides and that the step waits for.",
        origin="TraceLens speaks at 5 % for both directions; xprof at 30 %, which is too late",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report copies to the device that no kernel hides and that no data loading owns."""
    device = requirements.main_device(trace)
    within = window(trace)
    copies = copy_sources.to_device(trace, device)
    copies = copies.chosen(~copies.is_pageable)
    exposed = _exposed(trace, device, copies)
    waited = intervals.intersection(exposed, _waited_for(trace))
    waited = intervals.difference(waited, device.communication)
    whole_ns = max(1, within.device_duration_ns)
    lost = intervals.duration_ns(waited) / whole_ns
    evidence = tuple(_evidence(copies, intervals.duration_ns(exposed) / whole_ns, lost))
    if lost < options.least_share:
        if intervals.duration_ns(copies.on_device) >= options.least_share * whole_ns:
            yield RuledOut(message=_acquitted(trace, copies, exposed, lost), evidence=evidence)
        return
    tables, events, lines = copy_sources.shown(trace, copies, copy_sources.longest(copies))
    lasting = duration(within.per_step(intervals.duration_ns(waited)))
    yield Finding(
        message=f"{_copied(copies)} take {lasting} {phrases.per_step(trace)} ({share(lost)}) for "
        "which the step waits and nothing computes.",
        evidence=evidence,
        tables=tables,
        events=events,
        locations=lines,
        claims=(
            Claim(
                waited,
                HALF_TO_ALL,
                "Copying that no kernel hides and that the step waits for; a prefetcher hides half "
                "of it at least.",
            ),
        ),
        fix=_fix(copy_sources.module(trace), copy_sources.target(trace)),
    )


def _exposed(trace: Trace, device: DeviceActivity, copies: HostCopies) -> Intervals:
    """Return when copies run, nothing computes, and the host does not wait for data anyway."""
    within = window(trace)
    exposed = intervals.difference(copies.on_device, device.computation)
    exposed = intervals.difference(exposed, data_loading(trace).times)
    return intervals.clip(exposed, within.start_ns, within.device_end_ns)


def _waited_for(trace: Trace) -> Intervals:
    """Return when the step waits for what the device does: its successor is there, or the host.

    Elsewhere the host is late, and would be so without the copy.
    """
    syncs = synchronizations(trace)
    waits = syncs.of("h2d")
    blocked = intervals.union(syncs.start_ns[waits], syncs.end_ns[waits])
    return intervals.merged(gpu_bound_times(trace).possible, blocked)


def _copied(copies: HostCopies) -> str:
    number = count(len(copies.rows), "copy", "copies")
    amount = f" ({size(copies.total_bytes)})" if copies.total_bytes else ""
    return f"{number} to the device{amount}"


def _acquitted(trace: Trace, copies: HostCopies, exposed: Intervals, lost: float) -> str:
    copying_ns = intervals.duration_ns(copies.on_device)
    hidden = 1 - intervals.duration_ns(exposed) / max(1, copying_ns)
    took = phrases.time(trace, copying_ns)
    return (
        f"{_copied(copies)} take {took}, of which computing or waiting for data hides "
        f"{share(hidden)}; the step waits for {share(lost)} of the time."
    )


def _evidence(copies: HostCopies, exposed: float, lost: float) -> Iterator[Evidence]:
    yield facts.fraction("Exposed copying", exposed)
    yield facts.fraction("Of that, waited for by the step", lost)
    copying_ns = intervals.duration_ns(copies.on_device)
    yield facts.duration("Copying in all", copying_ns)
    yield facts.size("Bytes copied", copies.total_bytes)
    yield facts.count("Copies", len(copies.rows))


def _fix(module: str, target: str) -> Fix:
    """Return the prefetcher for torch's module of the device, and what `.to()` takes there."""
    is_known = target != ANY_DEVICE
    return Fix(
        "Copy the next batch on a stream of its own while this one is computed.",
        f"copier = {f'{module}.Stream()' if is_known else 'torch.Stream(device)'}\n"
        "def prefetch(batch):\n"
        "    if batch is None:\n"
        "        return None\n"
        f"    with {f'{module}.stream(copier)' if is_known else 'copier'}:\n"
        f"        return batch.to({target}, non_blocking=True)  # from pinned memory\n"
        "upcoming = prefetch(next(batches, None))\n"
        "while upcoming is not None:\n"
        f"    {module}.current_stream().wait_stream(copier)\n"
        "    ready, upcoming = upcoming, prefetch(next(batches, None))\n"
        f"    ready.record_stream({module}.current_stream())\n"
        "    train_step(ready)",
        verify=VERIFY,
        caveats=(
            "Needs pinned memory; sending uint8 and converting on the device halves it again.",
            "One more batch lies in the device's memory.",
        ),
    )


RULE = Rule(
    id="exposed-h2d-copy",
    title="Copies to the device are not overlapped with computing",
    category="transfer",
    why="A copy and kernels can run at once, on different streams; here the kernels wait for it.",
    detects="Copies to the device during which nothing computes and the host does not wait for "
    "data. It speaks where the step waits for at least `least_share` of the device's time of that: "
    "what follows is launched already, or the host waits for the copy.",
    silent=(
        "The copies lie in a first step that has ten times the copies of any later one: the model "
        "is being loaded.",
        "Copies from pageable memory cannot overlap: pageable-h2d-copy answers for those.",
        "A copy while the host waits for the next batch is that wait's.",
        "The host is late with what follows the copy: it would be so without the copy.",
        "A collective runs meanwhile: it would without the copy too.",
    ),
    saving=(
        "At most all copying that no kernel hides and that the step waits for; at least half of it."
    ),
    fix=_fix("torch.accelerator", ANY_DEVICE),
    effort="hour",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "launches", "clocks", "steps"}),
    priority=170,
    culprit="copying to the device",
    links=(copy_sources.TUTORIAL,),
    origin="TraceLens exposed memcpy; xprof DataTransferBound",
)
