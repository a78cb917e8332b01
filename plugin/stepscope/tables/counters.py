"""Counters, a series a row."""

from stepscope.analyses.core.counter_table import SCHEMA, counter_table
from stepscope.tables import Table

TABLE = Table(
    title="Counters",
    meaning="One row a series of a counter that was recorded beside the events (power, RDMA,"
    " hardware, the user's own): its samples, extremes and mean over time.",
    schema=SCHEMA,
    build=counter_table,
)
