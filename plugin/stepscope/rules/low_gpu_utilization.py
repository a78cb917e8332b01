"""The device is idle much of the time: a symptom, whose causes the other rules name."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.core import requirements
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.window import complete_steps, window
from stepscope.analyses.idle.lazy_loading import first_use_times
from stepscope.analyses.idle.ledger import CAUSES, idle_ledger
from stepscope.base.findings import Evidence, EvidenceTable, Link
from stepscope.base.formatting import duration, share
from stepscope.model import intervals
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts

WHO_TELLS = {
    "dataloader": "dataloader-no-workers, dataloader-bound",
    "alloc": "allocator-calls-in-loop",
    "post-sync": "item-sync, blocking-d2h-copy, explicit-device-sync",
    "dispatch": "launch-bound",
    "host-stall": "gpu-idle-gap, hot-path, numpy-in-step, warmup-in-window",
    "queued": "gpu-queue-stall",
    "no-record": "trace-integrity",
    "tail": "gpu-idle-gap",
}
"""Cause of idle time to the rules that say what to do about it."""
STEPS_SHOWN = 10


class Options(Thresholds):
    """Busy shares of the window below which it reports."""

    warn_below_share: float = option(
        0.70,
        "Busy fraction below which it reports.",
        origin="ours: loops that keep their device busy reach 0.73 to 0.98 in public traces; "
        "TraceLens reports below 0.85, xprof below 0.90",
    )
    critical_below_share: float = option(
        0.50,
        "Busy fraction below which it is critical.",
        origin="torch-tb-profiler and Nsight Systems' gpu_time_util",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report each device that is busy for less than `warn_below_share` of the window."""
    devices = requirements.devices(trace)
    requirements.reliable_timeline(trace)
    total_ns = window(trace).duration_ns
    for before, device in enumerate(devices):
        busy_ns = intervals.duration_ns(device.busy)
        busy = busy_ns / total_ns if total_ns else 1.0
        if busy >= options.warn_below_share:
            continue
        loading_ns = _loading_ns(trace, device)
        without_start = busy_ns / max(1, total_ns - loading_ns)
        is_critical = without_start < options.critical_below_share
        finding = Finding(
            severity="critical" if is_critical else "warning",
            message=f"{trace.dialect.device} {device.device} is busy {share(busy)} of the "
            f"{duration(total_ns)} recorded. Most of its idle time: {_worst(trace, device)}.",
            evidence=tuple(_evidence(trace, device, busy)),
            tables=tuple(_steps(trace, device)),
            fix=_fix(trace, device),
            subject="another device, " * before,  # not its number: ranks have one each
        )
        if without_start < options.warn_below_share:
            yield finding
        else:
            yield finding.ruled_out(
                f"{trace.dialect.device} {device.device} is busy {share(busy)} of the "
                f"{duration(total_ns)} recorded; without the {duration(loading_ns)} in which code "
                f"is loaded at its first use, {share(without_start)}.",
                facts.duration("Loading code, device idle, in total", loading_ns),
            )


def _loading_ns(trace: Trace, device: DeviceActivity) -> int:
    """Return how long code is loaded at its first use while the device is idle."""
    gaps = idle_ledger(trace)[device.device].gaps
    return intervals.duration_ns(intervals.intersection(gaps, first_use_times(trace)))


def _idle(trace: Trace, device: DeviceActivity) -> list[tuple[str, int]]:
    idle = idle_ledger(trace)[device.device].idle_ns
    return sorted(((c, t) for c, t in idle.items() if t), key=lambda item: -item[1])


def _worst(trace: Trace, device: DeviceActivity) -> str:
    cause, time_ns = _idle(trace, device)[0]
    span = window(trace)
    lost = share(time_ns / span.duration_ns)
    return f"{CAUSES[cause][0].lower()}, {lost} of the trace"


def _evidence(trace: Trace, device: DeviceActivity, busy: float) -> Iterator[Evidence]:
    span = window(trace)
    yield facts.fraction(f"{trace.dialect.device} {device.device} busy", busy, "overview")
    for cause, time_ns in _idle(trace, device):
        yield facts.fraction(
            f"Idle, {CAUSES[cause][0].lower()}", time_ns / span.duration_ns, "overview"
        )


def _steps(trace: Trace, device: DeviceActivity) -> Iterator[EvidenceTable]:
    """Yield a table of the steps, the idlest first."""
    steps = complete_steps(trace).steps
    if not len(steps):
        return
    start, end = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    busy = intervals.covered_ns(device.busy, start, end) / np.maximum(end - start, 1)
    numbers = steps["number"].to_numpy()
    yield facts.table(
        "Steps, the idlest first",
        {"Step": "count", "Lasts": "ns", f"{trace.dialect.device} busy": "share"},
        (
            facts.row(
                int(numbers[row]),
                int(end[row] - start[row]),
                float(busy[row]),
                link=Link(view="overview", step=int(numbers[row])),
            )
            for row in np.argsort(busy, kind="stable")[:STEPS_SHOWN]
        ),
    )


def _fix(trace: Trace, device: DeviceActivity) -> Fix:
    cause, _ = _idle(trace, device)[0]
    return Fix(
        f"Fix the listed causes: for {CAUSES[cause][0].lower()} see {WHO_TELLS[cause]}. "
        "If none is listed, make each step larger (batch size).",
        f"stepscope explain {WHO_TELLS[cause].partition(',')[0]}",
        language="shell",
        verify=f"Record again: the busy share of the {trace.dialect.device} in Overview rises.",
        caveats=("A device that is busy is not yet used well: its kernels may be small or slow.",),
    )


RULE = Rule(
    id="low-gpu-utilization",
    title="The device is idle much of the time",
    passed="The device is busy most of the time",
    category="utilization",
    why="Idle time is paid for and computes nothing. This is a symptom: its causes are listed "
    "above it.",
    detects="For each device, the fraction of the window in which anything runs on it: kernels, "
    "copies or memory sets. It reports below `warn_below_share`, and is critical below "
    "`critical_below_share`. Without steps the window is from the device's first work to its "
    "last.",
    silent=(
        "A device with less than 1 % of all kernels only has a context.",
        "While graphs are captured, launches are recorded and not run.",
        "Loading code at its first use happens once: without it the device may be busy enough.",
    ),
    saving="None is claimed: the rules for its causes claim the idle time, so that nothing is "
    "counted twice.",
    fix=Fix(
        "Fix the causes that are listed; if none is, make each step larger (batch size).",
        verify="Record again: the busy share of the device rises.",
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "clocks", "steps"}),
    priority="symptom",
    is_symptom=True,
    links=(
        "/tutorials/recipes/recipes/tuning_guide.html",
        "https://docs.nvidia.com/nsight-systems/UserGuide/index.html",
    ),
    origin="torch-tb-profiler _analyze_gpu_metrics; Nsight Systems gpu_time_util",
)
