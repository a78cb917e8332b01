"""A device is available, and the model computes on the CPU."""

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import frame_times, requirements
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.links import links
from stepscope.analyses.devices.device_presence import (
    DevicePresence,
    device_code,
    device_presence,
    record_device,
)
from stepscope.analyses.operators.model_calls import ModelCalls, model_calls
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import CPU_TO_DEVICE, LONG_CALLS_TO_DEVICE
from stepscope.base.errors import NotApplicableError
from stepscope.base.formatting import count, duration
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases

LINKED_SHARE = 0.5
"""Fraction of device work with a known operator from which operators without any are known."""
LONG_CALL_NS = 1_000_000
"""A hundred times the duration of a launch."""
SHOWN = 10


class Options(Thresholds):
    """Threshold of the model's operators on the CPU."""

    least_time_share: float = option(
        0.20,
        "Fraction of the window in convolutions, matrix products, attention and recurrent layers "
        "that run on the CPU while no device works.",
        origin="ours: preprocessing on the CPU takes little of a step, models 30 % and more of it",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report a model whose heavy operators launch nothing on the device."""
    device, calls = device_presence(trace), model_calls(trace)
    if device is None:
        msg = "the program ran on a machine without a device"
        raise NotApplicableError(msg)
    main = main_device(trace)
    lost = intervals.difference(calls.host_times, intervals.EMPTY if main is None else main.busy)
    lost_ns = intervals.duration_ns(lost)
    fraction = phrases.fraction_of_window(trace, lost_ns)
    if fraction < options.least_time_share:
        return
    _require_links(trace, device)
    rows = calls.rows[~calls.on_device]
    build = recorded_settings(trace).torch
    has_device_build = build.version is None or bool(build.cuda or build.hip)
    yield Finding(
        confidence="medium" if calls.on_device.any() else "high",
        message=_message(trace, device, calls, lost_ns),
        evidence=(
            facts.text("Device", ", ".join(device.device_names[:1]) or "seen"),
            facts.count("Calls on the CPU in total", calls.on_host_count, "operators"),
            facts.count(
                "Calls on the device in total", len(calls.rows) - calls.on_host_count, "operators"
            ),
            facts.duration("Their time on the CPU in total", lost_ns, "operators"),
            facts.fraction("Of the window", fraction),
            facts.count("Events on the device in total", device.event_count),
        ),
        tables=(call_costs.by_name(trace.host_calls, rows, "Operators on the CPU"),),
        locations=call_costs.lines(trace, rows, SHOWN),
        claims=(_claim(trace, device, rows, lost),),
        fix=_fix(device, can_use_device=has_device_build or "+cpu" not in str(build.version)),
    )


def _claim(trace: Trace, device: DevicePresence, rows: NDArray[np.int64], lost: Intervals) -> Claim:
    """Claim the operators' time: certainly a part of long calls, if the model is on the CPU."""
    if not device.is_model_on_host or device.event_count:
        return Claim(
            lost,
            CPU_TO_DEVICE,
            "An estimate: the time of these operators. The saving depends on the model's size: a "
            "device does not speed up a small one.",
        )
    long = rows[trace.host_calls["duration_ns"].to_numpy()[rows] >= LONG_CALL_NS]
    return Claim(
        lost,
        LONG_CALLS_TO_DEVICE,
        "An estimate: the time of these operators, and at least half of the time of calls of "
        f"{duration(LONG_CALL_NS)} and more, compared with which a launch is short.",
        low_intervals=intervals.intersection(lost, frame_times.times(trace.host_calls, long)),
    )


def _require_links(trace: Trace, device: DevicePresence) -> None:
    """Require that the trace shows whether operators ran on the device."""
    requirements.reliable_timeline(trace)
    remedy = record_device(device.dialect)
    if device.event_count:
        requirements.conclusive_if(
            np.mean(links(trace).owner_of_device_event >= 0) >= LINKED_SHARE,
            "which operators launched the device's work is not recorded",
            remedy,
        )
        return
    on_host = device.call_count or device.host_operators or device.is_model_on_host
    requirements.conclusive_if(
        on_host and not device.device_operators,
        "the device's activity was not recorded: these operators may have run on it",
        remedy,
    )


def _message(trace: Trace, device: DevicePresence, calls: ModelCalls, lost_ns: int) -> str:
    name = device.device_names[0] if device.device_names else "A device"
    number = count(calls.on_host_count, "call")
    text = f"{name} is available, but the model computes on the CPU: {number} of convolutions, "
    text += "matrix products and the like, and none on the device."
    if calls.on_device.any():
        text = (
            f"{name} is available, but a part of the model computes on the CPU: {number} of its "
            f"{len(calls.rows):,} convolutions, matrix products and the like."
        )
    text += f" They take {phrases.time_and_fraction(trace, lost_ns)}."
    if device.is_model_on_host:
        text += f" The model's parameters are on the CPU ({RECORDED})."
    return text


def _fix(device: DevicePresence, *, can_use_device: bool) -> Fix:
    variable = device.dialect.environment.get("devices", "")
    caveats = (
        "The model, its gradients and the optimizer's state must fit the device's memory.",
        "A very small model may be faster on the CPU.",
    )
    if not can_use_device:
        return Fix(
            "Install a build of torch for the device; then move the model to it.",
            "pip install torch  # from the index that https://pytorch.org/get-started names\n"
            "python -c 'import torch; print(torch.accelerator.current_accelerator())'",
            language="sh",
            verify="torch names the device; then `model.to(device)`, and every batch.",
            caveats=(f"This torch was built for the CPU alone ({RECORDED}).", *caveats),
        )
    hidden = (f"The variable {variable} may hide it from the process.",) if variable else ()
    return Fix(
        RULE.fix.summary,
        f"device = {device_code(device.dialect)}\n"
        "model = model.to(device)  # before the optimizer is made\n"
        "for inputs, targets in loader:\n"
        "    inputs = inputs.to(device, non_blocking=True)\n"
        "    targets = targets.to(device, non_blocking=True)",
        verify="The next trace has kernels, and these operators have device time in Operators.",
        caveats=(*caveats, *hidden),
    )


RULE = Rule(
    id="model-on-cpu",
    title="The model computes on the CPU though a device is available",
    passed="The model computes on the device",
    category="utilization",
    why="Devices compute convolutions and matrix products at least ten times as fast as a CPU. A "
    "forgotten `.to(device)` leaves them on the CPU without an error.",
    detects="The file's header or the recorded settings name a device, or its runtime or events "
    "were recorded; and convolutions, matrix products, attention and recurrent layers, forward "
    "and backward, launch nothing on it. It reports where they take `least_time_share` of the "
    "window or more while no device works.",
    silent=(
        "Operators in the DataLoader's process are preprocessing, not the model.",
        "Operators that torch.compile runs while it traces do not count.",
        "Where the device's activity was not recorded and no operator certainly ran on the CPU, "
        "it is inconclusive: see no-gpu-work.",
    ),
    saving="From nothing to 73 % of the time of these operators: an estimate, from one public "
    "case. The saving depends on the model's size. Where the trace handler recorded that the model "
    "is on the CPU, at least half of the time of calls of 1 ms and more.",
    fix=Fix(
        "Move the model and every batch to the device.",
        "device = torch.accelerator.current_accelerator()\n"
        "model = model.to(device)  # before the optimizer is made\n"
        "inputs = inputs.to(device, non_blocking=True)  # and every batch",
        verify="The next trace has kernels.",
    ),
    effort="hour",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "launches", "steps"}),
    priority="device work",
    after=("conv-bias-before-bn",),
    culprit="the model on the CPU",
    links=(
        "generated/torch.nn.Module.html#torch.nn.Module.to",
        "/tutorials/beginner/blitz/cifar10_tutorial.html#training-on-gpu",
    ),
    origin="ours: the first of three fixes in a public CIFAR-10 tutorial on the profiler",
)
