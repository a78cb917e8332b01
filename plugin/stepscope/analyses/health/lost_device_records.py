"""Launched kernels without a record: at the trace's edges, or in its middle."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.core.links import links
from stepscope.analyses.core.window import complete_steps
from stepscope.analyses.devices.kernel_launches import single_launches
from stepscope.analyses.health._check import by_share, examples, synchronize
from stepscope.base.findings import Severity
from stepscope.base.formatting import count, duration, share
from stepscope.base.report import HealthItem
from stepscope.model.arrays import Ints, Mask
from stepscope.model.trace import Trace

DOUBTFUL_SHARE = 0.02
DAMAGED_SHARE = 0.2
"""Fraction of the launches: each is a kernel that counts as idle time."""


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report launches of kernels without a device event."""
    if not len(trace.device_events) or trace.is_truncated:
        return
    launches = single_launches(trace)
    has_event = _has_event(trace, launches)
    if has_event.all() or not has_event.any():
        return
    matched = np.flatnonzero(has_event)
    missing = np.flatnonzero(~has_event)
    is_edge = (missing < matched[0]) | (missing > matched[-1])
    if is_edge.any():
        yield _edge(trace, launches[missing[is_edge]], len(launches))
    if not is_edge.all():
        yield _middle(trace, launches[missing[~is_edge]], len(launches))


def _has_event(trace: Trace, launches: Ints) -> Mask:
    """Return, for each launch, whether any device event has its correlation number.

    If a call of the runtime and one of the driver share a number, `links` has the first.
    """
    call = links(trace).call_of_device_event
    count_of = np.bincount(call[call >= 0], minlength=len(trace.runtime_calls))
    has_event: Mask = count_of[launches] > 0
    unsure = np.flatnonzero(~has_event)
    if not len(unsure):
        return has_event
    numbers = trace.runtime_calls["correlation"].to_numpy()[launches[unsure]]
    has_event[unsure] = np.isin(numbers, trace.device_events["correlation"].to_numpy())
    return has_event


def _edge(trace: Trace, rows: Ints, launch_count: int) -> HealthItem:
    is_left_out = len(complete_steps(trace)) < len(trace.steps)
    lost = len(rows) / launch_count
    severity: Severity = "info" if is_left_out else by_share(lost, DOUBTFUL_SHARE)
    return _item(
        trace,
        rows,
        launch_count,
        kind="dropped-at-the-edge",
        severity=severity,
        where="at the edge of the trace ",
        action=(
            "the last step is left out of all numbers"
            if is_left_out
            else "their time counts as idle time"
        ),
        remedy=f"Wait for the device before you stop the profiler: {synchronize(trace)}.",
    )


def _middle(trace: Trace, rows: Ints, launch_count: int) -> HealthItem:
    return _item(
        trace,
        rows,
        launch_count,
        kind="device-records-lost",
        severity=by_share(len(rows) / launch_count, DOUBTFUL_SHARE, DAMAGED_SHARE),
        where="",
        action="their time counts as idle time",
        remedy="Record fewer steps, so that the profiler's buffers hold them.",
    )


def _item(  # noqa: PLR0913 (one parameter a field)
    trace: Trace,
    rows: Ints,
    launch_count: int,
    *,
    kind: str,
    severity: Severity,
    where: str,
    action: str,
    remedy: str,
) -> HealthItem:
    calls = trace.runtime_calls
    starts = calls["start_ns"].to_numpy()
    return HealthItem(
        kind=kind,
        severity=severity,
        count=len(rows),
        of_count=launch_count,
        nature="damage",
        message=(
            f"{count(len(rows), 'kernel launch', 'kernel launches')} of {launch_count:,} "
            f"{where}left no device event ({share(len(rows) / launch_count)})"
        ),
        action=action,
        remedy=remedy,
        examples=examples(
            trace,
            calls["event"].to_numpy()[rows],
            lambda n: f"called at {duration(int(starts[rows[n]]))}",
        ),
    )


DAMAGES = {
    "dropped-at-the-edge": {"device times", "steps"},
    "device-records-lost": {"device times", "launches", "clocks"},
}
