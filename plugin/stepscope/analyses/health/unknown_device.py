"""A device of an unknown vendor."""

from collections.abc import Iterator

from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report that the device's vendor is unknown."""
    if trace.dialect.vendor or not len(trace.device_events):
        return
    yield HealthItem(
        kind="unknown-device",
        severity="info",
        count=1,
        message=(
            "the vendor of this device is unknown, and so are its matrix units, allocator "
            "calls and pageable copies"
        ),
        action="it is read with the names that all traces of torch share",
    )


DAMAGES = {"unknown-device": ()}
