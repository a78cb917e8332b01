"""What the busiest device is able to do, by `deviceProperties`."""

from stepscope.analyses.core import device_specs
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.memory_peak import device_properties
from stepscope.model.trace import Trace, whole_number


def compute_major(trace: Trace) -> int | None:
    """Return the first number of the compute capability; None where it is not recorded.

    AMD writes one too, which means another thing (`gfx9`).
    """
    return whole_number(_properties(trace).get("computeMajor"))


def peak_ratio(trace: Trace, of: str, over: str) -> float | None:
    """Return how many times as fast the device multiplies in a type as in another, at its peak.

    None where the device, or one of the peaks, is not known.
    """
    spec = device_specs.find(_properties(trace)).spec
    if spec is None:
        return None
    one, other = spec.peak(of), spec.peak(over)
    return one / other if one and other else None


def _properties(trace: Trace) -> dict[str, object]:
    """Return the properties of the busiest device, of any other where all have the same name."""
    known = device_properties(trace)
    device = main_device(trace)
    if device is not None and device.device in known:
        return dict(known[device.device])
    names = {str(each.get("name")) for each in known.values()}
    return dict(next(iter(known.values()))) if len(names) == 1 else {}
