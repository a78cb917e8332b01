"""Idle time by stream."""

from stepscope.analyses.idle.idle_tables import STREAM_SCHEMA, idle_by_stream
from stepscope.tables import Table

TABLE = Table(
    title="Idle time by stream",
    meaning="One row a stream and cause. The rows of a stream sum to the time of the window in "
    "which nothing ran on it.",
    schema=STREAM_SCHEMA,
    build=idle_by_stream,
)
