"""Copies of tensors to the host make it wait."""

from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.host_copies import HostCopies, copies_to_host
from stepscope.analyses.host.sampled_lines import only_line_for
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.findings import Link, Severity, severity_of
from stepscope.base.formatting import rate, share, size
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Trace, option
from stepscope.rules.shared import facts, phrases, sync_waits
from stepscope.rules.shared.sync_waits import Texts, Waits

READBACKS = 2
"""Copies of the result per inference step: the host has to wait for them."""
TEXTS = Texts(
    counted="Waits for a copy in total",
    happens=lambda number: (
        f"The host waits {sync_waits.times(number)} for a tensor to be copied to it"
    ),
    less="copying less",
    link=Link(view="operators", search="aten::copy_"),
)
COPYING = (
    "Copying for which the host waits and that no kernel hides, and the idle time right behind it; "
    "at least half of the copying, since a copy into pinned memory takes time too."
)


@dataclass(frozen=True, kw_only=True)
class Options(sync_waits.Options):
    """Thresholds of the waits, and of the copying itself."""

    least_copying_share: float = option(
        0.03,
        "Fraction of the window in copying for which the host waits while no kernel runs.",
        origin="ours: as exposed-h2d-copy",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report `.cpu()`, `.numpy()` and prints of device tensors by the idle time they cause."""
    waits = sync_waits.waits(trace, "d2h", options)
    if waits is None:
        return
    copies = _awaited_copies(trace, waits)
    copying = _copying(trace, waits, copies)
    if phrases.fraction_of_window(trace, intervals.duration_ns(copying)) >= (
        options.least_copying_share
    ):
        yield _large_copies(trace, waits, copies, copying)
        return
    finding = sync_waits.finding(trace, waits, TEXTS, _fix(trace))
    if waits.is_costly:
        yield replace(finding, severity=_severity(trace, waits, finding))
    else:
        readback = "" if is_training(trace) else " In inference it is the result's readback."
        yield sync_waits.ruled_out(trace, waits, TEXTS, finding, readback)


def _awaited_copies(trace: Trace, waits: Waits) -> HostCopies:
    """Return the copies to the host whose operators the host waits in."""
    copies = copies_to_host(trace, requirements.main_device(trace))
    asker = links(trace).owner_of_call[synchronizations(trace).calls[waits.cost.rows]]
    return copies.select(np.isin(copies.owner, asker))


def _copying(trace: Trace, waits: Waits, copies: HostCopies) -> Intervals:
    """Return the times of copies for which the host waits, and in which no kernel runs."""
    syncs, rows = synchronizations(trace), waits.cost.rows
    waiting = intervals.union(syncs.start_ns[rows], syncs.end_ns[rows])
    exposed = intervals.difference(copies.on_device, requirements.main_device(trace).kernels)
    return intervals.intersection(exposed, waiting)


def _large_copies(trace: Trace, waits: Waits, copies: HostCopies, copying: Intervals) -> Finding:
    """Return the finding about copies that take long themselves."""
    finding = sync_waits.finding(trace, waits, TEXTS, _fix(trace))
    copying_ns = intervals.duration_ns(copying)
    memory = ", into pageable memory" if copies.is_pageable.any() else ""
    per_step = window(trace).per_step(copies.total_bytes)
    blocked = phrases.fraction_of_window(trace, waits.cost.blocked_ns)
    line = "" if finding.locations else only_line_for(trace, blocked)
    where = f" It is in {line}, by samples of unrecorded steps." if line else ""
    return replace(
        finding,
        severity=None,
        message=f"{size(per_step)} {phrases.per_step(trace)} are copied to the host{memory}, at "
        f"{rate(copies.bytes_per_second)}: the host waits for "
        f"{phrases.time_and_fraction(trace, copying_ns)} while no kernel runs, and "
        f"{phrases.device(trace)} is then idle for {phrases.time(trace, waits.idle_ns)} "
        f"({share(waits.idle_share)}).{where}",
        evidence=(
            facts.size(f"Bytes {phrases.per_step(trace)}", per_step),
            facts.bandwidth("Rate", copies.bytes_per_second),
            facts.duration("Copying while no kernel runs, in total", copying_ns),
            *finding.evidence,
        ),
        # the host needs the data: it cannot run ahead, as without waits
        claims=(
            Claim(
                intervals.merged(copying, waits.cost.idle),
                HALF_TO_ALL,
                COPYING,
                low_intervals=copying,
            ),
        ),
        locations=finding.locations or event_references.source_lines([line]),
        fix=structs.replace(LESS, caveats=_fix(trace).caveats),
    )


def _severity(trace: Trace, waits: Waits, finding: Finding) -> Severity | None:
    """Return the severity: a result's readback in inference may be less than a warning."""
    if is_training(trace) or waits.per_step > READBACKS:
        return finding.severity
    return severity_of(phrases.fraction_of_window(trace, intervals.duration_ns(waits.cost.refill)))


def _fix(trace: Trace) -> Fix:
    inherent = "Reading the result of an inference step is inherent: batch the readbacks."
    metrics = "Metrics that stay tensors need no copy at all."
    caveat = metrics if is_training(trace) else inherent
    return structs.replace(RULE.fix, caveats=(caveat, *RULE.fix.caveats))


LESS = Fix(
    "Reduce the tensor on the device (mean, argmax, top-k, the rows in use), and copy the result; "
    "into pinned memory without blocking, and read it a step later.",
    "mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)  # not in NumPy\n"
    "result = torch.empty_like(mean, device='cpu', pin_memory=True)        # once\n"
    "result.copy_(mean, non_blocking=True)\n"
    "done = torch.Event(); done.record()\n"
    "...                      # launch the next step first\n"
    "done.synchronize()       # then wait, and read result",
    verify="In the next trace the copies to the host are smaller, and come to pinned memory.",
)
RULE = Rule(
    id="blocking-d2h-copy",
    title="Copying tensors to the CPU (.cpu(), .numpy()) drains the device",
    passed="Copies to the CPU do not drain the device",
    category="synchronization",
    why="A copy to pageable memory makes the host wait until the device has finished everything "
    "before it; by then nothing is queued, and the device is idle.",
    detects="Waits of the host in operators that copy from the device to it: `.cpu()`, "
    f'`.to("cpu")`, `.numpy()`, `.tolist()`. {sync_waits.DETECTS} Large copies are reported also '
    "where the copying itself, while the host waits and no kernel runs, takes "
    "`least_copying_share`.",
    silent=(
        *sync_waits.SILENT,
        "A copy into pinned memory with `non_blocking=True` waits for nothing.",
        "Reads of single values are reported by `item-sync`.",
        "In inference one or two copies per step read the result back: under 5 % they are info.",
        "Copies that run beside kernels, or for which the host does not wait, cost nothing.",
    ),
    saving=f"{sync_waits.SAVING} Of large copies also the copying, half of it at least.",
    fix=Fix(
        "Copy into pinned memory without blocking and read it later, or keep it on the device.",
        "result = torch.empty_like(output, device='cpu', pin_memory=True)   # once\n"
        "result.copy_(output, non_blocking=True)\n"
        "done = torch.Event(); done.record()\n"
        "...                      # launch the next step first\n"
        "done.synchronize()       # then wait, and read result",
        caveats=("Before `done.synchronize()` the memory of `result` is undefined.",),
        verify="In the next trace `After a sync` in Overview is near 0.",
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks", "steps"}),
    priority="synchronization",
    after=("item-sync",),
    links=("/tutorials/intermediate/pinmem_nonblock.html",),
    origin="TraceLens D2H; Nsight Systems cuda_api_sync, here by idle time instead",
    culprit="copying tensors to the host",
)
