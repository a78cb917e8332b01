"""Copies of tensors to the host make it wait."""

from dataclasses import replace

from msgspec import structs

from stepscope.analyses.core.training_detection import is_training
from stepscope.base.findings import Link, Severity, severity_of
from stepscope.model import intervals
from stepscope.rules import Finding, Fix, Results, Rule, Trace
from stepscope.rules.shared import phrases, sync_waits
from stepscope.rules.shared.sync_waits import Options, Texts, Waits

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


def check(trace: Trace, options: Options) -> Results:
    """Report `.cpu()`, `.numpy()` and prints of device tensors by the idle time they cause."""
    waits = sync_waits.waits(trace, "d2h", options)
    if waits is None:
        return
    finding = sync_waits.finding(trace, waits, TEXTS, _fix(trace))
    if waits.is_costly:
        yield replace(finding, severity=_severity(trace, waits, finding))
    else:
        readback = "" if is_training(trace) else " In inference it is the result's readback."
        yield sync_waits.ruled_out(trace, waits, TEXTS, finding, readback)


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


RULE = Rule(
    id="blocking-d2h-copy",
    title="Copying tensors to the CPU (.cpu(), .numpy()) drains the device",
    passed="Copies to the CPU do not drain the device",
    category="synchronization",
    why="A copy to pageable memory makes the host wait until the device has finished everything "
    "before it; by then nothing is queued, and the device is idle.",
    detects="Waits of the host in operators that copy from the device to it: `.cpu()`, "
    f'`.to("cpu")`, `.numpy()`, `.tolist()`. {sync_waits.DETECTS}',
    silent=(
        *sync_waits.SILENT,
        "A copy into pinned memory with `non_blocking=True` waits for nothing.",
        "Reads of single values are reported by `item-sync`.",
        "In inference one or two copies per step read the result back: under 5 % they are info.",
    ),
    saving=sync_waits.SAVING,
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
