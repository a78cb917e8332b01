"""A trace without device events of a job that used a device."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.core.memory_peak import device_properties
from stepscope.analyses.devices.kernel_launches import single_launches
from stepscope.analyses.devices.range_counters import counter_ranges
from stepscope.analyses.health._check import Parts, examples
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.formatting import count
from stepscope.base.report import HealthItem
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace

RECORD_DEVICE = "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report launches, allocations and devices without any device event."""
    if len(trace.device_events) or trace.is_truncated:
        return
    launches = single_launches(trace)
    allocated = _on_device(trace)
    ranges = counter_ranges(trace)
    if len(ranges.events):
        yield HealthItem(
            kind="device-not-recorded",
            severity="critical",
            count=len(ranges.events),
            nature="gap",
            message=(
                f"CUPTI's range profiler measured {count(len(ranges.values), 'hardware counter')} "
                f"of {count(len(ranges.events), 'kernel')}; it records no times of kernels"
            ),
            action="the device is left out, but for the tables of counters",
            remedy=f"{RECORD_DEVICE}  # without profiler_metrics",
            examples=examples(trace, ranges.events, lambda _: "counters, no times"),
        )
    elif len(launches):
        yield HealthItem(
            kind="no-device-events",
            severity="critical",
            count=len(launches),
            of_count=len(launches),
            nature="damage",
            message=(
                f"the host launched {count(len(launches), 'kernel')}, but no device event was "
                "recorded: the profiler could not reach the device"
            ),
            action="the device is left out",
            remedy=(
                "See the training process's log for errors of CUPTI or roctracer; another profiler "
                "may use the device, or you may lack the permission."
            ),
            examples=examples(
                trace, trace.runtime_calls["event"].to_numpy()[launches], lambda _: "no kernel"
            ),
        )
    elif len(allocated):
        yield HealthItem(
            kind="device-not-recorded",
            severity="critical",
            count=len(allocated),
            of_count=len(trace.memory),
            nature="gap",
            message=(
                "memory was allocated on a device, but the profiler did not record device events"
            ),
            action="the device is left out",
            remedy=RECORD_DEVICE,
            examples=examples(trace, allocated, lambda _: "on a device"),
        )
    elif (devices := device_properties(trace)) and not recorded_settings(trace).model.is_on_host:
        yield HealthItem(
            kind="device-not-recorded",
            severity="info",
            count=len(devices),
            nature="gap",
            message=(
                f"this machine has {count(len(devices), 'device')}, and nothing was recorded of "
                "them"
            ),
            action="it is read as a trace of the CPU",
            remedy=RECORD_DEVICE,
        )


def _on_device(trace: Trace) -> Ints:
    memory = trace.memory
    return np.asarray(memory["event"].to_numpy()[memory["device_type_code"].to_numpy() > 0])


LOST: Parts = frozenset({"device times", "launches", "clocks"})
DAMAGES = {"no-device-events": LOST, "device-not-recorded": LOST}
