"""Lengths of the streams' queues over time."""

from stepscope.analyses.devices.queue_length import SERIES, queue_series
from stepscope.tables import Table

TABLE = Table(
    title="Queue length over time",
    meaning="One row a change of a stream's queue: work was launched into it, or began.",
    schema=SERIES,
    build=queue_series,
)
