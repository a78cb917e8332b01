"""Device work without a recorded launch: from before the trace, or lost."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.links import links
from stepscope.analyses.core.window import window
from stepscope.analyses.health._check import by_share, examples, on_device, synchronize
from stepscope.base.formatting import count, duration, share
from stepscope.base.report import HealthItem
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace

ORPHAN_SHARE = 0.02
"""Fraction of device events without a recorded launch that harms attribution."""
STRANGE_SHARE = 0.2
"""Fraction of the window from which the first step's device work is mostly earlier work."""


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report device events without a recorded launch."""
    launch = links(trace).call_of_device_event
    missing = np.flatnonzero(launch < 0)
    if not len(missing) or len(missing) < ORPHAN_SHARE * len(launch):
        return
    earlier = _launched_before(trace, launch, missing)
    lost = missing[~np.isin(missing, earlier)]
    earlier = _in_window(trace, earlier)
    if len(earlier):
        yield _before(trace, earlier)
    if len(lost):
        yield _lost(trace, lost)


def _launched_before(trace: Trace, launch: Ints, missing: Ints) -> Ints:
    """Return the events before all linked work: they were queued before recording began."""
    linked = np.flatnonzero(launch >= 0)
    if not len(linked):
        return missing[:0]
    has_number = trace.device_events["correlation"].to_numpy()[missing] >= 0
    return np.asarray(missing[has_number & (missing < linked[0])])


def _in_window(trace: Trace, rows: Ints) -> Ints:
    """Return the events that end in the window: with steps, the backlog comes before it."""
    return rows[trace.device_events["end_ns"].to_numpy()[rows] > window(trace).device_start_ns]


def _before(trace: Trace, rows: Ints) -> HealthItem:
    frame, span = trace.device_events, window(trace)
    inside = intervals.clip(
        frame_times.times(frame, rows), span.device_start_ns, span.device_end_ns
    )
    busy_ns = intervals.duration_ns(inside)
    strange = busy_ns / max(1, span.reference_ns)
    return HealthItem(
        kind="launched-before-recording",
        severity=by_share(strange, STRANGE_SHARE),
        count=len(rows),
        of_count=len(frame),
        message=(
            f"{count(len(rows), 'device event')} of {len(frame):,} "
            f"{'was' if len(rows) == 1 else 'were'} launched before the recording began: "
            f"{duration(busy_ns)} of earlier work, {share(strange)} of the window"
        ),
        action="they count as the device's work, without an operator",
        remedy=(
            f"Wait for the device before the first recorded step ({synchronize(trace)}), or record "
            "more steps."
        ),
        examples=examples(
            trace, frame["event"].to_numpy()[rows], lambda n: on_device(trace, int(rows[n]))
        ),
    )


def _lost(trace: Trace, rows: Ints) -> HealthItem:
    frame = trace.device_events
    return HealthItem(
        kind="launch-not-recorded",
        severity="warning",
        count=len(rows),
        of_count=len(frame),
        nature="damage",
        message=(
            f"{len(rows):,} of {len(frame):,} device events have no recorded launch: they "
            "have no operator, and gaps before them have no cause"
        ),
        action="they count as the device's work, without an operator",
        remedy="Record one more warm-up step: schedule(wait=1, warmup=2, active=3).",
        examples=examples(
            trace, frame["event"].to_numpy()[rows], lambda n: on_device(trace, int(rows[n]))
        ),
    )


DAMAGES = {"launched-before-recording": {"launches", "steps"}, "launch-not-recorded": {"launches"}}
