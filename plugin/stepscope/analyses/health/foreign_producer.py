"""A file from another program than torch, or without data that advice needs."""

from collections.abc import Iterator

from stepscope.analyses.core.producer import producer
from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report the program that wrote the file, and the data that such files never hold."""
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


DAMAGES = {"foreign-producer": ()}
