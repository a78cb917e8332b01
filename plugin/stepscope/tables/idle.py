"""Idle time."""

from stepscope.analyses.idle.idle_tables import SCHEMA, idle_by_cause
from stepscope.tables import Table

TABLE = Table(
    title="Idle time",
    meaning="One row a device and cause: how long it stood still within the window, and why. "
    "The rows of a device sum to its idle time.",
    schema=SCHEMA,
    build=idle_by_cause,
)
