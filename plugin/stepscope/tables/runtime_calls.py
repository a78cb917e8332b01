"""Calls into the device's runtime and driver, one by one."""

from stepscope.model.frames.runtime_calls import SCHEMA
from stepscope.tables import Table

TABLE = Table(
    title="Runtime calls",
    meaning="One row a call into a runtime or driver: launches, copies, waits, allocations.",
    schema=SCHEMA,
    build=lambda trace: trace.runtime_calls,
)
