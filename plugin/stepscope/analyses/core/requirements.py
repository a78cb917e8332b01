"""Data that rules require of a trace; errors name the way to record missing data."""

import numpy as np

from stepscope.analyses.core import device_activity
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.links import links
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.dialects import GRAPH_CAPTURE_NAME, Kind
from stepscope.model.trace import Trace

RECORD_DEVICE = (
    "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], ...)"
)
RECORD_STEPS = (
    "prof.step()  # at the end of each iteration, with schedule(wait=1, warmup=1, active=3)"
)
MAIN_DEVICE_SHARE = 0.01
"""A device with a smaller fraction of all kernels only holds a context."""
LINKED_SHARE = 0.95
RECORD_AGAIN = "Record it again, and let the training process finish writing the file"


def applies_if(condition: object, reason: str) -> None:
    """Raise NotApplicableError with the reason unless the condition holds."""
    if not condition:
        raise NotApplicableError(reason)


def conclusive_if(condition: object, reason: str, remedy: str = "") -> None:
    """Raise MissingDataError (inconclusive) unless the condition holds; the remedy records more."""
    if not condition:
        raise MissingDataError(reason, remedy)


def _without_device(trace: Trace) -> MissingDataError | NotApplicableError:
    if trace.is_truncated:
        return MissingDataError("the file was cut off before any device event", RECORD_AGAIN)
    if not len(trace.runtime_calls):
        is_on_host = recorded_settings(trace).model.is_on_host
        if is_on_host:
            return NotApplicableError(f"the model computes on the CPU ({RECORDED})")
        # builds for other devices list none either: the recorded model's device goes first
        if is_on_host is not False and trace.metadata.get("deviceProperties") == []:
            return NotApplicableError("the program ran on a machine without a device")
    return MissingDataError("no device event was recorded", RECORD_DEVICE)


def devices(trace: Trace) -> tuple[DeviceActivity, ...]:
    """Return the devices that run a relevant part of the kernels.

    Raises:
        MissingDataError: no device event was recorded.
        NotApplicableError: the machine has no device.
    """
    activities = device_activity.device_activity(trace)
    if not activities:
        raise _without_device(trace)
    kind = trace.device_events["kind"].to_numpy()
    kernels = [int((kind[activity.rows] == int(Kind.KERNEL)).sum()) for activity in activities]
    least = MAIN_DEVICE_SHARE * sum(kernels)
    return tuple(
        activity for activity, count in zip(activities, kernels, strict=True) if count >= least
    )


def main_device(trace: Trace) -> DeviceActivity:
    """Return the busiest device.

    Raises:
        MissingDataError: no device event was recorded.
        NotApplicableError: the machine has no device.
    """
    device = device_activity.main_device(trace)
    if device is None:
        raise _without_device(trace)
    return device


def reliable_timeline(trace: Trace) -> None:
    """Require that gaps on the device are idle time.

    Raises:
        MissingDataError: graphs were being captured.
    """
    names = trace.runtime_calls["name"].cat.categories
    if any(GRAPH_CAPTURE_NAME.search(str(name)) for name in names):
        msg = "graphs were being captured: launches were recorded, not run"
        raise MissingDataError(
            msg,
            "Profile the replay: start the profiler after the capture",
        )


def linked_launches(trace: Trace) -> None:
    """Require that nearly all device events have a recorded launch.

    Raises:
        MissingDataError: too many have none.
    """
    call = links(trace).call_of_device_event
    share = float(np.mean(call >= 0)) if len(call) else 0.0
    if share < LINKED_SHARE:
        msg = f"only {share:.0%} of the device's work has a recorded launch"
        raise MissingDataError(
            msg,
            "torch.profiler.schedule(wait=1, warmup=2, active=3)  # one more warm-up step",
        )


def shapes(trace: Trace) -> None:
    """Require recorded input shapes.

    Raises:
        MissingDataError: there are none.
    """
    if not (trace.host_calls["input_dims"].cat.codes >= 0).any():
        msg = "input shapes were not recorded"
        raise MissingDataError(msg, "torch.profiler.profile(..., record_shapes=True)")


def no_device(trace: Trace) -> None:
    """Require a machine without a device.

    Raises:
        NotApplicableError: the program ran on a machine with a device.
        MissingDataError: whether the machine has one is unknown.
    """
    try:
        main_device(trace)
    except NotApplicableError:
        return
    msg = "the program ran on a machine with a device"
    raise NotApplicableError(msg)
