"""Device events that the profiler never filled in: time 0 and duration 0 (kineto#109)."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.health._check import by_share, examples
from stepscope.base.formatting import count
from stepscope.base.report import HealthItem
from stepscope.model.frames.source import DEVICE_KINDS
from stepscope.model.trace import Trace

DOUBTFUL_SHARE = 0.02
"""Fraction of the device's events from which it looks noticeably idler than it was."""


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report device events with neither start nor duration."""
    if not trace.source.is_lost.any():
        return
    is_device = np.isin(trace.source.kinds, [int(kind) for kind in DEVICE_KINDS])
    events = np.flatnonzero(is_device & trace.source.is_lost)
    if not len(events):
        return
    total = int(is_device.sum())
    yield HealthItem(
        kind="empty-records",
        severity=by_share(len(events) / total, DOUBTFUL_SHARE),
        count=len(events),
        of_count=total,
        nature="damage",
        message=(
            f"{count(len(events), 'device event has', 'device events have')} neither start nor "
            "duration"
        ),
        action="they were left out",
        remedy="Record with a newer torch; those of 2021 wrote such records.",
        examples=examples(trace, events, lambda _: "ts 0, dur 0"),
    )


DAMAGES = {"empty-records": {"device times"}}
