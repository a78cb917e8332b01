"""Allocations and releases, one by one."""

from stepscope.model.frames.memory_events import SCHEMA
from stepscope.tables import Table

TABLE = Table(
    title="Memory events",
    meaning="One row an allocation or release by torch, as `profile_memory=True` records.",
    schema=SCHEMA,
    build=lambda trace: trace.memory,
)
