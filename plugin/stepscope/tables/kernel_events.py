"""Kernels, one row a run."""

from stepscope.model.frames.kernels import SCHEMA
from stepscope.tables import Table

TABLE = Table(
    title="Kernel events",
    meaning="One row a kernel that ran: when, where, and how it was launched.",
    schema=SCHEMA,
    build=lambda trace: trace.kernels,
)
