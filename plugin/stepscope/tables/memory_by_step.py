"""Memory step by step."""

from stepscope.analyses.memory.by_step import SCHEMA, memory_by_step
from stepscope.tables import Table

TABLE = Table(
    title="Memory by step",
    meaning="One row a device and step: what it allocated, freed, reached and left behind.",
    schema=SCHEMA,
    build=memory_by_step,
)
