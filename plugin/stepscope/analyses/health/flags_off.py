"""Data that the profiler was not configured to record."""

from collections.abc import Iterator

from stepscope.analyses.core.record_next import FLAGS, remedy_of
from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report each recordable kind of data that this trace lacks."""
    for flag in FLAGS:
        if flag.message and flag.is_missing(trace):
            yield HealthItem(
                kind=f"no-{flag.name}",
                severity="info",
                count=1,
                nature="gap",
                message=flag.message,
                remedy=remedy_of(trace, flag),
            )


DAMAGES = {f"no-{flag.name}": () for flag in FLAGS if flag.message}
