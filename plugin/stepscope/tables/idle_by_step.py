"""Idle time by step."""

from stepscope.analyses.idle.idle_tables import STEP_SCHEMA, idle_by_step
from stepscope.tables import Table

TABLE = Table(
    title="Idle time by step",
    meaning="One row a device, step and cause. The rows of a device sum to its idle time.",
    schema=STEP_SCHEMA,
    build=idle_by_step,
)
