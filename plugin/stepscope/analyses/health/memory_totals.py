"""Allocations without totals: what torch before 1.10 wrote."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.health._check import NOTHING, Check
from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report allocations that do not say how much is held in all."""
    total = trace.memory["allocated_bytes"].to_numpy()
    missing = int(np.isnan(total).sum())
    if not missing:
        return
    yield HealthItem(
        kind="memory-without-totals",
        severity="info",
        count=missing,
        of_count=len(total),
        nature="gap",
        message=(
            f"{missing:,} of {len(total):,} allocations do not say how much memory is held in all"
        ),
        action="peak memory is not shown" if missing == len(total) else "they are passed over",
        remedy="Record with torch 1.10 or later.",
    )


CHECK = Check(damages={"memory-without-totals": NOTHING}, check=check)
