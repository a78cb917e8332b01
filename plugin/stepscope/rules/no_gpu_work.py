"""A device is at hand, and no event of it was recorded."""

from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.analyses.core import requirements
from stepscope.analyses.devices.device_presence import (
    Presence,
    device_code,
    presence,
    record_device,
)
from stepscope.analyses.operators.model_calls import model_calls
from stepscope.analyses.settings.recorded_settings import RECORDED
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.base.findings import Confidence, Fix
from stepscope.base.formatting import count
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule
from stepscope.rules.shared import facts


@dataclass(frozen=True, kw_only=True)
class Options:
    """None: there are device events, or there are not."""


def check(trace: Trace, _options: Options) -> Iterator[Finding]:
    """Report a recording without device events of a program that had a device."""
    found = presence(trace)
    if found is None:
        msg = "the program ran on a machine without a device"
        raise NotApplicableError(msg)
    if found.event_count:
        return
    if not (found.is_recordable or found.is_model_on_host):
        msg = "torch's profiler does not record this device"
        raise NotApplicableError(msg)
    if trace.is_truncated:
        msg = "the file was cut off before any device event"
        raise MissingDataError(msg, requirements.RECORD_AGAIN)
    requirements.reliable_timeline(trace)
    if found.launch_count:
        yield _unreached(found)
    elif found.device_operators or found.device_allocation_count or found.is_model_on_device:
        yield _unrecorded(found)
    elif not _is_known_to_run_on_cpu(trace, found):
        yield _unknown(found)


def _is_known_to_run_on_cpu(trace: Trace, found: Presence) -> bool:
    """Tell whether the CPU computed for sure; then `model-on-cpu` says what there is to say."""
    is_told = found.is_recorded or bool(found.host_operators) or found.is_model_on_host
    return is_told and bool(len(model_calls(trace).rows))


def _unreached(found: Presence) -> Finding:
    return _finding(
        found,
        f"The host launched {count(found.launch_count, 'kernel')}, and no device event was "
        "recorded: the profiler could not reach the device.",
        Fix(
            "Let the profiler reach the device, and record again.",
            record_device(found.dialect),
            verify="The recording has kernels.",
            caveats=(
                "Its errors stand in the training process's log.",
                "Another profiler may hold the device: run one at a time, and no range profiler.",
                "The user may lack the right to read the device's counters: ask the administrator.",
            ),
        ),
    )


def _unrecorded(found: Presence) -> Finding:
    if found.device_operators:
        what = f"{found.device_operators[0]} ran, which only runs where a device is"
    elif found.is_model_on_device:
        what = f"The model is on {found.model_device} ({RECORDED})"
    else:
        what = f"Memory was allocated on a device ({count(found.device_allocation_count, 'time')})"
    return _finding(
        found,
        f"{what}, but the profiler was not told to record the device.",
        Fix(
            "Record the device's activity too.",
            record_device(found.dialect),
            verify="The recording has kernels.",
        ),
    )


def _unknown(found: Presence) -> Finding:
    device = found.device_names[0] if found.device_names else "A device"
    if found.is_recorded:
        text = f"{device} is at hand and was recorded, and nothing was launched on it."
    else:
        text = (
            f"{device} is at hand, and no event of it was recorded: either the program computed on "
            "the CPU, or the profiler was not told to record the device."
        )
    return _finding(
        found,
        text,
        Fix(
            "Record the device's activity, and see that the model is on the device.",
            f"{record_device(found.dialect)}\n"
            f"model = model.to({device_code(found.dialect)})  # and every batch",
            verify="The recording has kernels.",
            caveats=("If the program is meant to run on the CPU, there is nothing to do.",),
        ),
        confidence="medium",
    )


def _finding(
    found: Presence, message: str, fix: Fix, *, confidence: Confidence = "high"
) -> Finding:
    return Finding(
        severity="warning",
        confidence=confidence,
        message=message,
        evidence=(
            facts.text("Device", ", ".join(found.device_names[:1]) or "seen"),
            facts.count("Events on the device", 0, "health"),
            facts.count("Launches recorded", found.launch_count),
            facts.count("Calls into its runtime recorded", found.call_count),
            *(facts.code("Runs on a device only", name) for name in found.device_operators[:3]),
        ),
        fix=fix,
    )


RULE = Rule(
    id="no-gpu-work",
    title="A device is at hand, and nothing of it was recorded",
    category="utilization",
    why="Without device events nothing can be said of how busy the device is: either it was not "
    "recorded, or the program does not use it.",
    detects="A device in the file's header, its runtime's calls, operators that only run on one, "
    "or memory allocated on one; and no device event. It says which of three it is: kernels were "
    "launched and the profiler did not see them; the device worked and was not recorded; or either "
    "that or the program ran on the CPU.",
    silent=(
        "Where the header names no device and nothing else tells of one, it does not apply.",
        "Where operators are known to have run on the CPU, model-on-cpu says so.",
        "A file that was cut off before any device event cannot tell.",
        "Of a device that torch's profiler cannot record (mps) nothing is missing.",
    ),
    saving="None is claimed: nothing of the device was measured.",
    fix=Fix(
        "Record the device's activity, and see that the model is on the device.",
        "profile()  # without `activities`, all that are supported are recorded",
        verify="The recording has kernels.",
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls"}),
    priority=510,
    links=(
        "https://docs.pytorch.org/docs/stable/profiler.html#torch.profiler.ProfilerActivity",
        "https://developer.nvidia.com/nvidia-development-tools-solutions-err_nvgpuctrperm-permission"
        "-issue-performance-counters",
    ),
    origin="ours; Nsight Systems table_checks",
)
