"""Allocations with their lifetimes and owners."""

from stepscope.analyses.memory.allocations import SCHEMA, memory_allocations
from stepscope.tables import Table

TABLE = Table(
    title="Allocations",
    meaning="One row an allocation: its size, lifetime, and the operator, module and functions"
    " that asked for it.",
    schema=SCHEMA,
    build=memory_allocations,
)
