"""Samples of counters, one by one."""

from stepscope.model.frames.counters import SCHEMA
from stepscope.tables import Table

TABLE = Table(
    title="Counter samples",
    meaning="One row a value of a counter at a time, as it was recorded.",
    schema=SCHEMA,
    build=lambda trace: trace.counters,
)
