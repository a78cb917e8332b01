"""Evidence that a device was available, recorded or not."""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.memory_peak import device_properties
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.dialects import (
    DEVICE_OPERATOR_NAME,
    HOST_OPERATOR_NAME,
    LAUNCH_NAME,
    NEVER_RECORDED_DEVICE,
    NO_DEVICE,
    Dialect,
    all_dialects,
    of_device,
)
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True)
class DevicePresence:
    """Signs of a device in a trace."""

    device_names: tuple[str, ...]
    """As the file's header has them, else as the trace handler recorded them."""
    dialect: Dialect
    """Of the device's vendor, generic where nothing names it: a trace without device events is
    itself read as the CPU's."""
    event_count: int
    """Events that ran on devices."""
    launch_count: int
    """Recorded launches of kernels."""
    call_count: int
    """Calls into a device's runtime: they are recorded where its activity is."""
    device_operators: tuple[str, ...]
    """Operators seen that only run where a device is."""
    host_operators: tuple[str, ...]
    """Operators seen that only run on the CPU."""
    device_allocation_count: int
    model_device: str = ""
    """Where the trace handler found the model: `cpu`, `cuda:0`; empty where it is not known."""

    @property
    def is_model_on_host(self) -> bool:
        """Whether it was recorded that the model's parameters lie on the CPU."""
        return self.model_device.startswith("cpu")

    @property
    def is_model_on_device(self) -> bool:
        """Whether it was recorded that the model's parameters lie on a device."""
        is_elsewhere = self.is_model_on_host or self.model_device == NO_DEVICE
        return bool(self.model_device) and not is_elsewhere

    @property
    def is_recordable(self) -> bool:
        """Whether torch's profiler can record the device, judging by its name."""
        name = self.model_device if self.is_model_on_device else " ".join(self.device_names)
        return not NEVER_RECORDED_DEVICE.search(name)

    @property
    def is_recorded(self) -> bool:
        """Whether the profiler recorded the device's activity, if any."""
        return self.event_count > 0 or self.call_count > 0


@computed
def device_presence(trace: Trace) -> DevicePresence | None:
    """Return the evidence of an available device; None where there is none."""
    headers, settings = device_properties(trace), recorded_settings(trace)
    device_names = tuple(str(device.get("name", "")) for device in headers.values())
    device_names = device_names or tuple(device.name or "" for device in settings.devices)
    calls = trace.runtime_calls
    operators = tuple(str(name) for name in trace.host_calls["name"].cat.categories)
    evidence = DevicePresence(
        device_names=device_names,
        dialect=_dialect(trace, device_names),
        event_count=len(trace.device_events),
        launch_count=int(name_mask(calls["name"], LAUNCH_NAME.search).sum()),
        call_count=len(calls),
        device_operators=tuple(n for n in operators if DEVICE_OPERATOR_NAME.search(n)),
        host_operators=tuple(n for n in operators if HOST_OPERATOR_NAME.search(n)),
        device_allocation_count=int(
            np.count_nonzero(trace.memory["device_type_code"].to_numpy() > 0)
        ),
        model_device=settings.model.device or "",
    )
    is_named = evidence.device_names or evidence.device_operators
    has_device = evidence.is_recorded or is_named or evidence.device_allocation_count
    return evidence if has_device else None


def _dialect(trace: Trace, device_names: tuple[str, ...]) -> Dialect:
    if len(trace.device_events):
        return trace.dialect
    if device_names:
        return of_device(device_names[0])
    return all_dialects()["generic"]


def device_code(dialect: Dialect) -> str:
    """Return the Python expression for a vendor's device."""
    module = dialect.terms.get("module", "accelerator")
    if module == "accelerator":
        return "torch.accelerator.current_accelerator()"
    return f'torch.device("{module}")'


def record_device(dialect: Dialect) -> str:
    """Return the line of code that records a vendor's device."""
    activity = dialect.terms.get("activity", "")
    if not activity:
        return "profile()  # without `activities`, all that are supported are recorded"
    return f"profile(activities=[ProfilerActivity.CPU, {activity}], ...)"
