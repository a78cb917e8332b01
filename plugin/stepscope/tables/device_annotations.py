"""Annotations on the devices, by name."""

from stepscope.analyses.devices.annotations import SCHEMA, annotation_table
from stepscope.tables import Table

TABLE = Table(
    title="Device annotations",
    meaning="One row a device and annotation (`record_function`, a step): how long the device was"
    " at the work under it, and how much of that work is under no annotation within it.",
    schema=SCHEMA,
    build=annotation_table,
)
