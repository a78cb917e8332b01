"""Suspected leaks of memory."""

from stepscope.analyses.memory.leaks import SCHEMA, memory_leaks
from stepscope.tables import Table

TABLE = Table(
    title="Suspected leaks of memory",
    meaning="One row an operator, module and stack whose allocations stay behind step after step.",
    schema=SCHEMA,
    build=memory_leaks,
)
