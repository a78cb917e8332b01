"""What ran on the devices, one by one."""

from stepscope.model.frames.device_events import SCHEMA
from stepscope.tables import Table

TABLE = Table(
    title="Device events",
    meaning="One row a kernel, copy or memory set, in the order they began.",
    schema=SCHEMA,
    build=lambda trace: trace.device_events,
)
