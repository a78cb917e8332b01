"""A device whose vendor is not known here."""

from collections.abc import Iterator

from stepscope.analyses.health._check import NOTHING, Check
from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report that the words of the device's vendor are not known."""
    if trace.dialect.vendor or not len(trace.device_events):
        return
    yield HealthItem(
        kind="unknown-device",
        severity="info",
        count=1,
        message=(
            "the vendor of this device is not known: its matrix units, allocator calls and "
            "pageable copies cannot be told"
        ),
        action="it is read with the words that all traces of torch share",
    )


CHECK = Check(damages={"unknown-device": NOTHING}, check=check)
