"""Stamps that count from an unknown start of the machine, not from 1970."""

from collections.abc import Iterator, Mapping

from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace, whole_number

FIRST_DATE_NS = 10**18
"""September 2001, before torch existed. A machine would have to run for 31 years."""


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report traces without a date, which matters with several ranks."""
    columns = trace.columns
    if columns.base_time_ns or columns.origin_ns >= FIRST_DATE_NS:
        return
    yield HealthItem(
        kind="time-since-boot",
        severity="warning" if _has_peers(trace) else "info",
        count=1,
        message=(
            "times count from the start of the machine or of the trace, and"
            " baseTimeNanoseconds does not date it"
        ),
        action="times are shown from the first event on; traces of several ranks do not align",
        remedy="Record with torch 2.3 or later, which writes the date.",
    )


def _has_peers(trace: Trace) -> bool:
    info = trace.metadata.get("distributedInfo")
    size = whole_number(info.get("world_size")) if isinstance(info, Mapping) else None
    return size is not None and size > 1


DAMAGES = {"time-since-boot": {"ranks"}}
