"""Copies of tensors to the host make it wait."""

from collections.abc import Iterator

from stepscope.analyses.training import is_training
from stepscope.quantities import count
from stepscope.report import Fix, Link
from stepscope.rules import Finding, Rule, _waits
from stepscope.rules._waits import Options, Waits, waits
from stepscope.trace import Trace


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report `.cpu()`, `.numpy()` and prints of device tensors by the idle time they cause."""
    found = waits(trace, "d2h", options)
    if found is None:
        return
    link = Link(view="operators", search="aten::copy_")
    yield Finding(
        severity=_waits.severity(trace, found) if found.is_costly else "info",
        message=_message(trace, found),
        evidence=_waits.evidence(trace, found, "Waits for a copy", link),
        events=tuple(_waits.events(trace, found, options)),
        claims=(_waits.claim(found),) if found.is_costly else (),
    )


def _message(trace: Trace, found: Waits) -> str:
    text = (
        f"The host waits {count(found.cost.count, 'time')} for a tensor to be copied to it "
        f"({found.a_step:.3g} {_waits.each(trace)}); {_waits.behind(trace, found, 'the device')}"
    )
    if meanwhile := _waits.works_meanwhile(trace, found):
        training = is_training(trace)
        text += meanwhile
        text += (
            "copying less would save little now." if training else "this is the result's readback."
        )
    return text


RULE = Rule(
    id="blocking-d2h-copy",
    title="Copying tensors to the CPU (.cpu(), .numpy()) drains the GPU",
    category="synchronization",
    why=(
        "A copy to pageable memory makes the host wait until the device has finished everything "
        "before it; by then nothing is queued, and the device stands still."
    ),
    fix=Fix(
        summary="Copy without blocking into pinned memory, and look at it later; or keep it there.",
        code=(
            "result = torch.empty(shape, pin_memory=True)\n"
            "result.copy_(output, non_blocking=True)\n"
            "done = torch.cuda.Event(); done.record()\n"
            "...                      # launch the next step first\n"
            "done.synchronize()       # then wait, and read result"
        ),
        verify="The idle cause `After a sync` in Overview falls.",
        caveats=("Reading the result of an inference step is inherent; batch the readbacks.",),
    ),
    detects="",
    saving="",
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks", "steps"}),
    priority=130,
    links=("https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",),
    origin="TraceLens D2H; Nsight Systems cuda_api_sync, charged by idle time instead",
)
