"""Reading a value of the device drains it."""

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from stepscope.analyses.devices.exclusive_device_time import alone
from stepscope.analyses.idle.value_reads import value_reads
from stepscope.base.calibration import ALL_OF_IT
from stepscope.base.findings import Fix, Link
from stepscope.base.formatting import count
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, RuleResult
from stepscope.rules.shared import phrases, sync_waits
from stepscope.rules.shared.sync_waits import Options, Waits, Words, waits

SCALER = "aten::_amp_foreach_non_finite_check_and_unscale_"
SCALER_READS = 1
"""GradScaler looks once a step whether a gradient overflowed: it cannot without waiting."""
PAUSE_NS = 5_000
"""Between two pieces of work that are queued, the device itself takes some microseconds."""
WORDS = Words(
    counted="Values read",
    happens=lambda number: f"{count(number, 'value is', 'values are')} read from the device",
    less="reading less",
    link=Link(view="operators", search="aten::item"),
)


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report `.item()`, `if tensor:` and the like by the idle time that they cause."""
    found = waits(trace, "item", options)
    if found is None:
        return
    by_scaler = _has_scaler(trace) and found.a_step <= SCALER_READS
    if not found.is_costly:
        why = " GradScaler reads one value a step by design." if by_scaler else ""
        yield sync_waits.rejected(trace, found, WORDS, why)
    elif by_scaler:
        yield _of_scaler(trace, found)
    else:
        also = (_work_for_reads(trace, found),)
        yield sync_waits.finding(trace, found, WORDS, _fix(trace), also)


def _has_scaler(trace: Trace) -> bool:
    return any(str(name) == SCALER for name in trace.host_calls["name"].cat.categories)


def _of_scaler(trace: Trace, found: Waits) -> Finding:
    """Return what is to be said of the one read of a loss scaler: it has another fix."""
    return Finding(
        severity="info",
        message=f"GradScaler reads one value a step by design; behind that {phrases.device(trace)} "
        f"stands still for {phrases.time(trace, found.idle_ns)}.",
        evidence=sync_waits.evidence(trace, found, WORDS),
        fix=Fix(
            "bfloat16 has the range of float32: it needs no loss scaling, and no read.",
            f'with torch.autocast("{_module(trace)}", dtype=torch.bfloat16):\n'
            "    loss = criterion(model(inputs), targets)\n"
            "loss.backward()   # without GradScaler\n"
            "optimizer.step()",
            verify=f"{SCALER} is gone from the operators.",
            caveats=(
                "bfloat16 has 8 bits of precision where float16 has 11: watch the loss.",
                "Older devices have no matrix units for bfloat16: there float16 is faster.",
            ),
        ),
        risk="numerics",
        subject="GradScaler",
    )


def _work_for_reads(trace: Trace, found: Waits) -> Claim:
    """Claim what the device does for the reads alone; the host waits for it, so it is not hidden.

    The copies are sure to go. What made the values may be wanted still.
    """
    work = value_reads(trace, found.cost)
    copies = alone(trace, work.copies)
    both = alone(trace, np.concatenate((work.copies, work.makers)))
    return Claim(
        _with_pauses(both),
        ALL_OF_IT,
        "Beside that the copies of the values, and at most the comparisons and reductions right in "
        "front of the reads.",
        low_intervals=copies,
    )


def _with_pauses(times: Intervals) -> Intervals:
    """Return times with the pauses of up to `PAUSE_NS` between them."""
    closed = intervals.union(times[:, 0], times[:, 1] + PAUSE_NS)
    return np.stack((closed[:, 0], closed[:, 1] - PAUSE_NS), axis=1)


def _module(trace: Trace) -> str:
    return trace.dialect.terms.get("module", "cpu")


def _fix(trace: Trace) -> Fix:
    warning = trace.dialect.terms.get("sync_warning", "")
    if not warning:
        return RULE.fix
    return replace(
        RULE.fix, verify=f"`{warning}` names every line that still waits. {RULE.fix.verify}"
    )


RULE = Rule(
    id="item-sync",
    title="Reading values (.item(), if tensor:) drains the device",
    category="synchronization",
    why="The host waits until the device has computed the value. By then nothing is queued, so the "
    "device stands still until the host has launched again.",
    detects=(
        "Waits of the host below `aten::item`, `aten::_local_scalar_dense` and `aten::is_nonzero`: "
        "`.item()`, `float(tensor)`, `if tensor:`, `print(tensor)`. " + sync_waits.DETECTS
    ),
    silent=(
        *sync_waits.SILENT,
        "`.item()` of a tensor on the CPU waits for nothing, however often it is called.",
        "GradScaler's one read a step is by design: where it costs something it is a note.",
    ),
    saving=(
        sync_waits.SAVING
        + " Beside that the copies of the values, and at most the comparisons and "
        "reductions right in front of the reads that autograd did not record: they are computed "
        "for the reads alone."
    ),
    fix=Fix(
        "Keep values on the device and read them every N steps.",
        "running += loss.detach()          # instead of running += loss.item()\n"
        "if step % 100 == 0:\n"
        "    print(running.item() / 100)   # one wait in a hundred steps\n"
        "    running.zero_()\n"
        "# and torch.where(condition, a, b) instead of `if condition:` on a tensor",
        verify="In the next trace `After a sync` in Overview is near 0.",
        caveats=("A wait at the step's end may be needed by what follows.",),
    ),
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
    culprit="reading values back",
)
