"""Events that end before they begin, or last longer than anyone recorded."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.health._check import UNLIKELY_SHARE, Check, by_share, examples
from stepscope.base.formatting import count, duration
from stepscope.base.report import HealthItem
from stepscope.dialects import Kind
from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.model.frames.source import DEVICE_KINDS
from stepscope.model.trace import Trace

HOST_KINDS = (Kind.OPERATOR, Kind.ANNOTATION, Kind.RUNTIME_CALL, Kind.PYTHON_CALL)
LONGEST_NS = 24 * 3600 * 1_000_000_000
"""No recording goes on for longer: its file would be of terabytes."""
FAR_LONGER = 10
"""Times the time in which events begin: the last of them may go on for a while."""
LEAST_ABSURD_NS = 60 * 1_000_000_000
"""A short recording may end with a long wait."""


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report durations below 0, and those far beyond the recording."""
    duration_ns = trace.columns.duration_ns
    is_told = duration_ns != NO_TIME
    yield from _negative(trace, np.flatnonzero(is_told & (duration_ns < 0)))
    long = np.flatnonzero(duration_ns > LEAST_ABSURD_NS)
    if len(long):
        yield from _absurd(trace, long[duration_ns[long] > _limit_ns(trace)])


def _of(trace: Trace, kinds: Iterable[Kind], events: NDArray[np.int64]) -> NDArray[np.int64]:
    return events[np.isin(trace.source.kinds[events], [int(kind) for kind in kinds])]


def _limit_ns(trace: Trace) -> int:
    """Return how long an event may be, by when the others begin."""
    begun = trace.columns.start_ns[trace.columns.start_ns != NO_TIME]
    extent = int(begun.max()) - int(begun.min()) if len(begun) else 0
    return min(LONGEST_NS, max(FAR_LONGER * extent, LEAST_ABSURD_NS))


def _negative(trace: Trace, events: NDArray[np.int64]) -> Iterator[HealthItem]:
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
        action="they count as 0 long",
        examples=examples(trace, events, lambda n: f"lasts {duration(int(durations[n]))}"),
    )


def _absurd(trace: Trace, events: NDArray[np.int64]) -> Iterator[HealthItem]:
    for kinds, where in ((DEVICE_KINDS, "device"), (HOST_KINDS, "host")):
        if len(own := _of(trace, kinds, events)):
            yield _absurd_item(trace, own, where)


def _absurd_item(trace: Trace, events: NDArray[np.int64], where: str) -> HealthItem:
    durations = trace.columns.duration_ns[events]
    return HealthItem(
        kind=f"absurd-{where}-durations",
        severity="critical" if where == "device" else "warning",
        count=len(events),
        of_count=len(trace),
        nature="damage",
        message=(
            f"{count(len(events), f'event of the {where} lasts', f'events of the {where} last')} "
            f"for up to {duration(int(durations.max()))}, where nothing in this recording can "
            f"last for more than {duration(_limit_ns(trace))}"
        ),
        action="they stand in the tables as they are; no advice is built on them",
        remedy="Record it again.",
        examples=examples(trace, events, lambda n: f"lasts {duration(int(durations[n]))}"),
    )


CHECK = Check(
    damages={
        "negative-durations": frozenset({"host calls", "device times"}),
        "absurd-device-durations": frozenset({"device times", "clocks"}),
        "absurd-host-durations": frozenset({"host calls", "steps"}),
    },
    check=check,
)
