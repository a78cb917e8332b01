"""A device is at hand, and the model computes on the CPU."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import event_references, frame_times, requirements
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.links import links
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.device_presence import (
    Presence,
    device_code,
    presence,
    record_device,
)
from stepscope.analyses.operators.model_calls import ModelCalls, model_calls
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import CPU_TO_DEVICE, LONG_CALLS_TO_DEVICE
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.base.findings import Evidence, EvidenceTable, Fix, Link
from stepscope.base.formatting import count, duration, share
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, option
from stepscope.rules.shared import facts, phrases

LINKED_SHARE = 0.5
"""Device work with a known operator, below which it is not known which operators launched none."""
LONG_CALL_NS = 1_000_000
"""A hundred times what a launch takes."""
SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Options:
    """When operators on the CPU are the model's and worth a word."""

    least_time_share: float = option(
        0.20,
        "Time of the window in convolutions, matrix products, attention and recurrent layers that "
        "run on the CPU while no device works.",
        origin="ours: preprocessing on the CPU takes little of a step, models 30 % and more of it",
    )


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report a model whose heavy operators launch nothing on the device."""
    found = presence(trace)
    if found is None:
        msg = "the program ran on a machine without a device"
        raise NotApplicableError(msg)
    calls = model_calls(trace)
    lost = _lost(trace, calls)
    is_known = found.is_model_on_host and not found.event_count
    taken = intervals.duration_ns(lost) / window(trace).reference_ns
    if taken < options.least_time_share:
        return
    _insist_on_links(trace, found)
    yield Finding(
        confidence="medium" if calls.on_device.any() else "high",
        message=_message(trace, found, calls, taken),
        evidence=_evidence(found, calls, lost, taken),
        tables=(_table(trace, calls),),
        locations=event_references.source_lines(_lines(trace, calls)),
        claims=(_claim(trace, calls, lost, is_known=is_known),),
        fix=_fix(found) if _knows_devices(trace) else _other_build(found),
    )


def _claim(trace: Trace, calls: ModelCalls, lost: Intervals, *, is_known: bool) -> Claim:
    """Claim the operators' time; of long ones something is sure where the model is on the CPU."""
    if not is_known:
        return Claim(
            lost,
            CPU_TO_DEVICE,
            "An estimate: the time of these operators; how much a device wins depends on the "
            "model's size, and a small one wins nothing.",
        )
    rows = calls.rows[~calls.on_device]
    long = rows[trace.host_calls["duration_ns"].to_numpy()[rows] >= LONG_CALL_NS]
    return Claim(
        lost,
        LONG_CALLS_TO_DEVICE,
        "An estimate: the time of these operators, and at least half of that of calls of "
        f"{duration(LONG_CALL_NS)} and more, beside which a launch is nothing.",
        low_intervals=intervals.intersection(lost, frame_times.times(trace.host_calls, long)),
    )


def _lost(trace: Trace, calls: ModelCalls) -> Intervals:
    """Return when operators ran on the CPU and no device worked."""
    device = main_device(trace)
    return (
        calls.host_times if device is None else intervals.difference(calls.host_times, device.busy)
    )


def _insist_on_links(trace: Trace, found: Presence) -> None:
    """Insist that it is known where operators ran.

    Raises:
        MissingDataError: it is not.
    """
    requirements.reliable_timeline(trace)
    if found.event_count:
        if np.mean(links(trace).owner_of_device_event >= 0) < LINKED_SHARE:
            msg = "which operators launched the device's work is not recorded"
            raise MissingDataError(msg, record_device(found.dialect))
        return
    is_told = found.call_count or found.host_operators or found.is_model_on_host
    if found.device_operators or not is_told:
        msg = "the device's activity was not recorded: these operators may have run on it"
        raise MissingDataError(msg, record_device(found.dialect))


def _message(trace: Trace, found: Presence, calls: ModelCalls, taken: float) -> str:
    device = found.device_names[0] if found.device_names else "A device"
    if calls.on_device.any():
        where = (
            f"a part of the model computes on the CPU: {count(calls.on_host_count, 'call')} of its "
            f"{len(calls.rows):,} convolutions, matrix products and the like"
        )
    else:
        where = (
            f"the model computes on the CPU: {count(calls.on_host_count, 'call')} of "
            "convolutions, matrix products and the like, and none on the device"
        )
    within = window(trace)
    lasting = duration(within.per_step(intervals.duration_ns(_lost(trace, calls))))
    text = (
        f"{device} is at hand, and {where}. They take {lasting} {phrases.per_step(trace)} "
        f"({share(taken)})."
    )
    if found.is_model_on_host:
        text += f" The model's parameters are on the CPU ({RECORDED})."
    return text


