"""Reading a value of the device drains it."""

from collections.abc import Iterator

from stepscope.quantities import count
from stepscope.report import Fix, Link
from stepscope.rules import Finding, Rule, _waits
from stepscope.rules._waits import Options, Waits, waits
from stepscope.trace import Trace

SCALER = "aten::_amp_foreach_non_finite_check_and_unscale_"
SCALER_READS = 1
"""GradScaler looks once a step whether a gradient overflowed: it cannot without waiting."""


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report `.item()`, `if tensor:` and the like by the idle time that they cause."""
    found = waits(trace, "item", options)
    if found is None:
        return
    by_design = _has_scaler(trace) and found.a_step <= SCALER_READS
    costs = found.is_costly and not by_design
    link = Link(view="operators", search="aten::item")
    yield Finding(
        severity=_waits.severity(trace, found) if costs else "info",
        message=_message(trace, found),
        evidence=_waits.evidence(trace, found, "Values read", link),
        events=tuple(_waits.events(trace, found, options)),
        claims=(_waits.claim(found),) if costs else (),
    )


def _message(trace: Trace, found: Waits) -> str:
    text = (
        f"{count(found.cost.count, 'value is', 'values are')} read from the device "
        f"({found.a_step:.3g} {_waits.each(trace)}); {_waits.behind(trace, found, 'it')}"
    )
    if meanwhile := _waits.works_meanwhile(trace, found):
        text += f"{meanwhile}reading less would save little now."
    if _has_scaler(trace):
        text += " GradScaler reads one value a step by design."
    return text


def _has_scaler(trace: Trace) -> bool:
    return any(str(name) == SCALER for name in trace.host_calls["name"].cat.categories)


RULE = Rule(
    id="item-sync",
    title="Reading a value (.item(), if tensor:) drains the GPU",
    category="synchronization",
    why=(
        "The host waits until the device has computed the value; by then nothing is queued, the "
        "device stands still until the host has launched again."
    ),
    fix=Fix(
        summary="Keep values on the device and read them every N steps.",
        code=(
            "running += loss.detach()          # instead of running += loss.item()\n"
            "if step % 100 == 0:\n"
            "    print(running.item() / 100)   # one wait in a hundred steps\n"
            "    running.zero_()\n"
            "# and torch.where(condition, a, b) instead of `if condition:` on a tensor"
        ),
        verify='torch.cuda.set_sync_debug_mode("warn") names every line that still waits.',
        caveats=("A wait at the step's end may be needed by what follows.",),
    ),
    detects="",
    saving="",
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks", "steps"}),
    priority=120,
    links=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
        "#avoid-unnecessary-cpu-gpu-synchronization",
    ),
    origin="PyTorch tuning guide; Nsight Systems cuda_api_sync, charged by idle time instead",
)
