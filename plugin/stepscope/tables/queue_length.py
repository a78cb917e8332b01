"""Lengths of the streams' queues."""

from stepscope.analyses.devices.queue_length import SUMMARY, queue_lengths
from stepscope.tables import Table

TABLE = Table(
    title="Queue length",
    meaning="One row a stream: how many launched pieces of work waited in its queue.",
    schema=SUMMARY,
    build=queue_lengths,
)
