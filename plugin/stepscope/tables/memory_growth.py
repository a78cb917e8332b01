"""Growth of memory from step to step."""

from stepscope.analyses.memory.growth import SCHEMA, memory_growth
from stepscope.tables import Table

TABLE = Table(
    title="Growth of memory",
    meaning="One row a device: how much more it holds with every step, and whether that is chance.",
    schema=SCHEMA,
    build=memory_growth,
)
