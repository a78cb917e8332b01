"""Copies, one by one."""

from stepscope.model.frames.copies import SCHEMA
from stepscope.tables import Table

TABLE = Table(
    title="Copy events",
    meaning="One row a copy between memories: when, where, which way, and how many bytes.",
    schema=SCHEMA,
    build=lambda trace: trace.copies,
)
