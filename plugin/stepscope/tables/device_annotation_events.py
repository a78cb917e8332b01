"""Annotations as they lie on the devices, one row each."""

from stepscope.model.frames.device_annotations import SCHEMA
from stepscope.tables import Table

TABLE = Table(
    title="Device annotation events",
    meaning="One row an annotation on a stream: from the first work under it to the last.",
    schema=SCHEMA,
    build=lambda trace: trace.device_annotations,
)
