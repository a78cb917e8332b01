"""Reading values from the device drains it."""

from dataclasses import replace as changed

import numpy as np
from msgspec.structs import replace

from stepscope.analyses.core.synchronizations import ITEM, outermost_named
from stepscope.analyses.devices.gpu_bound import exclusive_device_time
from stepscope.analyses.idle.sync_cost import value_reads
from stepscope.base.calibration import ALL_OF_IT
from stepscope.base.findings import Link
from stepscope.base.formatting import count
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Trace
from stepscope.rules.shared import phrases, sync_waits
from stepscope.rules.shared.sync_waits import Options, Texts, Waits

SCALER = "aten::_amp_foreach_non_finite_check_and_unscale_"
SCALER_READS = 1
"""Per step: GradScaler reads whether a gradient overflowed, and has to wait for it."""
PAUSE_NS = 5_000
"""The longest pause of the device between two pieces of work that are queued."""
TEXTS = Texts(
    counted="Values read in total",
    happens=lambda number: f"{count(number, 'value is', 'values are')} read from the device",
    less="reading less",
    link=Link(view="operators", search="aten::item"),
)


def check(trace: Trace, options: Options) -> Results:
    """Report `.item()`, `if tensor:` and the like by the idle time that they cause."""
    waits = sync_waits.waits(trace, "item", options)
    if waits is None:
        return
    waits = changed(waits, removed_calls=outermost_named(trace, waits.cost.operators, ITEM))
    if not (_has_scaler(trace) and waits.per_step <= SCALER_READS):
        more = (_work_for_reads(trace, waits),)
        yield sync_waits.result(trace, waits, TEXTS, _fix(trace), more)
    elif waits.is_costly:
        yield _scaler_finding(trace, waits)
    else:
        finding = sync_waits.finding(trace, waits, TEXTS, RULE.fix)
        design = " GradScaler reads one value per step by design."
        yield sync_waits.ruled_out(trace, waits, TEXTS, finding, design)


def _has_scaler(trace: Trace) -> bool:
    return any(str(name) == SCALER for name in trace.host_calls["name"].cat.categories)


def _scaler_finding(trace: Trace, waits: Waits) -> Finding:
    """Return the finding about the one read of a loss scaler, which has another fix."""
    return Finding(
        severity="info",
        message="GradScaler reads one value per step by design; "
        f"{phrases.device(trace)} is then idle for {phrases.time(trace, waits.idle_ns)}.",
        evidence=sync_waits.evidence(trace, waits, TEXTS),
        fix=Fix(
            "Use bfloat16: it has the range of float32, and needs no loss scaling and no read.",
            f'with torch.autocast("{trace.dialect.terms.get("module", "cpu")}", '
            "dtype=torch.bfloat16):\n"
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


def _work_for_reads(trace: Trace, waits: Waits) -> Claim:
    """Claim the device work for the reads alone, which the host waits for.

    The copies certainly go. The work that computes the values may still be needed.
    """
    work = value_reads(trace, waits.cost)
    both = exclusive_device_time(trace, np.concatenate((work.copies, work.makers)))
    return Claim(
        _with_pauses(both),
        ALL_OF_IT,
        "In addition the copies of the values, and at most the comparisons and reductions right "
        "before the reads.",
        low_intervals=exclusive_device_time(trace, work.copies),
    )


def _with_pauses(times: Intervals) -> Intervals:
    """Return times with the pauses of up to `PAUSE_NS` between them."""
    closed = intervals.union(times[:, 0], times[:, 1] + PAUSE_NS)
    return np.stack((closed[:, 0], closed[:, 1] - PAUSE_NS), axis=1)


def _fix(trace: Trace) -> Fix:
    warning = trace.dialect.terms.get("sync_warning", "")
    if not warning:
        return RULE.fix
    verify = f"`{warning}` names every line that still waits. {RULE.fix.verify}"
    return replace(RULE.fix, verify=verify)


RULE = Rule(
    id="item-sync",
    title="Reading values (.item(), if tensor:) drains the device",
    passed="Reading values does not drain the device",
    category="synchronization",
    why="The host waits until the device has computed the value. By then nothing is queued, so the "
    "device is idle until the host has launched again.",
    detects="Waits of the host below `aten::item`, `aten::_local_scalar_dense` and "
    "`aten::is_nonzero`: `.item()`, `float(tensor)`, `if tensor:`, `print(tensor)`. "
    f"{sync_waits.DETECTS}",
    silent=(
        *sync_waits.SILENT,
        "`.item()` of a tensor on the CPU waits for nothing, however often it is called.",
        "GradScaler's one read per step is by design: where it costs time, it is reported as info.",
    ),
    saving=f"{sync_waits.SAVING} In addition the copies of the values, and at most the comparisons "
    "and reductions right before the reads that autograd did not record: they are computed for the "
    "reads alone.",
    fix=Fix(
        "Keep values on the device and read them every N steps.",
        "running += loss.detach()          # instead of running += loss.item()\n"
        "if step % 100 == 0:\n"
        "    print(running.item() / 100)   # one wait in a hundred steps\n"
        "    running.zero_()\n"
        "# and torch.where(condition, a, b) instead of `if condition:` on a tensor",
        verify="In the next trace `After a sync` in Overview is near 0.",
        caveats=("A wait at the end of a step may be needed by the code that follows.",),
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks", "steps"}),
    priority="synchronization",
    after=("dynamic-shape-sync",),
    links=(
        "/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization",
    ),
    origin="PyTorch tuning guide; Nsight Systems cuda_api_sync, here by idle time instead",
    culprit="reading values back",
)
