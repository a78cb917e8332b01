"""What each device did with its time."""

from stepscope.analyses.devices.temporal_breakdown import SCHEMA, temporal_breakdown
from stepscope.tables import Table

TABLE = Table(
    title="Temporal breakdown",
    meaning="One row a device and span of time (the window, the device's own first to last event,"
    " each step): how long it computed, communicated, moved memory, and stood still.",
    schema=SCHEMA,
    build=temporal_breakdown,
)
