"""Copies to the device run while nothing computes."""

from collections.abc import Iterator

from stepscope.analyses.core import requirements
from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import gpu_bound_times
from stepscope.analyses.devices.host_copies import HostCopies
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.findings import Evidence
from stepscope.base.formatting import count, share, size
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import copy_sources, facts, kernel_time, phrases
from stepscope.rules.shared.copy_sources import ANY_DEVICE


class Options(Thresholds):
    """Thresholds from which exposed copies are worth reporting."""

    least_share: float = option(
        0.03,
        "Fraction of the device's time in copies that no kernel hides and that the step waits for.",
        origin="TraceLens reports at 5 % for both directions; xprof at 30 %, which is too late",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report copies to the device that no kernel hides, apart from waits for data."""
    device = requirements.main_device(trace)
    copies = copy_sources.to_device(trace, device)
    copies = copies.select(~copies.is_pageable)
    exposed = _exposed(trace, device, copies)
    waited = intervals.intersection(exposed, _waited_for(trace))
    waited = intervals.difference(waited, device.communication)
    whole_ns = max(1, window(trace).duration_ns)
    lost = intervals.duration_ns(waited) / whole_ns
    is_costly = lost >= options.least_share
    if not is_costly and intervals.duration_ns(copies.on_device) < options.least_share * whole_ns:
        return
    evidence = tuple(_evidence(copies, intervals.duration_ns(exposed) / whole_ns, lost))
    if not is_costly:
        yield RuledOut(message=_message(trace, copies, exposed, lost), evidence=evidence)
        return
    tables, events, lines = copy_sources.sources(trace, copies, copy_sources.longest(copies))
    finding = Finding(
        message=f"{_copied(copies)} take {phrases.time(trace, intervals.duration_ns(waited))} "
        f"({share(lost)}) in which the step waits and nothing computes.",
        evidence=evidence,
        tables=tables,
        events=events,
        locations=lines,
        claims=(
            Claim(
                waited,
                HALF_TO_ALL,
                "Copying that no kernel hides and that the step waits for; a prefetcher hides at "
                "least half of it.",
                is_device_work=True,
            ),
        ),
        fix=_fix(copy_sources.module(trace), copy_sources.target(trace)),
    )
    yield kernel_time.result(trace, finding)


def _exposed(trace: Trace, device: DeviceActivity, copies: HostCopies) -> Intervals:
    """Return the times of copies while nothing computes and the host does not wait for data."""
    span = window(trace)
    exposed = intervals.difference(copies.on_device, device.computation)
    exposed = intervals.difference(exposed, data_loading(trace).times)
    return intervals.clip(exposed, span.device_start_ns, span.device_end_ns)


def _waited_for(trace: Trace) -> Intervals:
    """Return the times in which the next work, or the host, waits for the device.

    At other times the host is late, and would be late without the copy.
    """
    syncs = synchronizations(trace)
    waits = syncs.of("h2d")
    blocked = intervals.union(syncs.start_ns[waits], syncs.end_ns[waits])
    return intervals.merged(gpu_bound_times(trace).possible, blocked)


def _copied(copies: HostCopies) -> str:
    number = count(len(copies.rows), "copy", "copies")
    amount = f" ({size(copies.total_bytes)})" if copies.total_bytes else ""
    return f"{number} to the device{amount}"


def _message(trace: Trace, copies: HostCopies, exposed: Intervals, lost: float) -> str:
    copying_ns = intervals.duration_ns(copies.on_device)
    hidden = 1 - intervals.duration_ns(exposed) / max(1, copying_ns)
    return (
        f"{_copied(copies)} take {phrases.time(trace, copying_ns)}, of which computing or waiting "
        f"for data hides {share(hidden)}; the step waits for {share(lost)} of the time."
    )


def _evidence(copies: HostCopies, exposed: float, lost: float) -> Iterator[Evidence]:
    yield facts.fraction("Exposed copying", exposed)
    yield facts.fraction("Of that, waited for by the step", lost)
    yield facts.duration("Copying in total", intervals.duration_ns(copies.on_device))
    yield facts.size("Bytes copied in total", copies.total_bytes)
    yield facts.count("Copies in total", len(copies.rows))


def _fix(module: str, target: str) -> Fix:
    """Return the prefetcher for torch's module of the device and the argument of `.to()`."""
    is_generic = target == ANY_DEVICE
    stream = "torch.Stream(device)" if is_generic else f"{module}.Stream()"
    context = "copier" if is_generic else f"{module}.stream(copier)"
    return Fix(
        "Copy the next batch on a separate stream while the current batch is computed.",
        f"copier = {stream}\n"
        "def prefetch(batch):\n"
        "    if batch is None:\n"
        "        return None\n"
        f"    with {context}:\n"
        f"        return batch.to({target}, non_blocking=True)  # from pinned memory\n"
        "upcoming = prefetch(next(batches, None))\n"
        "while upcoming is not None:\n"
        f"    {module}.current_stream().wait_stream(copier)\n"
        "    ready, upcoming = upcoming, prefetch(next(batches, None))\n"
        f"    ready.record_stream({module}.current_stream())\n"
        "    train_step(ready)",
        verify="The fraction of Memcpy in Overview falls: copies then run alongside kernels.",
        caveats=(
            "Needs pinned memory; sending uint8 and converting on the device halves it again.",
            "One more batch occupies the device's memory.",
        ),
    )


RULE = Rule(
    id="exposed-h2d-copy",
    title="Copies to the device are not overlapped with computing",
    passed="Copies to the device overlap with computing, or take little time",
    category="transfer",
    why="A copy and kernels can run at once, on different streams; here the kernels wait for it.",
    detects="Copies to the device during which nothing computes and the host does not wait for "
    "data. It reports where the step waits for at least `least_share` of the device's time of "
    "that: the next work is launched already, or the host waits for the copy.",
    silent=(
        "The copies are in a first step that has ten times the copies of any later step: the model "
        "is being loaded.",
        "Copies from pageable memory cannot overlap: `pageable-h2d-copy` reports them.",
        "A copy while the host waits for the next batch is a part of that wait.",
        "The host is late with the work after the copy: it would be late without the copy.",
        "A collective runs meanwhile: it would run without the copy too.",
    ),
    saving="At most all copying that no kernel hides and that the step waits for; at least half of "
    "it.",
    fix=_fix("torch.accelerator", ANY_DEVICE),
    effort="hour",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "launches", "clocks", "steps"}),
    priority="synchronization",
    after=("many-small-h2d-copies",),
    culprit="copying to the device",
    links=(copy_sources.TUTORIAL,),
    origin="TraceLens exposed memcpy; xprof DataTransferBound",
)
