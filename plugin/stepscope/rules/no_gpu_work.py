"""A device is available, and no event of it was recorded."""

from stepscope.analyses.core import requirements
from stepscope.analyses.devices.device_presence import (
    DevicePresence,
    device_code,
    device_presence,
    record_device,
)
from stepscope.analyses.devices.range_counters import counter_ranges
from stepscope.analyses.operators.model_calls import model_calls
from stepscope.analyses.settings.recorded_settings import RECORDED
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.base.findings import Confidence
from stepscope.base.formatting import count
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace
from stepscope.rules.shared import facts


class Options(Thresholds):
    """No options: there are device events, or there are none."""


def check(trace: Trace, _options: Options) -> Results:
    """Report a recording without device events of a program that had a device."""
    devices = device_presence(trace)
    if devices is None:
        msg = "the program ran on a machine without a device"
        raise NotApplicableError(msg)
    if devices.event_count:
        return
    if not (devices.is_recordable or devices.is_model_on_host):
        msg = "torch's profiler does not record this device"
        raise NotApplicableError(msg)
    if trace.is_truncated:
        msg = "the file was cut off before any device event"
        raise MissingDataError(msg, requirements.RECORD_AGAIN)
    requirements.reliable_timeline(trace)
    counted = len(counter_ranges(trace).events)
    if counted or devices.launch_count:
        yield _counted(devices, counted) if counted else _unreached(devices)
    elif devices.device_operators or devices.device_allocation_count or devices.is_model_on_device:
        yield _unrecorded(devices)
    elif not _computes_on_cpu(trace, devices):
        yield _unknown(devices)


def _computes_on_cpu(trace: Trace, devices: DevicePresence) -> bool:
    """Return whether the model certainly computed on the CPU, which `model-on-cpu` reports."""
    is_certain = devices.is_recorded or bool(devices.host_operators) or devices.is_model_on_host
    return is_certain and bool(len(model_calls(trace).rows))


def _counted(devices: DevicePresence, kernel_count: int) -> Finding:
    return _finding(
        devices,
        f"CUPTI's range profiler measured hardware counters of {count(kernel_count, 'kernel')}, "
        "and no times: it cannot run beside the recording of the device.",
        Fix(
            "Record once more without `profiler_metrics`, for the times of kernels.",
            record_device(devices.dialect),
            verify="The trace has kernels.",
            caveats=("The tables `kernel-counters` and `operator-counters` hold the counters.",),
        ),
    )


def _unreached(devices: DevicePresence) -> Finding:
    return _finding(
        devices,
        f"The host launched {count(devices.launch_count, 'kernel')}, and no device event was "
        "recorded: the profiler could not reach the device.",
        Fix(
            "Let the profiler reach the device, and record again.",
            record_device(devices.dialect),
            verify="The trace has kernels.",
            caveats=(
                "Its errors stand in the training process's log.",
                "Another profiler may hold the device: run one at a time, and no range profiler.",
                "The user may lack the right to read the device's counters: ask the administrator.",
            ),
        ),
    )


def _unrecorded(devices: DevicePresence) -> Finding:
    if devices.device_operators:
        what = f"{devices.device_operators[0]} ran, which only runs where a device is"
    elif devices.is_model_on_device:
        what = f"The model is on {devices.model_device} ({RECORDED})"
    else:
        what = (
            f"Memory was allocated on a device ({count(devices.device_allocation_count, 'time')})"
        )
    return _finding(
        devices,
        f"{what}, but the profiler was not set to record the device.",
        Fix(
            "Record the device's activity too.",
            record_device(devices.dialect),
            verify="The trace has kernels.",
        ),
    )


def _unknown(devices: DevicePresence) -> Finding:
    device = devices.device_names[0] if devices.device_names else "A device"
    if devices.is_recorded:
        text = f"{device} is available and was recorded, and nothing was launched on it."
    else:
        text = (
            f"{device} is available, and no event of it was recorded: either the program computed "
            "on "
            "the CPU, or the profiler was not set to record the device."
        )
    return _finding(
        devices,
        text,
        Fix(
            "Record the device's activity, and see that the model is on the device.",
            f"{record_device(devices.dialect)}\n"
            f"model = model.to({device_code(devices.dialect)})  # and every batch",
            verify="The trace has kernels.",
            caveats=("If the program is meant to run on the CPU, there is nothing to do.",),
        ),
        confidence="medium",
    )


def _finding(
    devices: DevicePresence, message: str, fix: Fix, *, confidence: Confidence = "high"
) -> Finding:
    return Finding(
        severity="warning",
        confidence=confidence,
        message=message,
        evidence=(
            facts.text("Device", ", ".join(devices.device_names[:1]) or "seen"),
            facts.count("Events on the device", 0, "health"),
            facts.count("Launches recorded", devices.launch_count),
            facts.count("Calls into its runtime recorded", devices.call_count),
            *(facts.code("Runs on a device only", name) for name in devices.device_operators[:3]),
        ),
        fix=fix,
    )


RULE = Rule(
    id="no-gpu-work",
    title="A device is available, and nothing on it was recorded",
    passed="Device work was recorded",
    category="utilization",
    why="Without device events the utilization of the device is unknown: either it was not "
    "recorded, or the program does not use it.",
    detects="A device in the file's header, its runtime's calls, operators that only run on one, "
    "or memory allocated on one; and no device event. It distinguishes four cases: "
    "hardware counters were measured instead of times; kernels were launched and the profiler did "
    "not see them; the device worked and was not recorded; or either that or the program ran on "
    "the CPU.",
    silent=(
        "Nothing in the trace names a device: it does not apply.",
        "Operators are known to have run on the CPU: model-on-cpu reports that.",
        "A file that was cut off before any device event is inconclusive.",
        "torch's profiler cannot record the device (mps).",
    ),
    saving="None is claimed: nothing on the device was measured.",
    fix=Fix(
        "Record the device's activity, and see that the model is on the device.",
        "profile()  # without `activities`, all that are supported are recorded",
        verify="The trace has kernels.",
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls"}),
    priority="program",
    links=(
        "profiler.html#torch.profiler.ProfilerActivity",
        "https://developer.nvidia.com/nvidia-development-tools-solutions-err_nvgpuctrperm-permission"
        "-issue-performance-counters",
    ),
    origin="ours; Nsight Systems table_checks",
)
