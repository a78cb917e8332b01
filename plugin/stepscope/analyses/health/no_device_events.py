"""A recording without device events of a job that used one."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.memory_peak import device_properties
from stepscope.analyses.health._check import Check, Parts, examples, kernel_launches
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.formatting import count
from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace

RECORD_DEVICE = "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report launches, allocations and devices that left no device event at all."""
    if len(trace.device_events) or trace.is_truncated:
        return
    launches = kernel_launches(trace)
    allocated = _on_device(trace)
    if len(launches):
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
            action="the device is left out; nothing is said of how busy it was",
            remedy=(
                "See the training process's log for errors of CUPTI or roctracer; another profiler "
                "may hold the device, or the user may lack the right."
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
                "memory was allocated on a device, but the profiler was not told to record what "
                "runs there"
            ),
            action="the device is left out; nothing is said of how busy it was",
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
                "what ran there"
            ),
            action="it is read as a recording of the CPU",
            remedy=RECORD_DEVICE,
        )


def _on_device(trace: Trace) -> NDArray[np.int64]:
    memory = trace.memory
    return np.asarray(memory["event"].to_numpy()[memory["device_type_code"].to_numpy() > 0])


LOST: Parts = frozenset({"device times", "launches", "clocks"})
CHECK = Check(damages={"no-device-events": LOST, "device-not-recorded": LOST}, check=check)
