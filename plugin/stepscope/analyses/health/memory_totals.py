"""Allocations without totals: those of torch before 1.10."""

from collections.abc import Iterator

import numpy as np

from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report allocations without the total memory."""
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
        message=(f"{missing:,} of {len(total):,} allocations have no total memory"),
        action="peak memory is not shown" if missing == len(total) else "they are skipped",
        remedy="Record with torch 1.10 or later.",
    )


DAMAGES = {"memory-without-totals": ()}
