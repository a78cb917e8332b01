"""A device of an unknown vendor, and devices whose number is not known."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.health._check import Part
from stepscope.base.report import HealthItem
from stepscope.model.arrays import NONE
from stepscope.model.frames.device_events import MOST_DEVICES
from stepscope.model.trace import Trace


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report that the device's vendor is unknown, or that the trace names too many devices."""
    device = trace.device_events["device"].to_numpy()
    if len(np.unique(device)) > MOST_DEVICES:
        yield HealthItem(
            kind="too-many-devices",
            severity="warning",
            count=int(np.count_nonzero(device == NONE)),
            of_count=len(device),
            nature="damage",
            message=f"the trace names more than {MOST_DEVICES} devices",
            action=f"events of all but the busiest {MOST_DEVICES} are those of an unknown device",
        )
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


DAMAGES: dict[str, tuple[Part, ...]] = {"unknown-device": (), "too-many-devices": ("device times",)}
