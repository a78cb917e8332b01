"""Stamps that count from the machine's start, not from 1970: nothing says when that was."""

from collections.abc import Iterator, Mapping

from stepscope.analyses.health._check import Check
from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace, whole_number

FIRST_DATE_NS = 10**18
"""September 2001: before it there was no torch. A machine would have to run for 31 years."""


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report recordings that cannot be dated; among several ranks that matters."""
    columns = trace.columns
    if columns.base_time_ns or columns.origin_ns >= FIRST_DATE_NS:
        return
    yield HealthItem(
        kind="time-since-boot",
        severity="warning" if _has_peers(trace) else "info",
        count=1,
        message=(
            "times count from the start of the machine or of the recording, and baseTimeNanoseconds"
            " does not say when that was"
        ),
        action="times are shown from the first event on; recordings of several ranks do not align",
        remedy="Record with torch 2.3 or later, which writes the date.",
    )


def _has_peers(trace: Trace) -> bool:
    info = trace.metadata.get("distributedInfo")
    size = whole_number(info.get("world_size")) if isinstance(info, Mapping) else None
    return size is not None and size > 1


CHECK = Check(damages={"time-since-boot": frozenset({"ranks"})}, check=check)
