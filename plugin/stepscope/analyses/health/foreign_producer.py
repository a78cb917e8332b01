"""A file that torch did not write, or wrote in a way that leaves out what advice needs."""

from collections.abc import Iterator

from stepscope.analyses.core.producer import producer
from stepscope.analyses.health._check import NOTHING, Check
from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report who wrote the file, and what such files never hold."""
    writer = producer(trace)
    if not writer.missing:
        return
    yield HealthItem(
        kind="foreign-producer",
        severity="warning",
        count=1,
        nature="gap",
        message=f"this was written by {writer.name}. {' '.join(writer.missing)}".rstrip("."),
        remedy=writer.remedy,
    )


CHECK = Check(damages={"foreign-producer": NOTHING}, check=check)