def _evidence(
    found: Presence, calls: ModelCalls, lost: Intervals, taken: float
) -> tuple[Evidence, ...]:
    link = Link(view="operators")
    return (
        facts.text("Device", ", ".join(found.device_names[:1]) or "seen"),
        facts.count("Calls on the CPU", calls.on_host_count, link),
        facts.count("Calls on the device", len(calls.rows) - calls.on_host_count, link),
        facts.duration("Their time on the CPU, in all", intervals.duration_ns(lost), link),
        facts.fraction("Of the window", taken),
        facts.count("Events on the device", found.event_count),
    )


def _table(trace: Trace, calls: ModelCalls) -> EvidenceTable:
    """Return the operators that ran on the CPU by name, those that take longest first."""
    frame = trace.host_calls
    rows = calls.rows[~calls.on_device]
    names = frame["name"].cat
    codes = names.codes.to_numpy()[rows]
    took_ns = np.bincount(
        codes, weights=frame["duration_ns"].to_numpy()[rows], minlength=len(names.categories)
    )
    number = np.bincount(codes, minlength=len(names.categories))
    return facts.table(
        "Operators on the CPU, those that take longest first",
        {"Operator": "code", "Calls": "count", "Takes": "ns"},
        (
            (str(names.categories[code]), int(number[code]), int(took_ns[code]))
            for code in np.argsort(-took_ns, kind="stable")[:SHOWN].tolist()
            if number[code]
        ),
        "operators",
    )


def _lines(trace: Trace, calls: ModelCalls) -> list[str]:
    """Return the user's lines of the calls that took longest."""
    rows = calls.rows[~calls.on_device]
    took_ns = trace.host_calls["duration_ns"].to_numpy()[rows]
    worst = rows[np.argsort(-took_ns, kind="stable")[:SHOWN]]
    return [event_references.line_of_host_call(trace, int(row)) for row in worst]


def _knows_devices(trace: Trace) -> bool:
    """Tell whether torch was built for a device, as far as it was recorded."""
    build = recorded_settings(trace).torch
    return build.version is None or bool(build.cuda or build.hip) or "+cpu" not in build.version


def _other_build(found: Presence) -> Fix:
    """Return the fix where torch itself was built without the device."""
    return Fix(
        "Install a build of torch that knows the device; then move the model to it.",
        "pip install torch  # from the index that https://pytorch.org/get-started names\n"
        "python -c 'import torch; print(torch.accelerator.current_accelerator())'",
        language="sh",
        verify="torch names the device; then `model.to(device)`, and every batch.",
        caveats=(
            f"This torch was built for the CPU alone ({RECORDED}).",
            *_fix(found).caveats[:2],
        ),
    )


def _fix(found: Presence) -> Fix:
    visible = found.dialect.environment.get("devices", "")
    hidden = (f"Is it hidden from the process? See the variable {visible}.",) if visible else ()
    return Fix(
        "Move the model and every batch to the device.",
        f"device = {device_code(found.dialect)}\n"
        "model = model.to(device)  # before the optimizer is made\n"
        "for inputs, targets in loader:\n"
        "    inputs = inputs.to(device, non_blocking=True)\n"
        "    targets = targets.to(device, non_blocking=True)",
        verify="The next recording has kernels, and these operators have device time in Operators.",
        caveats=(
            "The model, its gradients and the optimizer's state must fit the device's memory.",
            "A very small model may be faster on the CPU.",
            *hidden,
        ),
    )


RULE = Rule(
    id="model-on-cpu",
    title="The model computes on the CPU though a device is at hand",
    category="utilization",
    why="Convolutions and matrix products are what devices are made for: they compute them ten "
    "times as fast and more. A forgotten `.to(device)` leaves them on the CPU, and nothing fails.",
    detects="A device is in the file's header or the recorded settings, or its runtime or events "
    "were recorded; and convolutions, matrix products, attention and recurrent layers, forward and "
    "backward, launch nothing on it. It speaks where they take `least_time_share` of the window or "
    "more while no device works.",
    silent=(
        "What the DataLoader asks for in its own process is preprocessing, not the model.",
        "What torch.compile runs while it traces is no work.",
        "Where the device's activity was not recorded and no operator tells that it ran on the "
        "CPU, it cannot tell: see no-gpu-work.",
    ),
    saving="From nothing to 73 % of the time of these operators: an estimate, from one public "
    "case. What a device wins depends on the model's size. Where the trace handler recorded that "
    "the model is on the CPU, at least half of the time of calls of 1 ms and more.",
    fix=Fix(
        "Move the model and every batch to the device.",
        "device = torch.accelerator.current_accelerator()\n"
        "model = model.to(device)  # before the optimizer is made\n"
        "inputs = inputs.to(device, non_blocking=True)  # and every batch",
        verify="The next recording has kernels.",
    ),
    effort="hour",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "launches", "steps"}),
    priority=300,
    culprit="the model on the CPU",
    links=(
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to",
        "https://docs.pytorch.org/tutorials/beginner/blitz/cifar10_tutorial.html#training-on-gpu",
    ),
    origin="ours: the first of three fixes in a public CIFAR-10 tutorial on the profiler",
)
