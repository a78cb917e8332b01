"""Idle time by source line."""

from stepscope.analyses.idle.idle_by_source import SCHEMA, idle_by_source_line
from stepscope.tables import Table

TABLE = Table(
    title="Idle time by source line",
    meaning="One row a device, cause and place in the program: why the device stood still, and "
    "which operator and line of code had it wait. The rows of a device sum to its idle time.",
    schema=SCHEMA,
    build=idle_by_source_line,
)
