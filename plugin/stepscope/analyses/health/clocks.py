"""Work that begins before its launch: the two clocks disagree."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.core.links import links
from stepscope.analyses.health._check import UNLIKELY_SHARE, examples, on_device
from stepscope.base.formatting import count, duration
from stepscope.base.report import HealthItem
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report device events that begin before their launch: a few are jitter, more are damage."""
    rows, early_ns, linked_count = _early(trace)
    if not len(rows):
        return
    is_damage = len(rows) > UNLIKELY_SHARE * linked_count
    yield HealthItem(
        kind="clocks-disagree",
        severity="critical" if is_damage else "info",
        count=len(rows),
        of_count=linked_count,
        nature="damage" if is_damage else "note",
        message=(
            f"{'the clocks of host and device disagree: ' if is_damage else ''}"
            f"{count(len(rows), 'device event')} of {linked_count:,} "
            f"{'begins' if len(rows) == 1 else 'begin'} up to {duration(int(early_ns.max()))} "
            "before the host launched them"
        ),
        action="causes of idle time are withheld"
        if is_damage
        else "unchanged: they are too few to matter",
        remedy="Record it again, with a newer driver and torch." if is_damage else "",
        examples=examples(
            trace,
            trace.device_events["event"].to_numpy()[rows],
            lambda n: (
                f"{on_device(trace, int(rows[n]))}, {duration(int(early_ns[n]))} before its launch"
            ),
        ),
    )


def _early(trace: Trace) -> tuple[Ints, Ints, int]:
    """Return the rows that begin too early, by how much, and the number of linked rows."""
    launch = links(trace).call_of_device_event
    linked = np.flatnonzero(launch >= 0)
    begun = trace.device_events["start_ns"].to_numpy()[linked]
    early_ns = trace.runtime_calls["start_ns"].to_numpy()[launch[linked]] - begun
    is_early = early_ns > 0
    return linked[is_early], early_ns[is_early], len(linked)


DAMAGES = {"clocks-disagree": {"clocks", "launches"}}
