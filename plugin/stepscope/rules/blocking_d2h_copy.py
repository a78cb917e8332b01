"""Copies of tensors to the host make it wait."""

from collections.abc import Iterator
from dataclasses import replace

from msgspec import structs

from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.base.findings import Fix, Link, Severity
from stepscope.model import intervals
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, RuleResult, severity_of
from stepscope.rules.shared import sync_waits
from stepscope.rules.shared.sync_waits import Options, Waits, Words, waits

READBACKS = 2
"""An inference step hands over its result in one copy or two: it has to be waited for."""
WORDS = Words(
    counted="Waits for a copy",
    happens=lambda number: (
        f"The host waits {sync_waits.times(number)} for a tensor to be copied to it"
    ),
    less="copying less",
    link=Link(view="operators", search="aten::copy_"),
)


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report `.cpu()`, `.numpy()` and prints of device tensors by the idle time they cause."""
    found = waits(trace, "d2h", options)
    if found is None:
        return
    if found.is_costly:
        finding = sync_waits.finding(trace, found, WORDS, _fix(trace))
        yield replace(finding, severity=_severity(trace, found, finding))
    else:
        readback = "" if is_training(trace) else " In inference it is the result's readback."
        yield sync_waits.rejected(trace, found, WORDS, readback)


def _severity(trace: Trace, found: Waits, finding: Finding) -> Severity | None:
    """Return how serious it is: of a result's readback in inference, what its share says."""
    if is_training(trace) or found.a_step > READBACKS:
        return finding.severity
    refill_ns = intervals.duration_ns(found.cost.refill)
    return severity_of(refill_ns / window(trace).reference_ns)


def _fix(trace: Trace) -> Fix:
    inherent = "Reading the result of an inference step is inherent: batch the readbacks."
    metrics = "Metrics that stay tensors need no copy at all."
    own = metrics if is_training(trace) else inherent
    return structs.replace(RULE.fix, caveats=(own, *RULE.fix.caveats))


RULE = Rule(
    id="blocking-d2h-copy",
    title="Copying tensors to the CPU (.cpu(), .numpy()) drains the device",
    category="synchronization",
    why="A copy to pageable memory makes the host wait until the device has finished everything "
    "before it; by then nothing is queued, and the device stands still.",
    detects=(
        "Waits of the host in operators that copy from the device to it: `.cpu()`, "
        '`.to("cpu")`, `.numpy()`, `.tolist()`. ' + sync_waits.DETECTS
    ),
    silent=(
        *sync_waits.SILENT,
        "A copy into pinned memory with `non_blocking=True` waits for nothing.",
        "Reading single values is `item-sync`'s matter.",
        "In inference one or two copies a step read the result back: under 5 % that is a note.",
    ),
    saving=sync_waits.SAVING,
    fix=Fix(
        "Copy without blocking into pinned memory, and look at it later; or keep it there.",
        "result = torch.empty_like(output, device='cpu', pin_memory=True)   # once\n"
        "result.copy_(output, non_blocking=True)\n"
        "done = torch.Event(); done.record()\n"
        "...                      # launch the next step first\n"
        "done.synchronize()       # then wait, and read result",
        caveats=("Before `done.synchronize()` the result's memory holds anything.",),
        verify="In the next trace `After a sync` in Overview is near 0.",
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks", "steps"}),
    priority=130,
    links=("https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",),
    origin="TraceLens D2H; Nsight Systems cuda_api_sync, charged by idle time instead",
    culprit="copying tensors to the host",
)
