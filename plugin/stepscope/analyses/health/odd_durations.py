"""Negative durations, and absurdly long ones."""

from collections.abc import Iterable, Iterator

import numpy as np

from stepscope.analyses.health._check import UNLIKELY_SHARE, by_share, examples
from stepscope.base.formatting import count, duration
from stepscope.base.report import HealthItem
from stepscope.dialects import Kind
from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.model.arrays import Ints
from stepscope.model.frames.source import DEVICE_KINDS
from stepscope.model.trace import Trace

HOST_KINDS = (Kind.OPERATOR, Kind.ANNOTATION, Kind.RUNTIME_CALL, Kind.PYTHON_CALL)
LONGEST_NS = 24 * 3600 * 1_000_000_000
"""Longest possible trace: its file would have terabytes."""
FAR_LONGER = 10
"""Ratio to the time in which events begin: the last of them may go on for a while."""
LEAST_ABSURD_NS = 60 * 1_000_000_000
"""A short trace may end with a long wait."""


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report negative durations, and those far longer than the trace."""
    duration_ns = trace.columns.duration_ns
    has_duration = duration_ns != NO_TIME
    yield from _negative(trace, np.flatnonzero(has_duration & (duration_ns < 0)))
    long = np.flatnonzero(duration_ns > LEAST_ABSURD_NS)
    if len(long):
        yield from _absurd(trace, long[duration_ns[long] > _limit_ns(trace)])


def _of(trace: Trace, kinds: Iterable[Kind], events: Ints) -> Ints:
    return events[np.isin(trace.source.kinds[events], [int(kind) for kind in kinds])]


def _limit_ns(trace: Trace) -> int:
    """Return the longest plausible duration, from the starts of all events."""
    begun = trace.columns.start_ns[trace.columns.start_ns != NO_TIME]
    extent = int(begun.max()) - int(begun.min()) if len(begun) else 0
    return min(LONGEST_NS, max(FAR_LONGER * extent, LEAST_ABSURD_NS))


def _negative(trace: Trace, events: Ints) -> Iterator[HealthItem]:
    events = _of(trace, (*HOST_KINDS, *DEVICE_KINDS), events)
    if not len(events):
        return
    durations = trace.columns.duration_ns[events]
    yield HealthItem(
        kind="negative-durations",
        severity=by_share(len(events) / len(trace), UNLIKELY_SHARE),
        count=len(events),
        of_count=len(trace),
        nature="damage",
        message=f"{count(len(events), 'event ends', 'events end')} before they begin",
        action="they count as 0",
        examples=examples(trace, events, lambda n: f"lasts {duration(int(durations[n]))}"),
    )


def _absurd(trace: Trace, events: Ints) -> Iterator[HealthItem]:
    for kinds, side in ((DEVICE_KINDS, "device"), (HOST_KINDS, "host")):
        if len(events_of_kind := _of(trace, kinds, events)):
            yield _absurd_item(trace, events_of_kind, side)


def _absurd_item(trace: Trace, events: Ints, side: str) -> HealthItem:
    durations = trace.columns.duration_ns[events]
    return HealthItem(
        kind=f"absurd-{side}-durations",
        severity="critical" if side == "device" else "warning",
        count=len(events),
        of_count=len(trace),
        nature="damage",
        message=(
            f"{count(len(events), f'event of the {side} lasts', f'events of the {side} last')} "
            f"for up to {duration(int(durations.max()))}, but no event of this trace can last "
            f"longer than {duration(_limit_ns(trace))}"
        ),
        action="the tables show them; no advice rests on them",
        remedy="Record it again.",
        examples=examples(trace, events, lambda n: f"lasts {duration(int(durations[n]))}"),
    )


DAMAGES = {
    "negative-durations": {"host calls", "device times"},
    "absurd-device-durations": {"device times", "clocks"},
    "absurd-host-durations": {"host calls", "steps"},
}
