"""The GPU is idle much of the time: a symptom, whose causes the other rules name."""

from collections.abc import Iterator
from dataclasses import dataclass

from stepscope import intervals
from stepscope.analyses import requirements
from stepscope.analyses.devices.activity import DeviceActivity
from stepscope.analyses.idle.ledger import CAUSES, idle_ledger
from stepscope.analyses.steps.window import window
from stepscope.quantities import duration, share
from stepscope.report import Evidence, Fix, Link
from stepscope.rules import Finding, Rule, option
from stepscope.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Options:
    """Busy shares below which to speak."""

    warn_below: float = option(
        0.70, "Loops that keep their device busy reach 70 to 98 % in public traces.", origin=""
    )
    critical_below: float = option(
        0.50,
        "torch-tb-profiler and Nsight speak at 50 %; TraceLens at 85 %, xprof at 90 %.",
        origin="",
    )


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report each device that is busy for less than `warn_below` of the window."""
    devices = requirements.devices(trace)
    requirements.reliable_timeline(trace)
    total_ns = window(trace).device_duration_ns
    for device in devices:
        busy = intervals.duration_ns(device.busy) / total_ns if total_ns else 1.0
        if busy >= options.warn_below:
            continue
        yield Finding(
            severity="critical" if busy < options.critical_below else "warning",
            message=(
                f"{trace.dialect.device} {device.device} is busy {share(busy)} of the "
                f"{duration(total_ns)} recorded. Most of its idle time: {_worst(trace, device)}."
            ),
            evidence=tuple(_evidence(trace, device, busy)),
        )


def _idle(trace: Trace, device: DeviceActivity) -> list[tuple[str, int]]:
    idle = idle_ledger(trace)[device.device].idle_ns
    return sorted(((c, t) for c, t in idle.items() if t), key=lambda item: -item[1])


def _worst(trace: Trace, device: DeviceActivity) -> str:
    cause, time_ns = _idle(trace, device)[0]
    within = window(trace)
    lost = share(time_ns / within.device_duration_ns)
    return f"{CAUSES[cause][0].lower()}, {lost} of the recording"


def _evidence(trace: Trace, device: DeviceActivity, busy: float) -> Iterator[Evidence]:
    within = window(trace)
    yield Evidence(
        label=f"{trace.dialect.device} {device.device} busy",
        value=busy,
        unit="share",
        link=Link(view="overview"),
    )
    for cause, time_ns in _idle(trace, device):
        yield Evidence(
            label=f"Idle, {CAUSES[cause][0].lower()}",
            value=time_ns / within.device_duration_ns,
            unit="share",
            link=Link(view="overview"),
        )


RULE = Rule(
    id="low-gpu-utilization",
    title="The GPU is idle much of the time",
    category="utilization",
    why="Idle time is paid for and does nothing. This is a symptom: its causes stand above it.",
    fix=Fix(
        summary="Fix the causes that are listed; if none is, make each step larger (batch size).",
        verify="Record again: the busy share of the device should rise.",
    ),
    detects="",
    saving="",
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "clocks", "steps"}),
    priority=900,
    is_symptom=True,
    links=("https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
    origin="torch-tb-profiler _analyze_gpu_metrics; Nsight Systems gpu_time_util",
)
